"""Routes of several consumer groups, and routes that name their partitions."""

from __future__ import annotations

from typing import Any

import pytest

import awoke
from awoke.declare.group_routes import OWN, GroupKey

USE = "use awoke.Handlers, or another group=…"


def handle(message: Any) -> None: ...


def copy(message: Any) -> bytes:
    return b""


class Orders(awoke.Consumer):
    def consume(self, batch: awoke.Batch[bytes]) -> None: ...


AUDIT, FIXED = GroupKey("audit"), GroupKey(None, is_fixed=True)


def test_a_topic_may_have_a_route_in_each_group() -> None:
    app = awoke.App("shop")
    app.on("orders")(handle)
    app.on("orders", group="audit")(handle)
    app.consumer("orders", partitions=[0, 3])(Orders)
    assert list(app.groups) == [OWN, AUDIT, FIXED]
    own, audit, fixed = (group.routes["orders"] for group in app.groups.values())
    assert app.all_routes == [own, audit, fixed]
    assert (own.group, audit.group, fixed.group) == (None, "audit", None)
    assert (own.partitions, audit.partitions, fixed.partitions) == ((), (), (0, 3))
    assert len({own.number, audit.number, fixed.number}) == 3


def test_the_routes_of_an_app_are_those_of_its_own_group_and_each_topic_is_read_once() -> None:
    app = awoke.App("shop")
    app.on("clicks", group="audit")(handle)
    app.on(["orders", "clicks"])(handle)
    assert list(app.routes) == ["orders", "clicks"]
    assert app.read_topics == ["orders", "clicks"]


def test_an_app_without_routes_has_its_own_group() -> None:
    app = awoke.App("shop")
    assert list(app.groups) == [OWN]
    assert (app.routes, app.all_routes, app.read_topics, app.patterns) == ({}, [], [], [])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, f"topic 'orders' has a route already: handle; {USE}"),
        ({"group": "audit"}, f"topic 'orders' has a route already in group 'audit': handle; {USE}"),
        ({"partitions": [3]}, "topic 'orders' has a route already: handle; join their partitions=… in one"),
    ],
    ids=["own", "named", "partitions"],
)
def test_a_topic_has_one_route_in_a_group(options: dict[str, Any], said: str) -> None:
    app = awoke.App("shop")
    app.on("orders")(handle)
    app.on("orders", group="audit")(handle)
    app.on("orders", partitions=[0])(handle)
    with pytest.raises(awoke.ConfigError) as refused:
        app.on("orders", **options)(copy)
    assert (str(refused.value), refused.value.property) == (said, "topic")
    assert len(app.all_routes) == 3


def test_a_pattern_has_one_route_in_a_group() -> None:
    app = awoke.App("shop")
    app.on(awoke.pattern("orders.*"))(handle)
    app.on(awoke.pattern("orders.*"), group="audit")(handle)
    assert app.patterns == [awoke.pattern("orders.*")] * 2
    with pytest.raises(awoke.ConfigError, match=r"has a route already in group 'audit': handle"):
        app.on(awoke.pattern("orders.*"), group="audit")(copy)


def test_a_route_that_is_refused_leaves_no_group() -> None:
    app = awoke.App("shop")
    with pytest.raises(awoke.ConfigError, match=r"partitions=… names those of one topic") as refused:
        app.on(awoke.pattern("orders.*"), partitions=[0])(handle)
    assert refused.value.property == "partitions"
    assert list(app.groups) == [OWN]


def test_patterns_find_topics_in_each_group() -> None:
    app = awoke.App("shop")
    app.on("orders-1")(handle)
    app.on(awoke.pattern("clicks.*"))(handle)
    app.on(awoke.pattern(".*-1"), group="audit")(handle)
    found, refused = app.match(["orders-1", "clicks-1"])
    assert [(route.topic, route.group) for route in found] == [
        ("clicks-1", None),
        ("clicks-1", "audit"),
        ("orders-1", "audit"),
    ]
    assert (refused, app.unmatched(), app.match(["orders-1", "clicks-1"])) == ([], [], ([], []))
    assert app.read_topics == ["orders-1", "clicks-1"]
    assert app.groups[OWN].subscribed == ["orders-1", "clicks.*"]
    assert app.groups[AUDIT].subscribed == [".*-1"]


def test_a_topic_with_two_routes_is_refused_only_in_its_group() -> None:
    app = awoke.App("shop")
    app.on("orders", group="audit")(handle)
    app.on(awoke.pattern("order.*"), group="audit")(handle)
    app.on(awoke.pattern("ord.*"))(handle)
    found, (refused,) = app.match(["orders"])
    assert [route.group for route in found] == [None]
    assert str(refused).startswith("topic 'orders' has two routes: one of its own and pattern('order.*')")
    assert app.unmatched() == [awoke.pattern("order.*")]


@pytest.mark.parametrize(
    ("key", "name"),
    [(OWN, "shop"), (AUDIT, "audit"), (FIXED, "shop.partitions")],
    ids=["own", "named", "partitions"],
)
def test_a_group_is_named_by_its_routes_or_after_the_apps_own(key: GroupKey, name: str) -> None:
    assert key.name("shop") == name


def test_the_routes_of_a_router_keep_their_groups_and_partitions() -> None:
    router, app = awoke.Router("eu."), awoke.App("shop")
    router.on("orders")(handle)
    router.on("orders", group="audit")(handle)
    router.on("orders", partitions=[1])(handle)
    app.include(router, prefix="test.")
    assert {key: list(group.routes) for key, group in app.groups.items()} == {
        OWN: ["test.eu.orders"],
        AUDIT: ["test.eu.orders"],
        FIXED: ["test.eu.orders"],
    }
    assert app.groups[FIXED].routes["test.eu.orders"].partitions == (1,)


@pytest.mark.parametrize("options", [{}, {"group": "audit"}, {"partitions": [2]}], ids=["own", "named", "partitions"])
def test_a_topic_has_one_route_in_a_group_of_a_router(options: dict[str, Any]) -> None:
    router = awoke.Router()
    router.on("orders")(handle)
    router.on("orders", group="audit")(handle)
    router.on("orders", partitions=[1])(handle)
    with pytest.raises(awoke.ConfigError, match="has a route already in this router"):
        router.on("orders", **options)(copy)


@pytest.mark.parametrize(
    ("partitions", "said"),
    [
        ([], "partitions are numbers from 0, each once, as in [0, 3], not []"),
        ((), "partitions are numbers from 0, each once, as in [0, 3], not ()"),
        ([0, 3, 0], "partitions are numbers from 0, each once, as in [0, 3], not [0, 3, 0]"),
        ([0, -1], "partitions are numbers from 0, each once, as in [0, 3], not [0, -1]"),
        (["0"], "partitions are numbers from 0, each once, as in [0, 3], not ['0']"),
        ([0, 1.5], "partitions are numbers from 0, each once, as in [0, 3], not [0, 1.5]"),
        ([True], "partitions are numbers from 0, each once, as in [0, 3], not [True]"),
        ("03", "partitions are numbers from 0, each once, as in [0, 3], not '03'"),
        (3, "partitions is given as in partitions=[0, 3], not 3"),
        ({0, 3}, "partitions is given as in partitions=[0, 3], not {0, 3}"),
    ],
)
@pytest.mark.parametrize("owner", [awoke.App("shop"), awoke.Router()], ids=["app", "router"])
def test_partitions_that_are_none_are_refused(owner: awoke.Router, partitions: Any, said: str) -> None:
    with pytest.raises(awoke.ConfigError) as refused:
        owner.on("orders", partitions=partitions)(handle)
    assert (str(refused.value), refused.value.property) == (f"route 'orders': {said}", "partitions")


def test_partitions_may_be_a_range() -> None:
    app = awoke.App("shop")
    app.on("orders", partitions=range(3))(handle)
    (route,) = app.all_routes
    assert route.partitions == (0, 1, 2)


def test_partitions_are_read_without_a_group() -> None:
    with pytest.raises(awoke.ConfigError) as refused:
        awoke.App("shop").on("orders", partitions=[0, 3], group="audit")(handle)
    said = "route 'orders': partitions=[0, 3] are read without a group, and group='audit' names one"
    assert (str(refused.value), refused.value.property) == (said, "partitions")


def test_exactly_once_needs_a_group() -> None:
    with pytest.raises(awoke.ConfigError, match="exactly_once=True needs a group, which fences") as refused:
        awoke.App("shop").on("orders", partitions=[0], output="out", exactly_once=True)(copy)
    assert refused.value.property == "exactly_once"
