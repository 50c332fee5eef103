"""The partitions of the topics of replies: looked up again when one is unknown, but not for each call."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

import awoke
from awoke.rpc.responder import reply_topics as module
from awoke.rpc.responder.reply_topics import AGAIN_S, FRESH_S, ReplyTopics
from awoke.settings import Settings
from tests.support.waiting import Collected

NAMES = ["shop.rpc.replies", "other"]


class Lookups:
    """The lookups, which end when they may; and the clock, which a test moves."""

    def __init__(self) -> None:
        self.asked, self.may_end = Collected[list[str]](), threading.Event()
        self.may_end.set()
        self.now_s = 1_000.0
        self.error: Exception | None = None

    def partitions_of(self, settings: Settings, names: Any) -> dict[str, int]:
        self.asked.add(list(names))
        assert self.may_end.wait(30)
        if self.error is not None:
            raise self.error
        return {"other": len(self.asked.items)}


class Case:
    def __init__(self, lookups: Lookups) -> None:
        self.lookups, self.told = lookups, list[Any]()
        self.topics = ReplyTopics(Settings(), NAMES)

    def is_looking_again(self) -> bool:
        return self.topics.is_looking_again(self.told.append)

    def close(self) -> None:
        self.topics.close(time.monotonic() + 30)


@pytest.fixture
def case(monkeypatch: pytest.MonkeyPatch) -> Case:
    lookups = Lookups()
    monkeypatch.setattr(module, "topics", lookups)
    monkeypatch.setattr(module, "monotonic_s", lambda: lookups.now_s)
    return Case(lookups)


def test_topics_are_looked_up_by_name(case: Case) -> None:
    assert case.topics.look_up() == {"other": 1}
    assert case.lookups.asked.items == [sorted(NAMES)]


def test_an_unknown_partition_is_looked_up_once_and_the_result_told(case: Case) -> None:
    case.lookups.may_end.clear()
    assert case.is_looking_again()
    assert case.is_looking_again(), "it may be known soon"
    case.lookups.may_end.set()
    case.close()
    assert len(case.lookups.asked.items) == 1
    assert case.told == [{"other": 1}]


def test_after_a_lookup_a_call_that_was_read_before_is_read_again(case: Case) -> None:
    case.is_looking_again()
    case.close()
    case.lookups.now_s += FRESH_S / 2
    assert case.is_looking_again()
    case.lookups.now_s += FRESH_S
    assert not case.is_looking_again(), "the partition is still unknown"
    assert len(case.lookups.asked.items) == 1


def test_another_lookup_begins_after_a_while(case: Case) -> None:
    case.topics.look_up()
    assert not case.is_looking_again()
    case.lookups.now_s += AGAIN_S
    assert case.is_looking_again()
    case.close()
    assert len(case.lookups.asked.items) == 2
    assert case.told == [{"other": 2}]


def test_a_lookup_that_fails_is_told_in_the_log_and_tried_again_later(
    case: Case, caplog: pytest.LogCaptureFixture
) -> None:
    case.lookups.error = awoke.BrokerUnreachable("no broker")
    assert case.is_looking_again()
    case.close()
    assert case.told == []
    assert "other, shop.rpc.replies could not be looked up: no broker" in caplog.text
    case.lookups.error = None
    case.lookups.now_s += AGAIN_S
    assert case.is_looking_again()
    case.close()
    assert case.told == [{"other": 2}]


def test_the_end_waits_for_a_lookup_until_its_deadline_only(case: Case) -> None:
    case.close()
    case.lookups.may_end.clear()
    case.is_looking_again()
    case.topics.close(case.lookups.now_s)
    assert case.told == []
    case.lookups.may_end.set()
    case.close()
    assert case.told == [{"other": 1}]
