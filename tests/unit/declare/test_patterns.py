"""Patterns of topics, and the topics that they match."""

from __future__ import annotations

import pytest

import awoke
from awoke.declare.group_routes import OWN
from awoke.declare.patterns import Matches, Pattern, pattern


@pytest.mark.parametrize(
    ("regex", "topic", "is_one"),
    [
        (r"orders\..*", "orders.eu", True),
        (r"orders\..*", "my-orders.eu", False),
        (r"orders", "orders.eu", False),
        (r".*", "__consumer_offsets", False),
        (r"a|b", "b", True),
    ],
)
def test_a_pattern_is_of_whole_names_and_not_of_kafkas_own(regex: str, topic: str, *, is_one: bool) -> None:
    assert pattern(regex).matches(topic) is is_one


@pytest.mark.parametrize("regex", ["(", None, 7])
def test_what_is_no_regular_expression_is_refused(regex: object) -> None:
    with pytest.raises(awoke.ConfigError, match="is no regular expression"):
        pattern(regex)  # type: ignore[arg-type]


def test_a_prefix_comes_before_all_names_and_is_no_expression() -> None:
    prefixed = pattern("a|b", may_match_nothing=True).prefixed("x.")
    assert prefixed.may_match_nothing
    assert [each for each in ("x.a", "x.b", "b", "xya") if prefixed.matches(each)] == ["x.a", "x.b"]


def test_patterns_of_one_expression_are_equal() -> None:
    assert pattern("a") == pattern("a") != pattern("b")
    assert len({pattern("a"), pattern("a")}) == 1
    assert repr(pattern("a")) == "pattern('a')"
    assert pattern("a") != "a"


def test_each_topic_is_found_once_and_not_if_its_route_writes_to_it() -> None:
    matches, orders = Matches(), pattern(r"orders\..*")
    patterns: dict[Pattern, list[str]] = {orders: ["orders.dead"]}
    topics = ["orders.b", "orders.a", "orders.dead", "clicks"]
    assert matches.without(patterns) == [orders]
    assert matches.new(topics, patterns, lambda topic: False) == ([("orders.a", orders), ("orders.b", orders)], [])
    found = matches.new([*topics, "orders.c"], patterns, lambda topic: topic != "orders.c")
    assert found == ([("orders.c", orders)], [])
    assert matches.without(patterns) == []
    assert "orders.a" in matches
    assert "clicks" not in matches


def test_a_topic_of_two_routes_is_refused_and_the_others_are_found() -> None:
    both: dict[Pattern, list[str]] = {pattern("a.*"): [], pattern(".*b"): []}
    matches = Matches()
    found, refused = matches.new(["aa", "ab", "ac", "b"], both, lambda topic: topic == "ac")
    assert found == [("aa", pattern("a.*")), ("b", pattern(".*b"))]
    assert [str(each).partition(";")[0] for each in refused] == [
        "topic 'ab' has two routes: pattern('a.*') and pattern('.*b')",
        "topic 'ac' has two routes: one of its own and pattern('a.*')",
    ]
    assert matches.new(["ab"], both, lambda topic: False)[0] == []


def test_an_app_makes_the_routes_of_topics_that_match() -> None:
    app = awoke.App("app")

    @app.on(awoke.pattern("orders.*"), output="out", dead_letter="orders-dead", value=int)
    def handle(message: awoke.Message[int]) -> int:
        return message.value

    (route,), _ = app.match(["orders-1", "orders-dead", "out"])
    assert (route.topic, route.output, route.types) == ("orders-1", "out", (int, None))
    assert list(app.routes) == ["orders-1"]
    assert app.match(["orders-1"]) == ([], [])
    assert app.groups[OWN].subscribed == ["orders.*"]
    with pytest.raises(awoke.ConfigError, match="has a route already"):
        app.on(awoke.pattern("orders.*"))(handle)
