"""The service that takes commands: which calls are its own, and its end. With brokers: the contract test."""

from __future__ import annotations

from typing import Any

import pytest

from awoke.console.commands.service import CommandService, OneWarning
from awoke.rpc.context import ForAnother
from awoke.settings import load


class NoPauses:
    """Durable pauses that no thread follows."""

    def close(self) -> None:
        """Does nothing."""


def service(**given: Any) -> CommandService:
    settings = load({"bootstrap_servers": "127.0.0.1:1", **given}).values
    actions: Any = None
    pauses: Any = NoPauses()
    return CommandService("shop", "host.1", settings, actions, pauses)


def test_a_command_for_another_process_is_left_to_it() -> None:
    with pytest.raises(ForAnother):
        service().command("host.2", "quiet", {}, "ann", "a test")


def test_commands_are_signed_where_a_secret_is_set() -> None:
    assert service()._methods().settings.secret is None
    assert service(console_secret="s3cret")._methods().settings.secret == b"s3cret"


def test_a_service_that_was_not_started_can_be_closed_again() -> None:
    made = service()
    made.close(0.0)
    made.close(0.0)


def test_events_that_are_no_errors_are_dropped() -> None:
    OneWarning().emit("anything")
