"""A Django in this process, with a database in memory. Models can be imported only when it is set up."""

from __future__ import annotations

import django
import pytest
from django.conf import settings
from django.core.management import call_command

settings.configure(
    INSTALLED_APPS=[
        "awoke.django",
        *(f"django.contrib.{each}" for each in ("admin", "auth", "contenttypes", "messages", "sessions")),
    ],
    AWOKE={"group": "of-the-settings", "console_url": "/console/"},
    ROOT_URLCONF="tests.unit.django.urls",
    TEMPLATES=[
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "APP_DIRS": True,
            "OPTIONS": {"context_processors": ["django.contrib.auth.context_processors.auth"]},
        }
    ],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    USE_TZ=True,
    SECRET_KEY="for tests",
)
django.setup()


@pytest.fixture(scope="session", autouse=True)
def tables() -> None:
    """Makes the tables, once for all tests of this process."""
    call_command("migrate", verbosity=0)
