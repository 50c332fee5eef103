"""The base of all events: fields, level and counter, of awoke's own and of user code."""

from __future__ import annotations

import logging
from typing import ClassVar

import pytest

from awoke.observe.events import Event, Events, NamedEvent
from awoke.observe.events.event import Counter


def test_an_event_of_user_code_has_a_name_and_fields(caplog: pytest.LogCaptureFixture) -> None:
    events, heard = Events(), list[Event]()
    events.subscribe("shop.opened", heard.append)
    with caplog.at_level(logging.DEBUG, logger="awoke.events"):
        events.emit("shop.opened", customer=7)
    assert heard == [NamedEvent(name="shop.opened", values={"customer": 7})]
    assert heard[0].fields == {"customer": 7}
    assert [(record.levelno, record.getMessage()) for record in caplog.records] == [
        (logging.DEBUG, "shop.opened customer=7")
    ]


class ShopClosed(Event, frozen=True, kw_only=True):
    """The shop was closed."""

    name: ClassVar[str] = "shop.closed"
    usual_level: ClassVar[int] = logging.INFO
    reason: str


def test_an_event_of_user_code_may_have_a_class(caplog: pytest.LogCaptureFixture) -> None:
    events, heard = Events(), list[str]()
    events.subscribe(ShopClosed, lambda event: heard.append(event.reason))
    with caplog.at_level(logging.INFO, logger="awoke.events"):
        events.emit(ShopClosed(reason="night"))
    assert heard == ["night"]
    assert [record.levelno for record in caplog.records] == [logging.INFO]


class Sold(Event, frozen=True, kw_only=True):
    """Something was sold."""

    name: ClassVar[str] = "shop.sold"
    counter: ClassVar[Counter | None] = Counter("shop_sold_total", "Sales.", {"what": "article", "place": "town"})
    town: ClassVar[str] = "Bergen"
    count: int
    article: str


def test_fields_are_the_attributes_of_the_event_in_the_order_of_its_class() -> None:
    assert list(Sold(article="book", count=2).fields.items()) == [("count", 2), ("article", "book")]
    named = NamedEvent(name="shop.opened", values={"b": 1, "a": 2})
    assert list(named.fields.items()) == [("b", 1), ("a", 2)]


def test_an_event_is_for_debugging_and_counts_one_unless_its_class_says_otherwise() -> None:
    event = Sold(article="book", count=2)
    assert (event.log_level, event.is_traced, event.increment) == (logging.DEBUG, False, 1)


def test_labels_come_from_fields_and_from_the_class_as_text() -> None:
    assert Sold(article="book", count=2).label_values == ("book", "Bergen")
    assert NamedEvent(name="shop.opened", values={}).label_values == ()


def test_an_event_does_not_change() -> None:
    event = Sold(article="book", count=2)
    with pytest.raises(AttributeError):
        event.count = 3  # type: ignore[misc]
