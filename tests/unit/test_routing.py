"""Routes and what they refuse."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Annotated, Any

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


class Plain(awoke.Consumer):
    def consume(self, batch: awoke.Batch[bytes]) -> None:
        pass


class Async(awoke.Consumer):
    async def consume(self, batch: awoke.Batch[bytes]) -> None:
        pass


@pytest.mark.parametrize(
    ("target", "options", "why"),
    [
        (Async, {}, "event loop"),
        (Plain, {"concurrency": awoke.by_key(4)}, "concurrency"),
        (Plain, {"own_thread": 1}, "True or False"),
    ],
)
def test_a_thread_of_its_own_is_refused_where_it_makes_no_sense(
    target: type[awoke.Consumer], options: dict[str, object], why: str
) -> None:
    with pytest.raises(awoke.ConfigError, match=why) as refused:
        awoke.App("app").consumer("topic", **{"own_thread": True, **options})(target)  # type: ignore[arg-type]
    assert refused.value.property == "own_thread"


def to_yield(message: awoke.Message[bytes]) -> Iterator[bytes]:
    yield b"1"


async def to_yield_later(message: awoke.Message[bytes]) -> AsyncIterator[awoke.Outgoing]:
    yield awoke.Outgoing("other", b"1")


class Unwritable:
    """A class that JSON can't hold."""


def to_yield_a_class(message: awoke.Message[bytes]) -> Iterator[Unwritable]:
    yield Unwritable()


def test_results_go_to_the_first_of_several_outputs_unless_they_name_another() -> None:
    app = awoke.App("app")
    app.on("orders", output=["out", "other"], dead_letter="dead")(print)
    app.on("payments", output="out")(print)
    app.on("refunds")(print)
    several, one, none = (app.routes[each] for each in ("orders", "payments", "refunds"))
    assert (several.outputs, several.output, several.topics_out) == (["out", "other"], "out", ["out", "other", "dead"])
    assert (one.outputs, one.output, one.topics_out) == (["out"], "out", ["out"])
    assert (none.outputs, none.output, none.topics_out) == ([], None, [])


@pytest.mark.parametrize(
    ("outputs", "said"),
    [
        (["out", "orders"], "route 'orders': is its own output"),
        (["out", 7], "output is given as in output='orders.out', not 7"),
        (["out", "no topic"], "output"),
        (["out", ""], "output"),
    ],
)
def test_each_of_several_outputs_is_checked(outputs: Any, said: str) -> None:
    with pytest.raises(awoke.ConfigError, match=said) as refused:
        awoke.App("app").on("orders", output=outputs)(print)
    assert refused.value.property == "output"


def test_a_topic_of_several_outputs_keeps_its_types() -> None:
    app = awoke.App("app")
    app.on("orders", output=["out", awoke.Topic("priced", key=int)])(print)
    assert app.middleware[-1](awoke.Outgoing("priced", b"", 7)).key == b"7"


@pytest.mark.parametrize("function", [to_yield, to_yield_later])
def test_a_generator_needs_an_output(function: Any) -> None:
    app = awoke.App("app")
    with pytest.raises(awoke.ConfigError, match="has a yield"):
        app.on("orders")(function)
    app.on("orders", output="out")(function)
    assert app.routes["orders"].is_async is (function is to_yield_later)


def test_what_a_generator_yields_must_be_a_value_that_can_be_sent() -> None:
    with pytest.raises(awoke.ConfigError, match=r"to_yield_a_class returns .*, which can't be sent"):
        awoke.App("app").on("orders", output="out")(to_yield_a_class)


def around(message: Any, call_next: Any) -> Any:
    return call_next(message)


def test_middleware_of_a_route_is_checked_where_the_route_is_made() -> None:
    app = awoke.App("app")
    app.on("orders", incoming=[around])(print)
    assert list(app.around(app.routes["orders"])) == [around]
    with pytest.raises(
        awoke.ConfigError, match=r"route 'payments': incoming: .* is called with the message"
    ) as refused:
        app.on("payments", incoming=[len])(print)  # type: ignore[list-item]
    assert refused.value.property == "incoming"


def test_an_argument_of_a_handler_says_the_types_of_the_route() -> None:
    app = awoke.App("app")

    @app.on("orders")
    def handle(count: awoke.Value[int], id: awoke.Key[str]) -> None: ...

    assert app.routes["orders"].types == (int, str)
    with pytest.raises(awoke.ConfigError, match=r"value=str contradicts the annotation of .*handle, which takes int"):
        app.on("payments", value=str)(handle)


def test_an_async_function_under_a_def_is_refused_where_the_route_is_made() -> None:
    async def session() -> str:
        return "session"

    def handle(message: awoke.Message[bytes], it: Annotated[str, awoke.Depends(session)]) -> None: ...

    with pytest.raises(awoke.ConfigError, match=r"route 'orders': .*handle: depends on .*session, which is async def"):
        awoke.App("app").on("orders")(handle)
