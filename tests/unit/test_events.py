"""Events: the catalogue, the page made from it, the engine's events, subscribers and log lines."""

from __future__ import annotations

import ast
import logging
import re
from pathlib import Path
from typing import ClassVar

import pytest

import awoke
from awoke import events as catalogue_of
from awoke.broker_lines import BrokerLines
from awoke.events import (
    CommitFailed,
    Event,
    Events,
    JobFailed,
    LaneFailed,
    MessagesExpired,
    NamedEvent,
    PartitionsAssigned,
    RpcFailed,
    RpcRefused,
)
from awoke.events.catalogue import CATALOGUE, as_markdown, counters, from_engine
from awoke.events.log import log

REPOSITORY = Path(__file__).resolve().parents[2]
BRIDGE = (REPOSITORY / "crates" / "bridge" / "src" / "events.rs").read_text()
SET_BY = {"set_at": {"topic", "partition"}, "set_code": {"code", "code_name"}, "set_partitions": {"partitions"}}


def of_engine() -> dict[str, set[str]]:
    """The events that the bridge converts, with their fields."""
    body = BRIDGE.partition("let name = match")[2].partition("fn set_at")[0]
    found: dict[str, set[str]] = {}
    for arm in re.split(r"\n        What::", body)[1:]:
        arm = arm.partition("Ok((event.client")[0]
        (name,) = re.findall(r'"([a-z_]+\.[a-z_]+)"', arm)
        fields = set(re.findall(r'set_item\("(\w+)"', arm))
        for function, more in SET_BY.items():
            fields |= more if f"{function}(" in arm else set()
        found[name] = fields | {"client"}
    return found


def test_every_event_of_the_engine_has_a_class_with_its_fields() -> None:
    fields = of_engine()
    assert "commit.failed" in fields
    assert {name: set(CATALOGUE[name].__struct_fields__) for name in fields} == fields


def test_the_page_has_the_catalogue() -> None:
    assert as_markdown() in (REPOSITORY / "docs" / "events.md").read_text()


def test_every_event_is_exported() -> None:
    assert {event.__name__ for event in CATALOGUE.values()} <= set(catalogue_of.__all__)
    assert all(hasattr(catalogue_of, name) for name in catalogue_of.__all__)


def test_every_event_says_when_it_happens() -> None:
    assert [name for name, event in CATALOGUE.items() if not (event.__doc__ or "").strip()] == []


def test_every_failure_of_user_code_is_a_warning_and_is_counted() -> None:
    failures = [event for event in CATALOGUE.values() if event.is_of_user_code]
    assert {JobFailed, LaneFailed, RpcFailed} <= set(failures)
    assert all("error" in event.__struct_fields__ for event in failures)
    assert min(event.usual_level for event in failures) >= logging.WARNING
    assert [event.name for event in failures if event.counter is None] == []


def test_a_counter_reads_its_labels_from_the_event() -> None:
    assert all(
        hasattr(event, attribute)
        for event in CATALOGUE.values()
        if event.counter is not None
        for attribute in event.counter.labels.values()
    )
    failed = CommitFailed(client="shop", partitions=[], code=-195, code_name="_TRANSPORT", will_retry=True)
    assert failed.label_values == ("_TRANSPORT",)
    assert MessagesExpired(topic="orders", count=4).increment == 4


def test_counters_have_one_name_each() -> None:
    names = [counter.name for counter in counters()]
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"awoke_[a-z_]+_total", name) for name in names)


def test_the_engines_events_become_classes_without_users_of_addresses() -> None:
    fields = {"code": -195, "code_name": "_TRANSPORT", "text": "sasl://me:secret@host: refused", "is_fatal": False}
    event = from_engine("shop", "client.error", fields)
    assert isinstance(event, catalogue_of.ClientError)
    assert (event.client, event.code) == ("shop", -195)
    assert "me:secret" not in event.text


def test_a_subscriber_gets_the_events_of_a_class_of_a_name_or_all() -> None:
    events, by_class, by_name, by_star = Events(), list[MessagesExpired](), list[Event](), list[Event]()
    events.subscribe(MessagesExpired, by_class.append)
    events.subscribe("messages.expired", by_name.append)
    events.subscribe("*", by_star.append)
    events.emit(MessagesExpired(topic="orders", count=4))
    events.emit(catalogue_of.PartitionResumed(topic="orders", partition=3))
    assert [(event.topic, event.count) for event in by_class] == [("orders", 4)]
    assert [event.fields for event in by_name] == [{"topic": "orders", "count": 4}]
    assert [event.name for event in by_star] == ["messages.expired", "partition.resumed"]


def test_a_subscription_ends() -> None:
    events, heard = Events(), list[Event]()
    events.subscribe("*", heard.append)()
    events.emit("shop.opened")
    assert heard == []


def test_a_subscriber_that_raises_disturbs_no_other(caplog: pytest.LogCaptureFixture) -> None:
    events, heard = Events(), list[Event]()

    def fails(event: Event) -> None:
        raise ZeroDivisionError

    events.subscribe("shop.opened", fails)
    events.subscribe("shop.opened", heard.append)
    events.emit("shop.opened")
    assert [event.name for event in heard] == ["shop.opened"]
    assert "a subscriber of shop.opened failed" in caplog.text


def test_an_async_subscriber_is_refused() -> None:
    async def subscriber(event: Event) -> None: ...

    with pytest.raises(awoke.ConfigError, match="async def"):
        Events().subscribe(JobFailed, subscriber)


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


def test_a_name_of_awokes_own_events_is_refused() -> None:
    with pytest.raises(awoke.ConfigError, match="JobFailed"):
        Events().emit("job.failed", topic="orders")


def test_awoke_itself_emits_classes_only() -> None:
    package = REPOSITORY / "python" / "awoke"
    calls = [
        (file, call)
        for file in package.rglob("*.py")
        for call in ast.walk(ast.parse(file.read_text()))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "emit"
    ]
    assert len(calls) > 20
    assert [(file.name, call.lineno) for file, call in calls if call.keywords or len(call.args) != 1] == []


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


@pytest.mark.parametrize(
    "event",
    [
        LaneFailed(handler="handle", topic="orders", partition=0, offset=7, error=ValueError("no good")),
        RpcFailed(method="find", caller="web", error=ValueError("no good")),
        RpcRefused(reason="forged", partition=0, offset=7),
    ],
    ids=lambda event: event.name,
)
def test_what_fails_in_user_code_or_is_refused_is_a_warning_at_least(
    event: Event, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="awoke.events"):
        Events().emit(event)
    (record,) = caplog.records
    assert record.levelno >= logging.WARNING
    assert event.name in record.getMessage()
    assert bool(record.exc_info) == event.is_of_user_code


@pytest.mark.parametrize(("partitions", "level"), [([], logging.DEBUG), ([("orders", 0)], logging.INFO)])
def test_a_rebalance_that_changes_nothing_is_for_debugging(
    partitions: list[tuple[str, int]], level: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, logger="awoke.events"):
        log(PartitionsAssigned(client="shop", partitions=partitions), BrokerLines())
    assert [record.levelno for record in caplog.records] == [level]
