"""The table of the outbox."""

from __future__ import annotations

from django.core.management import call_command


def test_the_migrations_make_the_table_of_the_model() -> None:
    call_command("makemigrations", "awoke", check=True, dry_run=True, verbosity=0)  # Exits where one is missing.
