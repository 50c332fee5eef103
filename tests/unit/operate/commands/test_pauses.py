"""Durable pauses, as one process knows them. With brokers: `tests/contract/test_console_commands.py`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from awoke.operate.commands.pauses import DurablePauses, key_of, place_of
from awoke.settings import load


class Case:
    """The pauses of a process, and what they send and apply."""

    def __init__(self, secret: str | None = None, topic: str = "pauses") -> None:
        self.sent, self.applied, self.offset = list[Any](), list[Any](), 0
        settings = load({"bootstrap_servers": "127.0.0.1:1", "console_secret": secret}).values
        self.pauses = DurablePauses(topic, settings, self._send, lambda *place: self.applied.append(place))

    def _send(self, *sent: Any) -> int:
        self.sent.append(sent)
        self.offset += 1
        return self.offset

    def comes(self, key: bytes | None, value: bytes | None, headers: Any = ()) -> None:
        self.offset += 1
        record: Any = SimpleNamespace(key=key, value=value, headers=headers, offset=self.offset)
        self.pauses._on_record(record)
        self.pauses._write_again()


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


@pytest.mark.parametrize("value", [None, b"x"], ids=["a tombstone", "no pause"])
def test_a_record_that_another_writer_puts_over_a_pause_is_covered_by_the_pause_again(value: bytes | None) -> None:
    sender, case, begins = Case("s" * 40), Case("s" * 40), Case("s" * 40)
    sender.pauses.keep("orders", 0, None, "a test")
    [(_, pause, key, _, headers)] = sender.sent
    case.comes(key_of(None, "orders", 1), value)
    case.comes(key, pause, headers)
    assert case.sent == []
    case.comes(key, value)
    (again,) = case.sent
    assert again[1:3] + again[4:] == (pause, key, headers), "the same record, so that the others need not write it"
    case.comes(key, pause, headers)
    assert len(case.sent) == 1
    for each in (pause, value, value):
        begins.comes(key, each, headers if each is pause else ())
    assert len(begins.sent) == 2
    begins.offset = 0
    begins.comes(key, value)  # It stands before what was written since.
    assert len(begins.sent) == 2


def test_a_signed_record_that_is_repeated_later_changes_nothing() -> None:
    sender, case = Case("s" * 40), Case("s" * 40)
    sender.pauses.keep("orders", 0, None, "a test")
    sender.pauses.drop("orders", 0, None)
    [(_, pause, key, _, of_pause), (_, end, _, _, of_end)] = sender.sent
    case.comes(key, pause, of_pause)
    case.comes(key, end, of_end)
    case.comes(key, pause, of_pause)
    assert case.pauses.find("eu", "orders", 0) is None
    assert [(sent[1], sent[4]) for sent in case.sent] == [(None, of_end)]
    assert case.applied == [(None, "orders", 0, "a test"), (None, "orders", 0, None)]
    forged = [(name, b"9" * 15 if name == "awoke-resumed-at" else each) for name, each in of_end]
    case.pauses.keep("orders", 0, None, "again")
    case.comes(key, None, forged)
    assert case.pauses.find("eu", "orders", 0) == "again"


def test_without_a_secret_places_that_are_not_paused_are_not_kept() -> None:
    case = Case()
    for number in range(100):
        case.comes(key_of(None, "orders", number), None)
    assert case.pauses._known == {}
