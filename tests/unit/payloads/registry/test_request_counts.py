"""The counters of requests: their number, their time, and which ones count as errors."""

from __future__ import annotations

import asyncio

import pytest

from awoke.payloads.registry.errors import (
    InvalidSchema,
    RegistryRefused,
    RegistryUnauthorized,
    RegistryUnavailable,
    SchemaIncompatible,
    SchemaNotFound,
)
from awoke.payloads.registry.transport import RequestCounts


class Clock:
    now_s = 5.0

    def __call__(self) -> float:
        return self.now_s


def test_requests_and_their_time_are_counted() -> None:
    clock = Clock()
    counts = RequestCounts(clock)
    for _ in range(2):
        with counts.request():
            clock.now_s += 0.25
    assert counts.values() == {"requests": 2, "errors": 0, "wait_s": 0.5}


@pytest.mark.parametrize(
    ("error", "errors"),
    [
        (RegistryUnavailable("away"), 1),
        (RegistryUnauthorized("no access"), 1),
        (RegistryRefused("no JSON"), 1),
        (asyncio.CancelledError(), 1),
        (SchemaNotFound("not there"), 0),
        (SchemaIncompatible("not compatible"), 0),
        (InvalidSchema("no schema"), 0),
    ],
    ids=lambda each: type(each).__name__,
)
def test_an_answer_is_no_error(error: BaseException, errors: int) -> None:
    counts = RequestCounts()
    with pytest.raises(type(error)), counts.request():
        raise error
    assert (counts.values()["requests"], counts.values()["errors"]) == (1, errors)


def test_a_forked_child_is_not_blocked_by_a_lock_of_its_parent() -> None:
    counts = RequestCounts()
    counts._lock.acquire()
    counts.renew_lock()
    assert counts.values()["requests"] == 0
