"""Several handlers of one topic: each message goes to the first that takes it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from types import SimpleNamespace
from typing import Annotated, Any

import msgspec
import pytest

import awoke
from awoke.declare.choosing import Handlers, choice, union
from awoke.declare.injection import Depends, Header, Key, Value
from awoke.declare.route_options import KindOptions
from awoke.declare.routing import Route
from tests.support.formats import value_decoder


class Placed(msgspec.Struct, tag=True):
    id: int


class Rushed(Placed, tag=True):
    until: str


class Paid(msgspec.Struct, tag=True):
    id: int


def message(value: Any = None, *headers: tuple[str, bytes | None]) -> Any:
    return SimpleNamespace(topic="orders", partition=0, offset=7, value=value, headers=list(headers))


def returns(name: str) -> Callable[[Any], str]:
    return lambda message: name


def chosen(handlers: Handlers, *messages: Any) -> list[Any]:
    return [handlers(each) for each in messages]


def test_a_message_goes_to_the_handler_of_its_class_or_of_a_base_of_it() -> None:
    handlers = Handlers()
    handlers.of_type(Rushed)(returns("rushed"))
    handlers.of_type(Placed)(returns("placed"))
    handlers.of_type(Paid)(returns("paid"))
    found = chosen(handlers, message(Placed(1)), message(Rushed(1, "noon")), message(Paid(1)))
    assert found == ["placed", "rushed", "paid"]


def test_the_first_handler_that_takes_a_message_gets_it() -> None:
    handlers = Handlers()
    handlers.of_type(Placed)(returns("placed"))
    handlers.of_type(Rushed)(returns("never"))
    assert chosen(handlers, message(Rushed(1, "noon"))) == ["placed"]


def test_a_message_goes_by_a_header_the_last_of_its_name() -> None:
    handlers = Handlers()
    handlers.with_header("kind", "placed")(returns("text"))
    handlers.with_header("kind", b"\xff")(returns("bytes"))
    handlers.with_header("kind")(returns("any"))
    handlers.default(returns("default"))
    found = chosen(
        handlers,
        message(None, ("kind", b"placed")),
        message(None, ("kind", b"\xff")),
        message(None, ("kind", b"placed"), ("kind", b"other")),
        message(None, ("kind", None)),
        message(None, ("other", b"placed")),
        message(None),
    )
    assert found == ["text", "bytes", "any", "any", "default", "default"]


def test_a_message_goes_by_a_predicate_whose_error_is_its_failure() -> None:
    handlers = Handlers()
    handlers.when(lambda message: message.value > 10)(returns("large"))
    handlers.default(returns("small"))
    assert chosen(handlers, message(11), message(10)) == ["large", "small"]
    with pytest.raises(TypeError):
        handlers(message("text"))


def test_the_default_comes_last_wherever_it_was_written() -> None:
    handlers = Handlers()
    handlers.default(returns("default"))
    handlers.of_type(Paid)(returns("paid"))
    assert chosen(handlers, message(Paid(1)), message(Placed(1))) == ["paid", "default"]
    assert handlers.cases[-1].takes is None


def test_without_a_default_a_message_that_no_handler_takes_fails() -> None:
    handlers = Handlers()
    handlers.of_type(Paid)(returns("paid"))
    with pytest.raises(
        awoke.NoHandler, match=r"orders\[0\]@7: no handler takes this message, and there is no"
    ) as failed:
        handlers(message(Placed(1)))
    assert (failed.value.topic, failed.value.partition, failed.value.offset) == ("orders", 0, 7)
    assert isinstance(failed.value, awoke.DecodeError), "another attempt would end in the same way"


def test_a_choice_asks_no_further_than_the_first_that_takes_the_message() -> None:
    asked: list[str] = []

    def takes(name: str, answer: bool) -> Any:
        def ask(message: Any) -> bool:
            asked.append(name)
            return answer

        return ask

    call = choice(
        [(takes("a", False), returns("a")), (takes("b", True), returns("b")), (takes("c", True), returns("c"))]
    )
    assert (call(message()), asked) == ("b", ["a", "b"])


def test_a_decorator_returns_its_function() -> None:
    handlers, handle = Handlers(), returns("it")
    decorators = (handlers.of_type(Paid), handlers.with_header("kind"), handlers.when(lambda message: True))
    assert [decorate(handle) for decorate in (*decorators, handlers.default)] == [handle] * 4


def of_placed(message: awoke.Message[Placed]) -> None: ...
def of_value(value: Value[Paid]) -> None: ...
def of_anything(message: awoke.Message[Any]) -> None: ...
async def of_placed_later(message: awoke.Message[Placed]) -> None: ...
def of_header(message: awoke.Message[bytes], kind: Annotated[str, Header("kind")]) -> None: ...
def wrong(message: awoke.Message[bytes], more: int) -> None: ...
async def session() -> str: ...  # type: ignore[empty-body]
def of_session(message: awoke.Message[bytes], it: Annotated[str, Depends(session)]) -> None: ...


def route(handlers: Handlers, output: Any = None, **options: Any) -> Route:
    return Route("orders", handlers, options, KindOptions(output=output))  # type: ignore[arg-type]


def test_the_type_of_a_route_is_the_union_of_those_of_its_handlers() -> None:
    handlers = Handlers()
    handlers.when(lambda message: True)(of_placed)
    handlers.when(lambda message: True)(of_value)
    handlers.of_type(Rushed)(of_anything)
    assert handlers.value_type == Placed | Paid | Rushed
    decode: Any = value_decoder(route(handlers))
    assert decode(b'{"type": "Paid", "id": 7}') == Paid(7)
    assert decode(b'{"type": "Rushed", "id": 7, "until": "noon"}') == Rushed(7, "noon")


def test_one_type_is_no_union_and_no_type_leaves_the_values_as_bytes() -> None:
    one, none = Handlers(), Handlers()
    one.when(lambda message: True)(of_placed)
    one.default(of_anything)
    none.default(of_anything)
    assert (one.value_type, none.value_type) == (Placed, None)
    assert route(one).types == (Placed, None)
    assert not route(none).is_typed


def test_a_type_of_the_route_counts_and_each_handler_takes_a_part_of_its_values() -> None:
    handlers = Handlers()
    handlers.of_type(Placed)(of_anything)
    handlers.default(of_anything)
    assert route(handlers, value=Placed | Paid).types == (Placed | Paid, None)


def of_placed_by_number(message: awoke.Message[Placed, int]) -> None: ...
def of_key(value: Value[Placed], key: Key[int]) -> None: ...


def test_the_type_of_the_keys_is_that_of_the_handlers_too() -> None:
    handlers = Handlers()
    handlers.when(lambda message: True)(of_placed_by_number)
    handlers.when(lambda message: True)(of_key)
    handlers.default(of_anything)
    assert route(handlers).types == (Placed, int)
    assert route(handlers, key=str).types == (Placed, str)


def test_types_are_one_union_without_those_that_say_nothing() -> None:
    assert (union([None, int, None, str, int]), union([bytes]), union([None])) == (int | str, bytes, None)


def test_a_type_of_a_function_around_the_handlers_is_found() -> None:
    class Local(msgspec.Struct):
        id: int

    handlers = Handlers()

    @handlers.default
    def handle(message: awoke.Message[Local]) -> None: ...

    assert handlers.value_type is Local


def test_a_route_has_the_names_and_the_arguments_of_all_of_its_handlers() -> None:
    handlers = Handlers()
    handlers.with_header("kind")(of_header)
    handlers.default(of_anything)
    made = route(handlers)
    assert made.name == "of_header, of_anything"
    assert [[each.name for each in parameters.by_name] for parameters in made.all_parameters] == [["kind"], []]
    assert not made.is_async


def of_yield(message: awoke.Message[bytes]) -> Iterator[bytes]:
    yield b"1"


async def of_async_yield(message: awoke.Message[bytes]) -> AsyncIterator[bytes]:
    yield b"1"


def test_handlers_that_yield_are_of_their_kind() -> None:
    plain, later = Handlers(), Handlers()
    for handlers, functions in ((plain, (of_anything, of_yield)), (later, (of_placed_later, of_async_yield))):
        for each in functions:
            handlers.when(lambda message: True)(each)
    assert (route(plain, "out").is_async, route(later, "out").is_async) == (False, True)


# What is refused.


@pytest.mark.parametrize(
    "others", [(of_anything, of_placed_later), (of_yield, of_async_yield), (of_placed_later, of_yield)]
)
def test_handlers_of_both_kinds_are_refused(others: Any) -> None:
    handlers = Handlers()
    for each in others:
        handlers.when(lambda message: True)(each)
    with pytest.raises(awoke.ConfigError, match=r"route 'orders': .*all handlers must be def, or all async def: of_"):
        route(handlers, "out")


def test_a_route_of_no_handler_is_refused() -> None:
    with pytest.raises(awoke.ConfigError, match="there is no handler yet; decorate them before the route is made"):
        awoke.App("app").on("orders")(Handlers())


def test_a_handler_that_comes_after_its_route_is_refused() -> None:
    handlers = Handlers()
    handlers.of_type(Placed)(of_anything)
    awoke.App("app").on("orders")(handlers)
    decorators: list[Any] = [handlers.of_type(Paid), handlers.with_header("kind"), handlers.default]
    for decorate in decorators:
        with pytest.raises(
            awoke.ConfigError, match="of_placed: comes too late: a route was made of the handlers before"
        ):
            decorate(of_placed)
    assert len(handlers.cases) == 1


def test_a_second_default_is_refused() -> None:
    handlers = Handlers()
    handlers.default(of_anything)
    with pytest.raises(awoke.ConfigError, match="there is a default already: of_anything"):
        handlers.default(of_placed)


@pytest.mark.parametrize("kind", [int | str, "Placed", list[int], None])
def test_a_type_that_is_no_class_is_refused(kind: Any) -> None:
    with pytest.raises(awoke.ConfigError, match="of_type takes a class, not"):
        Handlers().of_type(kind)


@pytest.mark.parametrize("takes", [of_placed_later, of_yield, "text"])
def test_a_predicate_that_can_not_answer_is_refused(takes: Any) -> None:
    with pytest.raises(awoke.ConfigError, match="when: "):
        Handlers().when(takes)


class Class(awoke.Consumer):
    def consume(self, batch: awoke.Batch[bytes]) -> None: ...


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (wrong, "handlers: wrong: awoke calls it with one argument, the message"),
        ("text", "handlers: text: a handler is a function"),
        (Class, "handlers: Class: is a class"),
        (of_session, "handlers: of_session: depends on session, which is async def; make the handler async def"),
    ],
)
def test_a_function_that_can_not_be_called_is_refused_where_it_is_decorated(function: Any, words: str) -> None:
    handlers = Handlers()
    for decorate in (handlers.of_type(Placed), handlers.with_header("kind"), handlers.default):
        with pytest.raises(awoke.ConfigError, match=words):
            decorate(function)
    assert handlers.cases == []


def test_a_handler_that_yields_needs_an_output() -> None:
    handlers = Handlers()
    handlers.default(of_yield)
    with pytest.raises(awoke.ConfigError, match="route 'orders': of_yield: of_yield has a yield"):
        route(handlers)
    assert route(handlers, "out").outputs == ["out"]
