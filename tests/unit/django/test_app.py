"""An app in a Django project: settings, and cleaning up between jobs."""

from __future__ import annotations

from django.db import connection

from awoke.django import DjangoApp
from awoke.waiting.drive import drive


def test_settings_come_from_those_of_django_and_arguments_win() -> None:
    assert DjangoApp("shop").settings.group == "of-the-settings"
    assert DjangoApp("shop", group="own").settings.group == "own"


def test_a_connection_that_broke_is_closed_between_jobs() -> None:
    app = DjangoApp("shop")
    connection.ensure_connection()
    kept = connection.connection
    drive(app.cleanups.call(is_async=False))
    assert connection.connection is kept, "a database in memory lives as long as its connection"
