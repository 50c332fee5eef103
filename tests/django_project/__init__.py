"""A Django project whose handlers use the ORM, for tests in processes of their own."""
