"""Middleware: functions that every outgoing message passes, in their order."""

from __future__ import annotations

import pytest

from awoke.payloads.message import Outgoing
from awoke.produce.middleware import through


def test_a_message_passes_the_middleware_in_order() -> None:
    def first(message: Outgoing) -> Outgoing:
        return message.with_header("n", "1")

    def second(message: Outgoing) -> Outgoing:
        return message.with_header("n", "2")

    assert through([first, second], Outgoing("orders", b"v")).headers == [("n", "1"), ("n", "2")]


def test_a_message_without_middleware_stays_itself() -> None:
    message = Outgoing("orders", b"v")
    assert through([], message) is message


def test_an_error_of_middleware_ends_the_way() -> None:
    passed: list[Outgoing] = []

    def refuse(message: Outgoing) -> Outgoing:
        raise ValueError("not today")

    def note(message: Outgoing) -> Outgoing:
        passed.append(message)
        return message

    with pytest.raises(ValueError, match="not today"):
        through([refuse, note], Outgoing("orders", b"v"))
    assert passed == []
