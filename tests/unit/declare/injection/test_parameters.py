"""The parameters of handlers, and of the functions that they depend on: what is read, and what is refused."""

from __future__ import annotations

import functools
import logging
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Annotated, Any, TypeVar

import pytest

import awoke
from awoke.declare.injection import Depends, Header, Key, Value
from awoke.declare.injection.markers import DependsMark
from awoke.declare.injection.parameters import Parameter, Parameters, dependency_of, in_order, overridden
from awoke.declare.injection.sources import Assignment, PerCall
from awoke.settings import Settings
from tests.unit.declare.injection.fakes import WHERE, FakeMessage, app, dependency, names, parameters

Tenant = Annotated[str, Header("tenant")]
Anything = TypeVar("Anything")


class Order: ...


class Session:
    def __init__(self, settings: Settings) -> None: ...


def get(found: Parameters, name: str, received: Any) -> Any:
    """Returns what a parameter gets of a message."""
    (source,) = [each.source for each in found.by_name if each.name == name]
    assert isinstance(source, PerCall)
    return source.get(received)


def test_the_message_is_the_first_argument_and_the_others_are_passed_by_name() -> None:
    def handle(message: awoke.Message[Order, int], tenant: Tenant, producer: awoke.Producer) -> None: ...

    found = parameters(handle)
    assert (names(found), found.takes_received) == (["tenant", "producer"], True)
    assert get(found, "tenant", FakeMessage(headers=[("tenant", b"acme")])) == "acme"
    assert (found.value_type, found.key_type) == (Order, int)


def test_a_handler_may_take_the_message_at_another_place_or_not_at_all() -> None:
    def of_parts(order: Value[Order], id: Key[int]) -> None: ...
    def at_the_end(tenant: Tenant, message: awoke.Message[Order]) -> None: ...
    def by_keyword(*, message: awoke.Message[Order]) -> None: ...

    found = parameters(of_parts)
    assert (names(found), found.takes_received) == (["order", "id"], False)
    assert (found.value_type, found.key_type) == (Order, int)
    found, message = parameters(at_the_end), FakeMessage()
    assert (names(found), found.takes_received, found.value_type) == (["tenant", "message"], False, Order)
    assert get(found, "message", message) is message
    assert (names(parameters(by_keyword)), parameters(by_keyword).takes_received) == (["message"], False)


def test_a_type_that_says_nothing_of_the_values_is_none() -> None:
    def of_any(value: Value[Any]) -> None: ...
    def of_variable(value: Value[Anything], key: Key[object]) -> None: ...

    assert parameters(of_any).value_type is None
    assert (parameters(of_variable).value_type, parameters(of_variable).key_type) == (None, None)


@pytest.mark.parametrize(
    "function",
    [
        print,
        lambda message: None,
        lambda *all, **more: None,
        lambda message, more=1, *, other=2: None,
        [].append,
        functools.partial(lambda more, message: None, 1),
    ],
)
def test_a_handler_that_takes_a_message_needs_no_annotation(function: Any) -> None:
    assert parameters(function) == Parameters()


def test_annotations_that_are_no_text_say_the_same() -> None:
    def handle(message, tenant): ...  # type: ignore[no-untyped-def]

    handle.__annotations__.update(message=awoke.Message[Order], tenant=Tenant)
    found = parameters(handle)
    assert (names(found), found.value_type) == (["tenant"], Order)


def test_names_of_the_function_around_the_handler_are_found() -> None:
    class Local: ...

    name = "region"

    def session(region: Annotated[str, Header(name)]) -> Local:
        return Local()

    def handle(
        value: Value[Local], region: Annotated[str, Header(name)], it: Annotated[Local, Depends(session)]
    ) -> None:
        """Its annotations name what only this function has."""

    found = parameters(handle)
    assert (names(found), found.value_type) == (["value", "region", "it"], Local)
    assert get(found, "region", FakeMessage(headers=[("region", b"eu")])) == "eu"
    (inner,) = dependency(found, "it").parameters
    assert inner.name == "region"


def read_beside_something() -> tuple[Parameters, weakref.ref[Order]]:
    kept = Order()

    def session(region: Annotated[str, Header("region")]) -> str:
        return region

    def handle(message: awoke.Message[bytes], it: Annotated[str, Depends(session)]) -> None: ...

    return parameters(handle), weakref.ref(kept)


def test_what_was_read_keeps_nothing_of_the_function_around_the_handler() -> None:
    found, freed = read_beside_something()
    assert (names(found), freed()) == (["it"], None)


def passes_on(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return call


def test_what_a_decorator_passes_on_is_read_of_the_function_within() -> None:
    @passes_on
    def handle(message: awoke.Message[Order], tenant: Tenant, more: int = 1) -> None: ...

    @passes_on
    def without_message(tenant: Tenant, id: Key[int]) -> None: ...

    @passes_on
    def by_keyword(*, message: awoke.Message[Order]) -> None: ...

    assert (names(parameters(handle)), parameters(handle).takes_received) == (["tenant"], True)
    assert (names(parameters(without_message)), parameters(without_message).takes_received) == (["tenant", "id"], False)
    assert (names(parameters(by_keyword)), parameters(by_keyword).takes_received) == (["message"], False)


def test_an_argument_that_a_decorator_adds_is_its_own_concern() -> None:
    def handle(message: awoke.Message[Order], session: Order, tenant: Tenant) -> None: ...

    @functools.wraps(handle)
    def adds_and_passes_on(message: Any, **named: Any) -> None:
        handle(message, session=Order(), **named)

    @functools.wraps(handle)
    def adds_all(message: Any) -> None:
        handle(message, Order(), "acme")

    assert names(parameters(adds_and_passes_on)) == ["tenant"]
    assert parameters(adds_all).by_name == ()


class Handlers:
    def handle(self, message: awoke.Message[Order], tenant: Tenant) -> None: ...
    def __call__(self, message: awoke.Message[Order], tenant: Tenant) -> None: ...

    @passes_on
    def decorated(self, message: awoke.Message[Order], tenant: Tenant) -> None: ...

    @staticmethod
    def static(message: awoke.Message[Order], tenant: Tenant) -> None: ...


def with_more(more: int, message: awoke.Message[Order], tenant: Tenant, last: int) -> None: ...


@pytest.mark.parametrize(
    "function",
    [
        Handlers().handle,
        Handlers(),
        Handlers().decorated,
        Handlers.static,
        functools.partial(with_more, 1, last=2),
        functools.partial(Handlers()),
    ],
)
def test_methods_objects_and_partials_are_read_too(function: Any) -> None:
    found = parameters(function)
    assert (names(found), found.takes_received) == (["tenant"], True)


class Batches(awoke.Consumer):
    def consume(self, batch: awoke.Batch[Order, int], producer: awoke.Producer) -> None: ...


class Decorated(awoke.Consumer):
    consume = passes_on(Batches.consume)


class DecoratedPlainly(awoke.Consumer):
    @passes_on
    def consume(self, batch: awoke.Batch[Order]) -> None: ...


class Static(awoke.Consumer):
    @staticmethod
    def consume(batch: awoke.Batch[Order], producer: awoke.Producer) -> None: ...


@pytest.mark.parametrize(
    ("consumer", "expected", "has_self"),
    [
        (Batches, ["producer"], True),
        (Decorated, ["producer"], True),
        (DecoratedPlainly, [], True),
        (Static, ["producer"], False),
    ],
)
def test_a_class_takes_the_batch_behind_itself(
    consumer: type[awoke.Consumer], expected: list[str], has_self: bool
) -> None:
    found = parameters(consumer.consume, is_batch=True, has_self=has_self)
    assert (names(found), found.takes_received) == (expected, True)


def test_a_name_that_does_not_exist_at_run_time_is_left_to_the_option_of_the_route() -> None:
    def handle(message: awoke.Message[Nowhere], tenant: Tenant) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    found = parameters(handle)
    assert (names(found), found.takes_received, found.value_type) == (["tenant"], True, None)


# What is refused.


def unknown(message: awoke.Message[bytes], other: int) -> None: ...
def unknown_by_keyword(message: awoke.Message[bytes], *, other: Order) -> None: ...
def nothing() -> None: ...
def of_keywords(**named: Any) -> None: ...
def positional(message: awoke.Message[bytes], tenant: Tenant, /) -> None: ...
def of_batch(batch: awoke.Batch[bytes]) -> None: ...
def of_second_batch(message: awoke.Message[bytes], batch: awoke.Batch[bytes]) -> None: ...
def of_custom(message: awoke.Message[bytes], order: Annotated[Order, Header("order")]) -> None: ...
def of_nowhere(x: awoke.Value[Nowhere]) -> None: ...  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (
            unknown,
            r"awoke calls it with one argument, the message, which does not fit its parameters \(message: .*other",
        ),
        (unknown, "an annotation may say what each of the others gets"),
        (unknown_by_keyword, "does not fit its parameters"),
        (nothing, "does not fit its parameters"),
        (of_keywords, "does not fit its parameters"),
        (positional, "parameter 'tenant' can't be passed by its name"),
        (of_batch, "parameter 'batch' is a batch, and a function gets one message for each call"),
        (of_second_batch, "parameter 'batch' is a batch"),
        (of_custom, "parameter 'order': header 'order' can't be read as Order"),
        (of_nowhere, r"parameter 'x': the annotation .* can't be resolved \(name 'Nowhere'"),
    ],
)
def test_a_parameter_that_nothing_fills_is_refused(function: Any, words: str) -> None:
    with pytest.raises(awoke.ConfigError, match=f"^{WHERE}: .*{words}"):
        parameters(function)


class OfHeader(awoke.Consumer):
    def consume(self, batch: awoke.Batch[bytes], tenant: Tenant) -> None: ...


class OfMessage(awoke.Consumer):
    def consume(self, message: awoke.Message[bytes]) -> None: ...


class OfNothing(awoke.Consumer):
    def consume(self) -> None: ...


class OfFunction(awoke.Consumer):
    def consume(self, batch: awoke.Batch[bytes], it: Annotated[str, Depends(lambda: 1)], more: int) -> None: ...


@pytest.mark.parametrize(
    ("consumer", "words"),
    [
        (OfHeader, "parameter 'tenant' is about one message, and consume gets a batch of them"),
        (OfMessage, "parameter 'message' is about one message"),
        (OfNothing, "awoke calls it with one argument, the batch beside self"),
        (OfFunction, "awoke calls it with one argument, the batch beside self"),
    ],
)
def test_a_parameter_of_a_class_that_nothing_fills_is_refused(consumer: type[awoke.Consumer], words: str) -> None:
    with pytest.raises(awoke.ConfigError, match=words) as refused:
        parameters(consumer.consume, is_batch=True, has_self=True)
    assert refused.value.property == "handler"


# Functions of Depends.


def settings_of(settings: Settings) -> str:
    return settings.bootstrap_servers


def pool(servers: Annotated[str, Depends(settings_of, scope="process")], logger: logging.Logger) -> str:
    return servers


def session(of: Annotated[str, Depends(pool, scope="process")], tenant: Tenant = "none") -> Iterator[str]:
    yield of


def other_pool() -> str:
    return "other"


async def later() -> str:
    return "later"


async def later_with_yield() -> AsyncIterator[str]:
    yield "later"


def test_a_function_is_read_with_all_that_it_needs_and_each_is_there_once() -> None:
    def handle(
        message: awoke.Message[bytes],
        one: Annotated[str, Depends(session)],
        other: Annotated[str, Depends(session)],
        servers: Annotated[str, Depends(pool, scope="process")],
    ) -> None: ...

    found = parameters(handle)
    assert [(each.name, each.kind, each.scope) for each in found.dependencies] == [
        ("settings_of", "def", "process"),
        ("pool", "def", "process"),
        ("session", "generator", "job"),
    ]
    assert dependency(found, "one").key == dependency(found, "other").key


def test_a_function_with_two_scopes_is_two() -> None:
    def handle(short: Annotated[str, Depends(pool)], long: Annotated[str, Depends(pool, scope="process")]) -> None: ...

    assert [each.key for each in parameters(handle).dependencies if each.function is pool] == [
        (pool, "job"),
        (pool, "process"),
    ]


def test_a_parameter_with_a_default_needs_no_annotation() -> None:
    def make(*args: Any, retries: int = 3, **named: Any) -> None: ...

    def handle(message: awoke.Message[bytes], it: Annotated[None, Depends(make)]) -> None: ...

    assert dependency(parameters(handle), "it").parameters == ()


def test_a_class_is_a_function_too() -> None:
    def handle(message: awoke.Message[bytes], it: Annotated[Session, Depends(Session)]) -> None: ...

    assert [each.name for each in dependency(parameters(handle), "it").parameters] == ["settings"]


def test_the_annotations_of_a_class_are_those_of_its_module() -> None:
    found = dependency_of(Depends(Session), "override")
    assert (found.name, [each.name for each in found.parameters]) == ("Session", ["settings"])


def first(of: Annotated[str, Depends(lambda: None)]) -> Any: ...
def second(of: Annotated[str, Depends(first)]) -> Any: ...


first.__annotations__["of"] = Annotated[str, Depends(second)]


def of_itself(of: Any) -> Any: ...


of_itself.__annotations__["of"] = Annotated[str, Depends(of_itself)]


def of_unknown(more: int) -> Any: ...
def of_message(message: awoke.Message[bytes]) -> Any: ...
def of_assignment(at: Assignment) -> Any: ...
def of_job(of: Annotated[str, Depends(settings_of)]) -> Any: ...
def of_process(producer: awoke.Producer) -> Any: ...
def by_place(settings: Settings, /) -> Any: ...


@pytest.mark.parametrize(
    ("depends", "words"),
    [
        (Depends(first), "cyclic dependencies: first needs second needs first$"),
        (Depends(of_itself), "cyclic dependencies: of_itself needs of_itself$"),
        (Depends(of_unknown), r"of_unknown: nothing says what its parameter 'more' gets; annotate it, as in more: "),
        (Depends(by_place), "by_place: parameter 'settings' can't be passed by its name"),
        (Depends(of_batch), "parameter 'batch' is a batch, and a function gets one message"),
        (
            Depends(of_message, "process"),
            "has scope 'process', and its parameter 'message' lives shorter; .*scope='job'",
        ),
        (Depends(of_message, "assignment"), "lives shorter; give of_message scope='job'"),
        (Depends(of_assignment, "process"), "parameter 'at' lives shorter; give of_assignment scope='assignment'"),
        (Depends(of_job, "assignment"), "parameter 'of' lives shorter; give of_job scope='job'"),
        (Depends(of_process, "app"), "has scope 'app', and its parameter 'producer' lives shorter; .*scope='process'"),
        (Depends(session, "app"), "session: scope 'app' takes a plain def that returns"),
        (Depends(later, "app"), "later: scope 'app' takes a plain def that returns"),
        (Depends(later_with_yield, "app"), "scope 'app' takes a plain def that returns"),
    ],
)
def test_a_function_that_can_not_be_called_is_refused_where_the_route_is_made(depends: DependsMark, words: str) -> None:
    async def handle(message: awoke.Message[bytes], it: Annotated[str, depends]) -> None: ...

    with pytest.raises(awoke.ConfigError, match=f"^{WHERE}: .*{words}"):
        parameters(handle)


def test_settings_may_be_used_by_what_lives_as_long_as_the_app() -> None:
    found = dependency_of(Depends(settings_of, "app"), "override")
    assert (found.scope, found.parameters[0].source.scope) == ("app", "app")


def needs_later(of: Annotated[str, Depends(later)]) -> str:
    return of


@pytest.mark.parametrize(
    "depends",
    [
        Depends(later),
        Depends(later, "process"),
        Depends(later, "assignment"),
        Depends(later_with_yield),
        Depends(later_with_yield, "process"),
        Depends(later_with_yield, "assignment"),
        Depends(needs_later),
    ],
)
def test_an_async_function_needs_an_async_handler(depends: DependsMark) -> None:
    def handle(message: awoke.Message[bytes], it: Annotated[str, depends]) -> None: ...

    def handle_and_yield(message: awoke.Message[bytes], it: Annotated[str, depends]) -> Iterator[str]:
        yield it

    async def handle_later(message: awoke.Message[bytes], it: Annotated[str, depends]) -> None: ...

    async def handle_and_yield_later(message: awoke.Message[bytes], it: Annotated[str, depends]) -> AsyncIterator[str]:
        yield it

    class Consumer(awoke.Consumer):
        def consume(self, batch: awoke.Batch[bytes], it: Annotated[str, depends]) -> None: ...

    words = "depends on (later|later_with_yield), which is async def; make the handler async def, too"
    for refused, options in (
        (handle, {}),
        (handle_and_yield, {}),
        (Consumer.consume, {"is_batch": True, "has_self": True}),
    ):
        with pytest.raises(awoke.ConfigError, match=f"^{WHERE}: {words}") as error:
            parameters(refused, **options)
        assert error.value.property == "depends"
    assert names(parameters(handle_later)) == names(parameters(handle_and_yield_later)) == ["it"]


def test_a_function_is_overridden_wherever_it_is_needed_and_keeps_its_scope() -> None:
    def handle(a: Annotated[str, Depends(session)], b: Tenant) -> None: ...

    given = parameters(handle).by_name
    found = overridden(given, {pool: other_pool})
    assert [(each.name, each.scope) for each in in_order(found)] == [("other_pool", "process"), ("session", "job")]
    assert found[1] is given[1]
    assert [each.name for each in in_order(given)] == ["settings_of", "pool", "session"], "as before"
    assert overridden(given, {}) == given


def test_the_logger_of_a_function_has_its_own_name() -> None:
    found = dependency_of(Depends(pool), "override").parameters[1]
    assert isinstance(found, Parameter)
    source: Any = found.source
    assert source.get(app()) == f"logger of {__name__}.pool"


def test_another_function_must_live_as_long_as_the_one_that_it_replaces() -> None:
    def handle(a: Annotated[str, Depends(session)]) -> None: ...

    given = parameters(handle).by_name
    with pytest.raises(awoke.ConfigError, match=r"^override: of_message: has scope 'process', and its parameter"):
        overridden(given, {pool: of_message})
    assert [each.name for each in in_order(overridden(given, {session: of_message}))] == ["of_message"]
