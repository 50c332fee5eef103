"""The settings of the project; `DATABASE` is a number of a port, or the name of a file of SQLite's."""

from __future__ import annotations

import os
from typing import Any

SECRET_KEY = "for tests"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = ["awoke.django", "tests.django_project.shop"]
AWOKE = {"app": "tests.django_project.kafka:app"}
DATABASE = os.environ.get("DATABASE", ":memory:")
POSTGRES: dict[str, Any] = {
    "ENGINE": "django.db.backends.postgresql",
    "NAME": "postgres",
    "USER": "postgres",
    "HOST": "127.0.0.1",
    "PORT": DATABASE,
    "CONN_MAX_AGE": None if "KEEPS_CONNECTIONS" in os.environ else 0,
    "CONN_HEALTH_CHECKS": True,
}
SQLITE = {"ENGINE": "django.db.backends.sqlite3", "NAME": DATABASE}
POSTGRES["AUTOCOMMIT"] = "DATABASE_AUTOCOMMIT" not in os.environ
DATABASES = {"default": POSTGRES if DATABASE.isdecimal() else SQLITE}
