"""Searches: what is a hit, where one begins, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
import pytest

import awoke
from awoke.console.explorer.parts import DecodedParts, RouteDecoders
from awoke.console.explorer.searching import check, matcher, starts_of, wanted
from awoke.console.explorer.views import PartitionRange, SearchQuery
from awoke.declare.secret_topics import SecretTopics, secrets_of
from awoke.payloads.formats.by_type import BY_TYPE
from awoke.payloads.registry.schemas import NO_SCHEMAS
from awoke.settings import load
from tests.support.messages import changed, stored_message

SETTINGS = load({}).values


class Order(msgspec.Struct, array_like=True):
    item: str
    card: dict[str, str]


@pytest.fixture
def parts() -> Iterator[DecodedParts]:
    form = awoke.msgpack(Order)
    with DecodedParts(
        SETTINGS, {"orders": RouteDecoders.of((form, None), BY_TYPE, "orders", NO_SCHEMAS)}, reveals=True
    ) as it:
        yield it


MESSAGE: Any = stored_message(b"Key-1", b'{"item":"Tea","card":{"number":42}}', [("Trace", b"abc")], "payments")
PACKED: Any = stored_message(None, msgspec.msgpack.encode(Order("Tea", {"number": "42"})), [], "orders")


@pytest.mark.parametrize(
    ("changes", "is_hit"),
    [
        ({"text": "tea"}, True),
        ({"text": "KEY-1"}, True),
        ({"text": "coffee"}, False),
        ({"text": "tea", "place": "key"}, False),
        ({"text": "key", "place": "value"}, False),
        ({"text": "abc", "place": "header"}, True),
        ({"text": "trace", "place": "header"}, True),
        ({"text": "abc", "place": "value"}, False),
        ({"text": "42", "field": "card.number"}, True),
        ({"text": "tea", "field": "card.number"}, False),
        ({"text": "tea", "field": "card.owner"}, False),
        ({"text": "tea", "field": "item.deeper"}, False),
    ],
)
def test_a_message_is_a_hit_by_its_parts(parts: DecodedParts, changes: dict[str, Any], is_hit: bool) -> None:
    assert matcher(SearchQuery(topic="payments", **changes), parts)(MESSAGE) is is_hit


def test_a_decoded_value_is_searched(parts: DecodedParts) -> None:
    def is_hit(**changes: Any) -> bool:
        return matcher(SearchQuery(topic="orders", **changes), parts)(PACKED)

    assert is_hit(text="42", field="1.number")
    assert is_hit(text='"tea"')
    assert not is_hit(text="tea", field="item")
    assert not matcher(SearchQuery(topic="orders", text="x"), parts)(changed(PACKED, value=b"\xc1"))
    assert not matcher(SearchQuery(topic="orders", text="x"), parts)(changed(PACKED, value=None))


def test_hidden_contents_are_not_searched() -> None:
    unknown = SecretTopics(unknown_because="nobody has told")
    with (
        DecodedParts(SETTINGS, {}, unknown, reveals=True) as hidden,
        pytest.raises(awoke.ConfigError, match="nobody has"),
    ):
        check(SearchQuery(topic="orders", text="a"), hidden)
    with DecodedParts(SETTINGS) as hidden, pytest.raises(awoke.ConfigError, match="hidden from you"):
        check(SearchQuery(topic="orders", text="a"), hidden)


@pytest.mark.parametrize(
    "changes", [{"text": ""}, {"text": "x" * 1_001}, {"hits_max": 0}, {"scanned_max": 0}, {"field": "a..b"}]
)
def test_a_search_has_bounds(parts: DecodedParts, changes: dict[str, Any]) -> None:
    with pytest.raises(awoke.ConfigError):
        check(SearchQuery(topic="orders", **{"text": "a", **changes}), parts)


RANGES = [PartitionRange(partition=0, start=5, end=20), PartitionRange(partition=1, start=3, end=3)]


def test_a_search_begins_at_the_time_and_leaves_out_empty_partitions() -> None:
    query = SearchQuery(topic="orders", text="a")
    assert starts_of(query, RANGES, {}) == {0: 5}
    assert starts_of(query, RANGES, {0: 9, 1: 3}) == {0: 9}
    assert starts_of(query, RANGES, {0: 20, 1: 3}) == {}
    assert wanted(query, RANGES) == RANGES
    assert wanted(SearchQuery(topic="orders", text="a", partition=1), RANGES) == RANGES[1:]
    with pytest.raises(awoke.UnknownTopic):
        wanted(SearchQuery(topic="orders", text="a", partition=2), RANGES)


class Payment(msgspec.Struct):
    item: str
    card: Annotated[str, awoke.Secret]


@pytest.mark.parametrize(
    ("changes", "is_hit"),
    [
        ({"text": "tea"}, True),
        ({"text": "4711"}, False),
        ({"text": "4711", "field": "card"}, False),
        ({"text": "tea", "field": "item"}, True),
        ({"text": "0815", "place": "key"}, False),
    ],
)
@pytest.mark.parametrize("has_types", [True, False])
def test_a_search_finds_no_secret_field(changes: dict[str, Any], is_hit: bool, has_types: bool) -> None:
    kinds = Payment, Payment
    message: Any = stored_message(b'{"item":"k","card":"0815"}', b'{"item":"Tea","card":"4711"}', [], "orders")
    broken: Any = stored_message(b"0815", b"4711", [], "orders")
    routes = {"orders": RouteDecoders.of(kinds, BY_TYPE, "orders", NO_SCHEMAS)} if has_types else {}
    with DecodedParts(SETTINGS, routes, SecretTopics(secrets_of("orders", *kinds)), reveals=True) as parts:
        matches = matcher(SearchQuery(topic="orders", **changes), parts)
        assert matches(message) is is_hit
        assert not matches(broken)
