"""The results of a run, as data. `test_route_runs` has what leads to them."""

from __future__ import annotations

from typing import Any

import pytest

import awoke
from awoke.observe.events import HookFailed
from awoke.testing.memory.producing import Sent
from awoke.testing.route_results import Failed, Outcome, Output, RouteRun, State, is_letter
from awoke.testing.route_runs import run_route


def run_of(**changes: Any) -> RouteRun:
    """Returns a run."""
    empty: dict[str, Any] = {"messages": [], "outputs": [], "dead_letters": [], "failures": [], "committed": {}}
    return RouteRun(**{**empty, "state": "completed", "took_s": 0.0, **changes})


def failed(retry_in_s: float | None, error: Exception) -> Failed:
    return Failed(partition=0, offset=0, attempt=1, retry_in_s=retry_in_s, error=error)


def test_values_and_offsets_are_picked_by_topic_and_state() -> None:
    outputs = [Output(topic=topic, value=value) for topic, value in (("a", 1), ("b", 2), ("a", 3))]
    states: list[State] = ["handled", "skipped", "handled"]
    messages = [Outcome(partition=0, offset=at, state=state, attempts=1) for at, state in enumerate(states, 1)]
    run = run_of(outputs=outputs, messages=messages)
    assert (run.values("a"), run.offsets("handled"), run.offsets("waiting")) == ([1, 3], [1, 3], [])


def test_delays_are_those_before_further_attempts() -> None:
    run = run_of(failures=[failed(1.0, ValueError()), failed(0.0, ValueError()), failed(None, ValueError())])
    assert run.delays_s == [1.0, 0.0]


def test_check_raises_the_first_error_or_that_of_a_hook_and_else_returns_the_run() -> None:
    first = ValueError("first")
    hook = HookFailed(hook="revoked", handler="Clicks", topic="a", partition=0, error=KeyError("hook"))
    with pytest.raises(ValueError, match="first") as raised:
        run_of(failures=[failed(1.0, first), failed(None, KeyError("second"))], events=[hook]).check()
    assert raised.value is first
    with pytest.raises(KeyError, match="hook"):
        run_of(events=[hook]).check()
    run = run_of()
    assert run.check() is run


def test_only_records_with_the_headers_of_awoke_are_dead_letters() -> None:
    app = awoke.App("shop")

    @app.on("orders", value=int, dead_letter="dead")
    def charge(message: awoke.Message[int]) -> None:
        app.producer.produce("dead", b"own")

    run = run_route(app, "orders", [b"1", b"junk"])
    assert run.values("dead") == [b"own"]
    assert [(each.topic, each.value, each.offset, each.attempts) for each in run.dead_letters] == [
        ("dead", b"junk", 1, 1)
    ]
    assert not is_letter(app.all_routes[0], Sent("dead", b"", None, [("h", b"")], None, None, b""))
