"""Routes and what they refuse."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
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


def test_an_app_without_routes_does_not_start() -> None:
    with pytest.raises(awoke.ConfigError, match="has no route"):
        awoke.AppRunner(awoke.App("empty")).start()


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
    assert app.topic_formats(awoke.Outgoing("priced", b"", 7)).key == b"7"


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
