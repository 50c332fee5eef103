"""Events of the app: failures of its functions are counted by the function's owner, and have their traceback."""

from __future__ import annotations

import logging

import pytest

from awoke.observe.events import AppStopped, BackgroundFailure, ClockStepped, Event, ShutdownFailed, ThreadLeaked
from tests.support.events import example_of


@pytest.mark.parametrize(
    ("event", "labels"),
    [
        (example_of(ShutdownFailed, function="close"), ("close",)),
        (example_of(BackgroundFailure, owner="orders[0]", function="flush"), ("orders[0]",)),
        (example_of(ThreadLeaked, owner="orders[0]", thread="mine"), ("orders[0]",)),
        (example_of(ClockStepped), ()),
    ],
    ids=lambda value: value.name if isinstance(value, Event) else "",
)
def test_what_goes_wrong_beside_the_routes_is_counted_by_its_owner(event: Event, labels: tuple[str, ...]) -> None:
    assert event.label_values == labels
    assert event.log_level >= logging.WARNING
    assert event.is_traced is event.is_of_user_code is ("error" in event.fields)


def test_a_stop_is_told_with_its_outcome_and_counted_by_none() -> None:
    event = AppStopped(app="shop", is_clean=False)
    assert event.fields == {"app": "shop", "is_clean": False}
    assert (event.log_level, event.counter) == (logging.INFO, None)
