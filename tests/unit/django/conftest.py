"""A Django in this process, with a database in memory."""

from __future__ import annotations

import pytest

pytest.importorskip("django")

import django
from django.conf import settings
from django.core.management import call_command


@pytest.fixture(scope="session", autouse=True)
def database() -> None:
    """Makes the tables, once for all tests of this process."""
    settings.configure(
        INSTALLED_APPS=["awoke.django"],
        AWOKE={"group": "of-the-settings"},
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
        USE_TZ=True,
    )
    django.setup()
    call_command("migrate", verbosity=0)
