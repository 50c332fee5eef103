"""Routers, which an app includes, and routes of several topics."""

from __future__ import annotations

from typing import Annotated, Any, cast

import msgspec
import pytest

import awoke
from awoke.declare.router import prefix_of, topics_of


class Order(msgspec.Struct):
    id: int


class Orders(awoke.Consumer):
    def consume(self, batch: awoke.Batch[Order]) -> None: ...


def handle(message: awoke.Message[Order, int]) -> None: ...


def test_a_route_of_several_topics_is_one_for_each() -> None:
    app = awoke.App("app")
    app.on(["orders", awoke.Topic("others", key=int)])(handle)
    app.consumer(("a", "b"))(Orders)
    assert list(app.routes) == ["orders", "others", "a", "b"]
    assert all(route.is_typed for route in app.routes.values())


@pytest.mark.parametrize("topics", [[], ["a", "a"], [""], ["a", 5]])
def test_topics_that_are_none_are_refused(topics: Any) -> None:
    with pytest.raises(awoke.ConfigError, match="topic"):
        awoke.App("app").on(topics)(handle)


def test_one_topic_may_be_named_alone() -> None:
    assert topics_of("orders") == ["orders"]


def test_an_app_has_the_routes_of_its_routers_under_their_prefixes() -> None:
    orders, inner, app = awoke.Router("shop."), awoke.Router(), awoke.App("app")
    inner.on("paid", output="booked", dead_letter="dead")(lambda message: message.value)
    orders.include(inner, prefix="eu.")
    orders.on("placed")(handle)
    app.include(orders, prefix="test.")
    assert list(app.routes) == ["test.shop.eu.paid", "test.shop.placed"]
    paid = app.routes["test.shop.eu.paid"]
    assert (paid.output, paid.dead_letter) == ("test.shop.eu.booked", "test.shop.eu.dead")
    assert app.routes["test.shop.placed"].types == (Order, int)


def test_a_router_may_be_included_in_several_apps() -> None:
    router, one, other = awoke.Router(), awoke.App("one"), awoke.App("other")
    router.consumer("orders")(Orders)
    one.include(router)
    other.include(router, prefix="b.")
    assert (list(one.routes), list(other.routes)) == (["orders"], ["b.orders"])


def test_a_prefix_keeps_the_types_of_a_topic() -> None:
    router, app = awoke.Router(), awoke.App("app")
    priced = awoke.Topic("priced", key=int)
    router.on(awoke.Topic("orders", value=Order, key=int), output=priced)(lambda message: message.value)
    app.include(router, prefix="eu.")
    assert app.routes["eu.orders"].types == (Order, int)
    assert app.topic_formats(awoke.Outgoing("eu.priced", b"", 7)).key == b"7"
    assert prefix_of("a", "b.") == "b.a"


def test_a_class_of_the_function_around_the_handler_is_found() -> None:
    class Local(msgspec.Struct):
        id: int

    router, app = awoke.Router(), awoke.App("app")

    @router.on("orders")
    def handle(message: awoke.Message[Local]) -> None: ...

    app.include(router)
    assert app.routes["orders"].types == (Local, None)


def test_a_router_leaves_types_to_the_default_format_of_the_app() -> None:
    class Unknown:
        """A class that msgspec does not know."""

    class OwnFormat(awoke.Format):
        def encode(self, value: Any) -> bytes:
            return b""

        def decode(self, data: bytes) -> Any:
            return Unknown()

    router = awoke.Router()
    router.on("orders", value=Unknown)(lambda message: None)
    awoke.App("own", format=OwnFormat()).include(router)
    with pytest.raises(awoke.ConfigError, match="can't be read as"):
        awoke.App("app").include(router)


def test_mistakes_are_told_where_they_are_written() -> None:
    router, app = awoke.Router(), awoke.App("app")
    with pytest.raises(awoke.ConfigError, match="contradicts the annotation"):
        router.on("orders", value=int)(handle)
    with pytest.raises(awoke.ConfigError, match=r"@router\.on needs parentheses"):
        router.on(handle)  # type: ignore[arg-type]
    router.on("orders")(handle)
    with pytest.raises(awoke.ConfigError, match="has a route already in this router"):
        router.on("orders")(handle)
    app.on("orders")(handle)
    with pytest.raises(awoke.ConfigError, match="has a route already"):
        app.include(router)
    with pytest.raises(awoke.ConfigError, match="was included before"):
        router.on("late")(handle)
    for wrong in (app, awoke.App("other"), "router"):
        with pytest.raises(awoke.ConfigError, match=r"takes another awoke\.Router"):
            app.include(wrong)  # type: ignore[arg-type]


def test_a_prefix_comes_before_each_of_several_outputs() -> None:
    router, app = awoke.Router("shop."), awoke.App("app")
    priced = awoke.Topic("priced", key=int)
    router.on("orders", output=["booked", priced])(lambda message: None)
    app.include(router, prefix="eu.")
    route = app.routes["eu.shop.orders"]
    assert route.outputs == ["eu.shop.booked", "eu.shop.priced"]
    assert app.topic_formats(awoke.Outgoing("eu.shop.priced", b"", 7)).key == b"7"


def around(name: str) -> Any:
    async def call(message: Any, call_next: Any) -> Any:
        """Goes on with the message."""

    call.__qualname__ = name
    return call


def names_around(app: awoke.App, topic: str) -> list[str]:
    return [each.__qualname__ for each in cast("list[Any]", app.around(app.routes[topic]))]


def test_middleware_of_an_app_is_around_that_of_its_routers_and_of_the_route() -> None:
    app, outer, inner = awoke.App("app"), awoke.Router(), awoke.Router()
    inner.incoming(around("inner"))
    inner.on("orders", incoming=[around("route"), around("last")])(handle)
    outer.incoming(around("outer"))
    outer.incoming(around("second"))
    outer.include(inner)
    outer.on("payments")(handle)
    app.incoming(around("app"))
    app.include(outer)
    app.on("refunds")(handle)
    assert names_around(app, "orders") == ["app", "outer", "second", "inner", "route", "last"]
    assert names_around(app, "payments") == ["app", "outer", "second"]
    assert names_around(app, "refunds") == ["app"]


def test_middleware_of_messages_and_of_batches_are_two() -> None:
    app, router = awoke.App("app"), awoke.Router()
    for each in (app, router):
        each.incoming(around("message"))
        each.incoming_batch(around("batch"))
    router.on("orders")(handle)
    router.consumer("batches")(Orders)
    app.include(router)
    assert names_around(app, "orders") == ["message"] * 2
    assert names_around(app, "batches") == ["batch"] * 2


def test_middleware_that_comes_after_the_router_was_included_is_refused() -> None:
    app, router = awoke.App("app"), awoke.Router()
    router.on("orders")(handle)
    app.include(router)
    with pytest.raises(
        awoke.ConfigError, match=r"@router\.incoming: the router was included before; decorate it earlier"
    ):
        router.incoming(around("late"))
    app.incoming(around("app"))
    assert names_around(app, "orders") == ["app"]


def test_a_def_around_an_async_def_is_refused_wherever_they_meet() -> None:
    async def handle_later(message: awoke.Message[bytes]) -> None: ...

    def plain(message: Any, call_next: Any) -> Any: ...

    app, router, outer = awoke.App("app"), awoke.Router(), awoke.Router()
    router.on("orders")(handle_later)
    with pytest.raises(awoke.ConfigError, match=r"can't go around .*handle_later, which is async def"):
        router.incoming(plain)
    outer.incoming(plain)
    with pytest.raises(awoke.ConfigError, match=r"can't go around .*handle_later"):
        outer.include(router)
    app.incoming(plain)
    with pytest.raises(awoke.ConfigError, match=r"can't go around .*handle_later"):
        app.include(router)


class Refund(msgspec.Struct, tag=True):
    id: int


class Payment(msgspec.Struct, tag=True):
    id: int


def test_a_router_may_have_several_handlers_of_a_topic() -> None:
    handlers, router, app = awoke.Handlers(), awoke.Router("shop."), awoke.App("app")

    @handlers.of_type(Refund)
    def refund(message: awoke.Message[Refund], producer: awoke.Producer) -> None: ...

    @handlers.of_type(Payment)
    def pay(message: awoke.Message[Payment]) -> None: ...

    router.on("money")(handlers)
    app.include(router)
    route = app.routes["shop.money"]
    assert (route.handlers, route.types[0]) == (handlers, Refund | Payment)
    assert [[each.name for each in found.by_name] for found in route.all_parameters] == [["producer"], []]
    with pytest.raises(awoke.ConfigError, match="comes too late"):
        handlers.default(handle)


def test_a_router_reads_the_arguments_of_its_handlers_where_they_are_written() -> None:
    router, app = awoke.Router(), awoke.App("app")

    class Session: ...

    def session() -> Session:
        return Session()

    @router.on("orders")
    def handle(message: awoke.Message[bytes], it: Annotated[Session, awoke.Depends(session)]) -> None: ...

    with pytest.raises(awoke.ConfigError, match="does not fit its parameters"):
        router.on("others")(lambda message, more: None)
    app.include(router)
    assert [each.function for each in app.routes["orders"].all_parameters[0].dependencies] == [session]
