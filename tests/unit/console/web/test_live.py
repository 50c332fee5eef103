"""The state follows the topics and asks the brokers; without either it says why."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

import awoke
from awoke.admin import Admin
from awoke.console import state as state_module
from awoke.console.topics import ConsoleTopics
from awoke.console.views import ErrorRecord, GroupView
from awoke.console.web import application
from awoke.console.web import live as live_module
from awoke.console.web.live import Live
from awoke.operate.commands.views import MAJOR, Audit
from awoke.runtime.process.embedded import EmbeddedCluster
from awoke.settings import Settings, load
from awoke.waiting.clock import wall_ms
from tests.support.waiting import Collected, wait_until
from tests.unit.console.web.fakes import parts_of, report


def settings_of(cluster: EmbeddedCluster) -> Settings:
    return load({"bootstrap_servers": cluster.bootstrap_servers}).values


def test_an_app_that_has_never_reported_is_a_problem_with_advice() -> None:
    with EmbeddedCluster() as cluster:
        live = Live("shop", settings_of(cluster))
        try:
            assert "console=True" in (live.snapshot().problem or "")
        finally:
            live.close()
        assert live.is_closed


def test_a_new_report_is_told_and_shown() -> None:
    topics = ConsoleTopics.of("shop")
    with EmbeddedCluster() as cluster, awoke.Producer(cluster.bootstrap_servers) as producer:
        for topic in topics:
            cluster.create_topic(topic)
        producer.produce(topics.reports, msgspec.json.encode(report("a")), key="a").wait(60)
        live, told = Live("shop", settings_of(cluster)), threading.Event()
        try:
            assert list(live.snapshot().reports) == ["a"]
            unsubscribe = live.subscribe(lambda: told.set() if "b" in live._state._new else None)
            producer.produce(topics.reports, msgspec.json.encode(report("b")), key="b").wait(60)
            assert told.wait(60)
            unsubscribe()
            assert sorted(live.snapshot().reports) == ["a", "b"]
        finally:
            live.close()


class BusyReader:
    """A topic of two reports at first, into which further ones are written later."""

    def __init__(self, topic: str, **given: Any) -> None:
        self.closed = threading.Event()

    def close(self) -> None:
        self.closed.set()

    def read_until_end(self) -> Iterator[Any]:
        for node in "ab":
            yield SimpleNamespace(key=node.encode(), value=msgspec.json.encode(report(node)))

    def __iter__(self) -> Iterator[Any]:
        assert self.closed.wait(60)
        raise awoke.ClosedError("closed")


@pytest.mark.parametrize("end", [2, 0])
def test_reports_count_as_read_at_the_first_end_and_errors_are_read_after_the_first_page(
    monkeypatch: pytest.MonkeyPatch, end: int
) -> None:
    opened = Collected[str]()

    def open_reader(topic: str, **given: Any) -> BusyReader:
        opened.add(topic)
        return BusyReader(topic)

    monkeypatch.setattr(live_module, "Reader", open_reader)
    monkeypatch.setattr(Admin, "start_offsets", lambda *_: {0: 0})
    monkeypatch.setattr(Admin, "end_offsets", lambda *_: {0: end})
    monkeypatch.setattr(
        live_module, "group_of", lambda _, group, *__: GroupView(group=group, state="", members=0, partitions=[])
    )
    live = Live("shop", load({"bootstrap_servers": "127.0.0.1:1"}).values)
    try:
        live.start()
        assert live._read["reports"].wait(60)
        opened.wait_for(1)
        assert opened.items == [live._topics.reports]
        assert live.snapshot().is_read
        opened.wait_for(3)
    finally:
        live.close()


class BrokenReader:
    """Reads one record, and then loses its brokers."""

    value = b""

    def __init__(self, topic: str, **given: Any) -> None: ...
    def close(self) -> None: ...
    def read_until_end(self) -> Iterator[Any]:
        return iter([SimpleNamespace(key=b"", value=self.value, partition=0, offset=0)])

    def __iter__(self) -> Iterator[Any]:
        raise awoke.OperationTimeout("the brokers are away")


def test_a_topic_that_is_read_again_counts_no_record_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_module, "Reader", BrokenReader)
    admin: Any = SimpleNamespace(start_offsets=lambda *_: {0: 0}, end_offsets=lambda *_: {0: 1})
    live = Live("shop", load({}).values)
    texts: Any = ("node", "app", "event", "error_type", "error_text", "traceback", "handler", "topic")
    failed: Any = dict.fromkeys(texts, "x")
    error = ErrorRecord(major=MAJOR, minor=0, at_ms=1, fingerprint="f", **failed)
    said: Any = dict.fromkeys(("node", "app", "who", "via", "verb", "reason", "result", "text"), "x")
    for name, take, record in (
        ("errors", live._on_error, error),
        ("audit", live._on_audit, Audit(at_ms=1, arguments={}, took_ms=1, **said)),
    ):
        BrokenReader.value = msgspec.json.encode(record)
        for _ in range(2):
            with pytest.raises(awoke.OperationTimeout):
                live._read_on(name, name, admin, None, take)
    now = live._build()
    assert ([each.count for each in now.view.errors], len(now.errors), len(now.audit)) == ([1], 1, 1)


def test_brokers_that_do_not_answer_are_a_problem_of_which_pages_are_told_after_a_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked, answer, away = threading.Event(), threading.Event(), threading.Event()

    def group_of(_: Admin, group: str, *__: object) -> GroupView:
        if away.is_set():
            asked.set()
            assert answer.wait(60)
        return GroupView(group=group, state="", members=0, partitions=[])

    monkeypatch.setattr(live_module, "Reader", BusyReader)
    monkeypatch.setattr(Admin, "start_offsets", lambda *_: {0: 0})
    monkeypatch.setattr(Admin, "end_offsets", lambda *_: {0: 2})
    monkeypatch.setattr(live_module, "group_of", group_of)
    monkeypatch.setattr(application, "TICK_S", 60.0)
    live = Live("shop", load({"bootstrap_servers": "127.0.0.1:1"}).values)
    monkeypatch.setattr(live._state, "next_overdue", lambda _: (0, None))
    changes = application.CheckedChanges(parts_of(live))
    try:
        wait_until(lambda: live.snapshot().view.groups != [] and live._can_ask, "the brokers have answered")
        assert (live.snapshot().problem, live.late_in_s()) == (None, None)
        away.set()
        with live._lock:
            live._asked_s = float("-1e9")  # The offsets are old.
        live.refresh()
        assert asked.wait(60)
        assert 0.0 < (live.late_in_s() or live_module.LATE_S) <= live_module.LATE_S

        async def until_it_is_shown() -> None:
            events = changes._events()
            try:
                async with asyncio.timeout(30):
                    async for _ in events:  # Each is a page that is fetched again.
                        if "the brokers have not answered for " in (live.snapshot().problem or ""):
                            return
            finally:
                await events.aclose()

        asyncio.run(until_it_is_shown())
        assert live.late_in_s() is None
        told = threading.Event()
        live.subscribe(told.set)
        answer.set()
        assert told.wait(60)
        wait_until(lambda: live.snapshot().problem is None, "the brokers have answered again")
    finally:
        answer.set()
        live.close()


def test_pages_are_told_of_an_overdue_report_when_it_is_overdue(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [wall_ms()]
    monkeypatch.setattr(live_module, "wall_ms", lambda: now[0])
    monkeypatch.setattr(state_module, "wall_ms", lambda: now[0])
    live = Live("shop", load({}).values)
    live._is_followed = True
    live._read["reports"].set()
    told = SimpleNamespace(key=b"host.1", value=msgspec.json.encode(report("host.1")))
    message: Any = told
    live._on_report(message)
    assert live.late_in_s() == 12.001
    with live._lock:
        assert live._build().view.reasons == []
    now[0] += 12_001
    assert live.late_in_s() is None
    with live._lock:
        assert [each.kind for each in live._build().view.reasons] == ["no report"]
        live._problems["offsets"] = "the brokers are away"
        assert live._build().view.reasons == []  # The report may be there, and was not read.


def test_the_brokers_are_asked_once_for_the_longest_time_of_a_transaction() -> None:
    asked = Collected[int]()

    def describe(number: int, _: float) -> Any:
        asked.add(number)
        return {"transaction.max.timeout.ms": SimpleNamespace(value=str(60_000 * number))}

    found = SimpleNamespace(brokers=lambda _: [SimpleNamespace(id=1), SimpleNamespace(id=2)])
    found.describe_broker_configs = describe
    admin: Any = found
    live = Live("shop", load({}).values)
    live._ask_limit(admin)
    live._open_transactions.note("orders", 0, 4, 9, wall_ms() - live_module.LIMIT_AFTER_MS + 9_000)
    live._ask_limit(admin)
    assert asked.items == []
    live._open_transactions.note("orders", 1, 4, 9, wall_ms() - live_module.LIMIT_AFTER_MS)
    live._ask_limit(admin)
    live._ask_limit(admin)
    assert asked.items == [1, 2]
    with live._lock:
        assert live._build().view.transaction_limit_ms == 120_000
