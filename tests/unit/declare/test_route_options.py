"""The options of routes: limits of batches, retries and flow, and values of the wrong type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import awoke


def handle(message: Any) -> None: ...


def test_back_off_doubles_up_to_its_limit() -> None:
    retry = awoke.Retry(backoff_s=(1.0, 5.0), jitter=0.0)
    assert [retry.delay_s(attempt) for attempt in (1, 2, 3, 4, 1000)] == [1.0, 2.0, 4.0, 5.0, 5.0]


@pytest.mark.parametrize("wrong", [{"attempts": 0}, {"backoff_s": (2.0, 1.0)}, {"backoff_s": (-1.0, 1.0)}])
def test_a_retry_that_makes_no_sense_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(awoke.ConfigError):
        awoke.Retry(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"backoff_s": 1}, r"backoff_s is the first delay and the limit, as in backoff_s=\(0.1, 30.0\), not 1"),
        ({"backoff_s": ("a", "b")}, "backoff_s is the first delay"),
        ({"backoff_s": (1.0, float("nan"))}, "backoff_s is the first delay"),
        ({"attempts": "3"}, "attempts must be a whole number from 1, not '3'"),
        ({"attempts": True}, "attempts must be a whole number from 1"),
        ({"crashes": 0}, "crashes must be a whole number from 1"),
        ({"jitter": 2}, "jitter must be a number from 0 to 1"),
        ({"on": ValueError}, r"on is a tuple of exception classes, as in on=\(OSError,\)"),
        ({"not_on": ("x",)}, "not_on is a tuple of exception classes"),
        ({"on_exhausted": "die"}, "on_exhausted is 'stop', 'skip' or 'pause', not 'die'"),
    ],
)
def test_a_wrong_retry_is_refused_where_it_is_made(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(awoke.ConfigError, match=said):
        awoke.Retry(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "wrong", "said"),
    [
        (awoke.Batching, {"max_messages": "many"}, "Batching: max_messages must be a whole number from 1, not 'many'"),
        (awoke.Batching, {"max_time_s": 0}, "Batching: max_time_s must be a number, more than 0, not 0"),
        (awoke.Flow, {"per_s": "fast"}, "Flow: per_s must be a number, more than 0, not 'fast'"),
        (awoke.Flow, {"delay_s": -1}, "Flow: delay_s must be a number, from 0, not -1"),
        (awoke.Flow, {"where": "x"}, "Flow: where is a function of a message, not 'x'"),
        (awoke.by_key, {"jobs": "a"}, "concurrency: jobs must be a whole number from 1, not 'a'"),
        (awoke.by_key, {"in_flight": 1.5}, "concurrency: in_flight must be a whole number from 1, not 1.5"),
    ],
)
def test_other_wrong_options_are_refused_where_they_are_made(
    make: Callable[..., object], wrong: dict[str, object], said: str
) -> None:
    with pytest.raises(awoke.ConfigError, match=said):
        make(**wrong)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"weight": "a"}, "route 'topic': weight must be a whole number from 1, not 'a'"),
        ({"retry": 3}, r"route 'topic': retry is given as in retry=awoke.Retry\(attempts=3\), not 3"),
        ({"retry": 0}, "retry is given as in"),
        ({"batch": 100}, r"batch is given as in batch=awoke.Batching\(max_messages=100\), not 100"),
        ({"flow": 100}, r"flow is given as in flow=awoke.Flow\(per_s=100\), not 100"),
        ({"dead_letter": 7}, "dead_letter is given as in dead_letter='topic.dead', not 7"),
        ({"output": 7}, "output is given as in output='topic.out', not 7"),
        ({"max_processing_s": "a"}, "max_processing_s must be a number, more than 0, not 'a'"),
    ],
)
def test_a_wrong_option_is_refused_where_the_route_is_made(wrong: dict[str, object], said: str) -> None:
    decorate = awoke.App("app").on("topic", **wrong)  # type: ignore[arg-type]
    with pytest.raises(awoke.ConfigError, match=said):
        decorate(print)


@pytest.mark.parametrize(
    ("group", "said"),
    [
        ("", "route 'orders': group='' is no name of a consumer group, as group='billing' is"),
        (" ", "route 'orders': group=' ' is no name of a consumer group, as group='billing' is"),
        ("audit ", "route 'orders': group='audit ' is no name of a consumer group, as group='billing' is"),
        ("a\0b", "route 'orders': group='a\\x00b' is no name of a consumer group, as group='billing' is"),
        (5, "route 'orders': group is given as in group='billing', not 5"),
    ],
)
def test_a_group_that_is_no_name_is_refused(group: Any, said: str) -> None:
    with pytest.raises(awoke.ConfigError) as refused:
        awoke.App("shop").on("orders", group=group)(handle)
    assert (str(refused.value), refused.value.property) == (said, "group")
