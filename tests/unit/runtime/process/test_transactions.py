"""The transactions of a process: its name, its properties, and the records of one job."""

from __future__ import annotations

from typing import Any, cast

import pytest

import awoke
from awoke import _native
from awoke.declare.route_options import KindOptions
from awoke.declare.routing import Route
from awoke.payloads.formats.by_type import BY_TYPE
from awoke.payloads.message import Outgoing, Record
from awoke.payloads.registry.schemas import NO_SCHEMAS
from awoke.payloads.topic_formats import TopicFormats
from awoke.runtime.process.transactions import (
    TransactionEntry,
    Transactions,
    sends_letters,
    transactional_id_of,
    transactional_properties,
)
from awoke.settings import Settings


def handle(message: Any) -> None: ...


def properties(may_send_letters: bool = False, **settings: Any) -> dict[str, str]:
    return dict(transactional_properties(Settings(**settings), "shop", may_send_letters=may_send_letters))


def test_processes_without_a_name_of_their_own_do_not_fence_one_another() -> None:
    first, second = properties()["transactional.id"], properties()["transactional.id"]
    assert first != second
    assert first.startswith("shop.")
    assert second.startswith(transactional_id_of(Settings(), "shop"))


def test_a_process_with_a_name_keeps_it() -> None:
    assert properties(transactional_id="shop-1")["transactional.id"] == "shop-1"
    assert transactional_id_of(Settings(transactional_id="shop-1"), "shop") == "shop-1"


def test_a_transaction_of_a_dead_process_blocks_readers_for_ten_seconds() -> None:
    assert properties()["transaction.timeout.ms"] == "10000"


@pytest.mark.parametrize("name", ["transaction.timeout.ms", "delivery.timeout.ms", "socket.timeout.ms"])
def test_a_user_who_sets_one_time_out_decides_on_all(name: str) -> None:
    found = properties(kafka={name: "20000"})
    assert found[name] == "20000"
    assert found.get("transaction.timeout.ms") == ("20000" if name == "transaction.timeout.ms" else None)


def test_dead_letters_may_be_larger_than_messages() -> None:
    small = {"message.max.bytes": "2000"}
    assert properties(kafka=small)["message.max.bytes"] == "2000"
    assert int(properties(may_send_letters=True, kafka=small)["message.max.bytes"]) > 2000


@pytest.mark.parametrize(
    ("options", "sends"),
    [({}, False), ({"dead_letter": "dead"}, False), ({"dead_letter": "dead", "exactly_once": True}, True)],
)
def test_letters_are_sent_in_transactions_by_exactly_once_routes(options: Any, sends: bool) -> None:
    assert sends_letters([Route("orders", handle, options, KindOptions(output="out"))]) is sends


def test_messages_of_aborted_transactions_must_not_be_processed() -> None:
    settings, box = Settings(kafka={"isolation.level": "read_uncommitted"}), _native.EventBox()
    with pytest.raises(awoke.ConfigError, match="read_committed") as refused:
        Transactions(settings, "shop", BY_TYPE, [], TopicFormats((), BY_TYPE, NO_SCHEMAS), box, may_send_letters=False)
    assert refused.value.property == "isolation.level"


class FakeEntry:
    """Records that are to be committed together."""

    def __init__(self) -> None:
        self.records: list[tuple[str, Any, dict[str, Any]]] = []

    def add(self, topic: str, record: Record) -> None:
        if record.value == "bad":
            raise awoke.EncodeError("no good")
        self.records.append((topic, record.value, cast("dict[str, Any]", record.options)))

    def add_result(self, topic: str, message: Any, value: Any) -> None:
        self.add(topic, Record(value, message.key))


class FakeBatcher:
    """The engine's transactions."""

    def __init__(self) -> None:
        self.submitted: list[Any] = []

    def entry(self) -> FakeEntry:
        return FakeEntry()

    def submit(self, entry: FakeEntry, job: Any, offset: int | None) -> str:
        self.submitted.append((entry.records, job, offset))
        return "pending"


class Case:
    """The records of one job."""

    def __init__(self, *middleware: Any) -> None:
        self.batcher = FakeBatcher()
        self.entry = TransactionEntry(
            cast(_native.TransactionBatcher, self.batcher), middleware, TopicFormats((), BY_TYPE, NO_SCHEMAS)
        )

    def submitted(self) -> list[tuple[str, Any, dict[str, Any]]]:
        assert self.entry.submit(cast(Any, "job"), 7) == cast(Any, "pending")
        ((records, job, offset),) = self.batcher.submitted
        assert (job, offset) == ("job", 7)
        return cast("list[tuple[str, Any, dict[str, Any]]]", records)


def upper(message: Outgoing) -> Outgoing:
    return message._replace(topic=message.topic.upper(), value=message.value * 2)


def test_records_are_submitted_together_with_the_job() -> None:
    case = Case()
    case.entry.produce("out", "a", key="k")
    case.entry.produce("out", "b")
    assert [(topic, value, options["key"]) for topic, value, options in case.submitted()] == [
        ("out", "a", "k"),
        ("out", "b", None),
    ]


def test_records_pass_the_middleware_once() -> None:
    case = Case(upper)
    case.entry.produce("out", "a", key="k")
    case.entry.produce_all([("out", Record("b")), ("other", Record("c"))])
    assert [(topic, value) for topic, value, _ in case.submitted()] == [("OUT", "aa"), ("OUT", "bb"), ("OTHER", "cc")]


def test_of_several_records_none_is_added_if_one_can_not_be_sent() -> None:
    case = Case()
    with pytest.raises(awoke.EncodeError):
        case.entry.produce_all([("out", Record("a")), ("other", Record("bad")), ("out", Record("c"))])
    case.entry.produce_all([("out", Record("d", "k", None, 2, None))])
    ((topic, value, options),) = case.submitted()
    assert (topic, value, options["key"], options["partition"]) == ("out", "d", "k", 2)
