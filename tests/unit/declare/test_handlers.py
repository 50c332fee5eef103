"""User code before it runs: a body that would never run is refused."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any
from unittest.mock import AsyncMock

import pytest

import awoke
from awoke.declare.handlers import check_ran, kind_of

Decorated = Callable[..., Any]


def a_generator(message: awoke.Message[bytes]) -> Iterator[int]:
    yield 1


async def an_async_generator(message: awoke.Message[bytes]) -> AsyncIterator[int]:
    yield 1


async def a_coroutine_function(message: awoke.Message[bytes]) -> None: ...


def without_parameter() -> None: ...
def with_two(message: awoke.Message[bytes], other: int) -> None: ...
def with_keyword(message: awoke.Message[bytes], *, other: int) -> None: ...


class Callables:
    """Objects that are called as functions are."""

    class Async:
        async def __call__(self, message: awoke.Message[bytes]) -> None: ...

    class Generator:
        def __call__(self, message: awoke.Message[bytes]) -> Iterator[int]:
            yield 1


@pytest.mark.parametrize(
    "function",
    [
        a_generator,
        an_async_generator,
        functools.partial(a_generator),
        Callables.Generator(),
        without_parameter,
        with_two,
        with_keyword,
        functools.partial(without_parameter),
        Callables,
        "text",
    ],
)
def test_a_function_whose_body_would_never_run_is_refused(function: Any) -> None:
    with pytest.raises(awoke.ConfigError, match="route 'orders'") as refused:
        awoke.App("app").on("orders")(function)
    assert refused.value.property == "handler"


def test_an_object_with_an_async_call_is_awaited() -> None:
    app = awoke.App("app")
    app.on("orders")(Callables.Async())
    app.on("others")(functools.partial(a_coroutine_function))
    app.on("mocked")(AsyncMock())
    assert {topic for topic, route in app.routes.items() if route.is_async} == {"orders", "others", "mocked"}


@pytest.mark.parametrize("function", [print, lambda *all: None, lambda message, more=1: None, [].append])
def test_a_function_that_takes_a_message_is_taken(function: Any) -> None:
    awoke.App("app").on("orders")(function)


def test_a_decorator_may_add_arguments() -> None:
    @functools.wraps(with_two)
    def give_more(message: awoke.Message[bytes]) -> None:
        with_two(message, 2)

    awoke.App("app").on("orders")(give_more)


def test_decorators_need_their_parentheses() -> None:
    app = awoke.App("app")
    with pytest.raises(awoke.ConfigError, match=r"with_two: @app\.on needs parentheses"):
        app.on(with_two)  # type: ignore[arg-type]
    with pytest.raises(awoke.ConfigError, match=r"@app\.consumer needs parentheses"):
        app.consumer(awoke.Consumer)  # type: ignore[arg-type]


class WithoutConsume(awoke.Consumer):
    def process(self, batch: awoke.Batch[bytes]) -> None: ...


class WithYield(awoke.Consumer):
    def consume(self, batch: awoke.Batch[bytes]) -> Iterator[int]:
        yield 1


class WithAsyncYield(awoke.Consumer):
    async def consume(self, batch: awoke.Batch[bytes]) -> AsyncIterator[int]:
        yield 1


class WithoutBatch(awoke.Consumer):
    def consume(self) -> None: ...


class WithTwo(awoke.Consumer):
    def consume(self, batch: awoke.Batch[bytes], more: int) -> None: ...


class WithAsyncHook(awoke.Consumer):
    def consume(self, batch: awoke.Batch[bytes]) -> None: ...
    async def assigned(self) -> None: ...


class WithHookThatYields(awoke.Consumer):
    async def consume(self, batch: awoke.Batch[bytes]) -> None: ...
    def tick(self) -> Iterator[int]:
        yield 1


class WithHookThatTakesMore(awoke.Consumer):
    def consume(self, batch: awoke.Batch[bytes]) -> None: ...
    def revoked(self, partition: int) -> None: ...  # type: ignore[override]


class WithArguments(awoke.Consumer):
    def __init__(self, store: object) -> None: ...
    def consume(self, batch: awoke.Batch[bytes]) -> None: ...


@pytest.mark.parametrize(
    ("consumer", "words"),
    [
        (WithoutConsume, "has no method consume"),
        (WithYield, "consume: .* has a yield"),
        (WithAsyncYield, "consume: .* has a yield"),
        (WithoutBatch, "consume: awoke calls it with one argument"),
        (WithTwo, "consume: awoke calls it with one argument"),
        (WithAsyncHook, "assigned: is async def, but consume is not"),
        (WithHookThatYields, "tick: .* has a yield"),
        (WithHookThatTakesMore, "revoked: awoke calls it with no argument"),
        (WithArguments, "__init__: awoke calls it with no argument"),
    ],
)
def test_a_class_whose_methods_would_never_run_is_refused(consumer: type[awoke.Consumer], words: str) -> None:
    with pytest.raises(awoke.ConfigError, match=words):
        awoke.App("app").consumer("orders")(consumer)


class WithStaticMethod(awoke.Consumer):
    @staticmethod
    def consume(batch: awoke.Batch[bytes]) -> None: ...


class WithMixedHooks(awoke.Consumer):
    async def consume(self, batch: awoke.Batch[bytes]) -> None: ...
    def assigned(self) -> None: ...
    async def shutdown(self) -> None: ...


@pytest.mark.parametrize("consumer", [WithStaticMethod, WithMixedHooks])
def test_a_class_whose_methods_run_is_taken(consumer: type[awoke.Consumer]) -> None:
    awoke.App("app").consumer("orders")(consumer)


def test_a_class_is_no_function() -> None:
    with pytest.raises(awoke.ConfigError, match=r"@app\.consumer"):
        awoke.App("app").on("orders")(WithMixedHooks)


@pytest.mark.parametrize("wrong", [a_coroutine_function, a_generator])
def test_a_function_that_nothing_would_await_is_refused(wrong: Any) -> None:
    app = awoke.App("app")
    decorators: list[Decorated] = [
        app.before_fork,
        app.after_fork,
        app.outgoing,
        lambda function: app.on("a", flow=awoke.Flow(where=function))(print),
        lambda function: app.on("b", concurrency=awoke.by(function, 4))(print),
    ]
    for decorate in decorators:
        with pytest.raises(awoke.ConfigError):
            decorate(wrong)


def test_a_subscriber_that_nothing_would_await_is_refused() -> None:
    with pytest.raises(awoke.ConfigError, match=r"job\.failed"):
        awoke.App("app").events.subscribe("job.failed", a_coroutine_function)  # type: ignore[arg-type]


@pytest.mark.parametrize("call", [a_generator, an_async_generator, a_coroutine_function])
def test_a_result_that_has_not_run_is_an_error(call: Decorated) -> None:
    with pytest.raises(awoke.HandlerDidNotRun, match="its body has not run"):
        check_ran(call(None), "handle")


@pytest.mark.parametrize("result", [b"value", {"id": 1}, 0, (), iter([])])
def test_any_other_result_is_none(result: object) -> None:
    check_ran(result, "handle")


def test_a_kind_is_found_under_partials() -> None:
    kinds = [
        kind_of(functools.partial(each)) for each in (a_generator, an_async_generator, a_coroutine_function, print)
    ]
    assert kinds == ["generator", "async generator", "async def", "def"]
