"""`manage.py awoke` and `manage.py awoke_outbox`."""
