"""`manage.py awoke_outbox`: which app it takes."""

from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command

import awoke


def test_a_command_without_an_app_says_how_to_name_one() -> None:
    with pytest.raises(CommandError, match="AWOKE ="):
        call_command("awoke_outbox")


def test_an_app_that_does_not_exist_is_named() -> None:
    with pytest.raises(awoke.AppNotFound, match="no_such_module"):
        call_command("awoke_outbox", "no_such_module:app")
