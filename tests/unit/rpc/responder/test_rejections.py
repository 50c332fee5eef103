"""Calls that are not executed: each reason of the engine's has its error."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast

import pytest

from awoke._native import CallReplies, IncomingCall
from awoke.observe.events import Events
from awoke.rpc import ResourceExhausted
from awoke.rpc.protocol import read_problem
from awoke.rpc.responder.answers import Answers
from awoke.rpc.responder.methods import Rpc
from awoke.rpc.responder.rejections import Rejections

SOURCE = Path(__file__).resolve().parents[4] / "crates" / "engine" / "src" / "rpc" / "responder" / "request.rs"


def names_of(enum: str) -> set[str]:
    """The names of an enum's variants, as the engine has them."""
    implementation = re.search(rf"^impl {enum} \{{(.*?)^\}}", SOURCE.read_text(), re.MULTILINE | re.DOTALL)
    assert implementation is not None
    return set(re.findall(r'=> "([a-z_]+)"', implementation[1]))


class FakeCall:
    method, caller, cached_body = "quote", "web", b"1"
    place = ("shop.rpc.calls", 2, 7)
    times_s = (10.0, 4_000.0, 6.0, 0.0)


class Fakes:
    """The parts that a responder's rejections use; collects the endings of calls."""

    def __init__(self) -> None:
        self.ended: list[tuple[Any, ...]] = []

    def finish(self, _: Any, kind: str, body: bytes, code: str | None, is_shared: bool) -> None:
        problem = read_problem(body)
        assert (problem.code, problem.is_rejected, is_shared) == (code, True, False)
        self.ended.append((kind, problem))

    def answer(self, _: Any, kind: str, body: bytes, code: str | None, outcome: str) -> None:
        self.ended.append((kind, body, code, outcome))

    def settle(self, _: Any, delay_s: float) -> None:
        self.ended.append(("settled", delay_s))


def ended(kind: str, reason: str) -> tuple[list[tuple[Any, ...]], list[Any]]:
    """Ends a call that is not executed for this reason; returns its endings and events."""
    fakes, events, seen = Fakes(), Events(), list[Any]()
    events.subscribe("rpc.refused", seen.append)
    answers, replies = cast(Answers, fakes), cast(CallReplies, fakes)
    Rejections(Rpc("shop"), events, answers, replies).end(cast(IncomingCall, FakeCall()), kind, reason)
    return fakes.ended, seen


@pytest.mark.parametrize("reason", sorted(names_of("RejectReason")))
def test_every_reason_of_the_engine_has_an_error_for_the_caller(reason: str) -> None:
    (((kind, problem),), events) = ended("rejected", reason)
    assert (kind, events) == ("error", [])
    assert problem.message
    assert (problem.retry_after_s is not None) == (problem.code == ResourceExhausted.code)


@pytest.mark.parametrize("reason", sorted(names_of("InvalidRequest")))
def test_a_record_without_a_reply_is_an_event(reason: str) -> None:
    endings, (event,) = ended("invalid", reason)
    assert endings == [("settled", 0.0)]
    assert (event.fields["reason"], event.fields["partition"], event.fields["offset"]) == (reason, 2, 7)


def test_a_repeated_call_gets_the_cached_answer() -> None:
    endings, events = ended("cached", "reply")
    assert (endings, events) == ([("reply", b"1", None, "cached")], [])
