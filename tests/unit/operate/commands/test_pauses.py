"""Durable pauses, as one process knows them. With brokers: `tests/contract/test_console_commands.py`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from awoke.operate.commands.pauses import DurablePauses, key_of, place_of
from awoke.settings import load


class Case:
    """The pauses of a process, and what they send and apply."""

    def __init__(self, secret: str | None = None, topic: str = "pauses") -> None:
        self.sent, self.applied = list[Any](), list[Any]()
        settings = load({"bootstrap_servers": "127.0.0.1:1", "console_secret": secret}).values
        self.pauses = DurablePauses(
            topic, settings, lambda *sent: self.sent.append(sent), lambda *place: self.applied.append(place)
        )

    def comes(self, key: bytes | None, value: bytes | None, headers: Any = ()) -> None:
        record: Any = SimpleNamespace(key=key, value=value, headers=headers)
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
    assert [(key, value is None) for _, value, key, _, _ in case.sent] == [(KEY, False), (KEY, True)]


def test_the_pause_of_another_process_takes_effect_here() -> None:
    case = Case()
    case.comes(KEY, b'{"why": "a test", "at_ms": 1}')
    case.comes(KEY, None)
    assert case.applied == [(None, "orders", 0, "a test"), (None, "orders", 0, None)]


def test_the_own_record_is_applied_once() -> None:
    case = Case()
    case.pauses.keep("orders", 0, "eu", "a test")
    (_, value, key, _, _) = case.sent[0]
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


def test_with_a_secret_only_signed_records_pause_or_resume() -> None:
    sender, case = Case("s" * 40), Case("s" * 40)
    sender.pauses.keep("orders", 0, None, "a test")
    sender.pauses.drop("orders", 0, None)
    [(_, value, key, _, headers), (_, _, _, _, of_end)] = sender.sent
    case.comes(key, value)
    case.comes(key, value, [("awoke-signature", b"x" * 32)])
    case.comes(key_of(None, "orders", 1), value, headers)
    case.comes(key, value + b" ", headers)
    case.comes(key, value, of_end)
    for other in (Case("t" * 40), Case("s" * 40, topic="others")):
        other.comes(key, value, headers)
        assert other.applied == []
    assert case.applied == []
    case.comes(key, value, headers)
    case.comes(key, None)
    case.comes(key, None, headers)
    assert case.applied == [(None, "orders", 0, "a test")]
    case.comes(key, None, of_end)
    assert case.applied[1:] == [(None, "orders", 0, None)]
