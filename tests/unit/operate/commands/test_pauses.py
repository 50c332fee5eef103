"""Durable pauses, as one process knows them. With brokers: `tests/contract/test_console_commands.py`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from awoke.operate.commands.pauses import DurablePauses, key_of, place_of
from awoke.settings import load


class Case:
    """The pauses of a process, and what they send and apply."""

    def __init__(self) -> None:
        self.sent, self.applied = list[Any](), list[Any]()
        settings = load({"bootstrap_servers": "127.0.0.1:1"}).values
        self.pauses = DurablePauses(
            "pauses", settings, lambda *sent: self.sent.append(sent), lambda *place: self.applied.append(place)
        )

    def comes(self, key: bytes | None, value: bytes | None) -> None:
        record: Any = SimpleNamespace(key=key, value=value)
        self.pauses._on_record(record)


KEY = key_of(None, "orders", 0)


def test_a_pause_is_sent_and_known_until_it_is_dropped() -> None:
    case = Case()
    case.pauses.keep("orders", 0, None, "a test")
    assert case.pauses.find("eu", "orders", 0) == "a test"
    assert case.pauses.find("eu", "orders", 1) is None
    assert case.pauses.drop("orders", 0, None)
    assert case.pauses.find("eu", "orders", 0) is None
    assert not case.pauses.drop("orders", 0, None)
    assert [(key, value is None) for _, value, key, _ in case.sent] == [(KEY, False), (KEY, True)]


def test_the_pause_of_another_process_takes_effect_here() -> None:
    case = Case()
    case.comes(KEY, b'{"why": "a test", "at_ms": 1}')
    case.comes(KEY, None)
    assert case.applied == [(None, "orders", 0, "a test"), (None, "orders", 0, None)]


def test_the_own_record_is_applied_once() -> None:
    case = Case()
    case.pauses.keep("orders", 0, "eu", "a test")
    (_, value, key, _) = case.sent[0]
    case.comes(key, value)
    assert case.applied == []


def test_a_record_that_can_not_be_read_changes_nothing() -> None:
    case = Case()
    for key, value in ((None, b"{}"), (b"\xff", b"{}"), (b'[null,"orders",-1]', b"{}"), (KEY, b"\xff")):
        case.comes(key, value)
    assert case.applied == []
    assert place_of(KEY) == (None, "orders", 0)


def test_pauses_that_were_not_started_can_be_closed_again() -> None:
    case = Case()
    case.pauses.close()
    case.pauses.close()
