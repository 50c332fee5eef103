"""Routes and what they refuse."""

from __future__ import annotations

import pytest

import awoke


def test_a_topic_has_one_route() -> None:
    app = awoke.App("app")
    app.on("topic")(print)
    with pytest.raises(awoke.ConfigError, match="has a route already"):
        app.on("topic")(repr)


def test_a_consumer_must_be_one() -> None:
    with pytest.raises(awoke.ConfigError, match=r"derives from awoke\.Consumer"):
        awoke.App("app").consumer("topic")(dict)  # type: ignore[type-var]


def test_back_off_doubles_up_to_its_limit() -> None:
    retry = awoke.Retry(backoff_s=(1.0, 5.0), jitter=0.0)
    assert [retry.delay_s(attempt) for attempt in (1, 2, 3, 4, 1000)] == [1.0, 2.0, 4.0, 5.0, 5.0]


@pytest.mark.parametrize("wrong", [{"attempts": 0}, {"backoff_s": (2.0, 1.0)}, {"backoff_s": (-1.0, 1.0)}])
def test_a_retry_that_makes_no_sense_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(awoke.ConfigError):
        awoke.Retry(**wrong)  # type: ignore[arg-type]


def test_an_app_without_routes_does_not_start() -> None:
    with pytest.raises(awoke.ConfigError, match="has no route"):
        awoke.AppRunner(awoke.App("empty")).start()
