"""A console whose state a test gives, without brokers."""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import msgspec
from starlette.testclient import TestClient

from awoke.console.state import State
from awoke.console.views import ErrorRecord, Failing, GroupPartition, GroupView, Partition, Report, Running
from awoke.console.web.application import ConsoleParts, application
from awoke.console.web.grants import Policy, Rights, view_only
from awoke.console.web.rendering import Assets, environment
from awoke.console.web.snapshot import Snapshot
from awoke.console.web.steps import Step
from awoke.operate.commands.views import MAJOR, Audit
from awoke.settings import load
from awoke.waiting.clock import wall_ms

HOSTILE = "<script>alert(1)</script>\x1b[31m\u202e'\"&"


class FakeLive:
    """The state of an app, as a test gives it."""

    def __init__(self, reports: Collection[Report] = (), errors: Collection[ErrorRecord] = ()) -> None:
        self.state, self.errors, self.groups = State("shop"), list(errors), list[GroupView]()
        self.audit: list[Audit] = []
        self.lag_per_s: dict[tuple[str, str, int], float] = {}
        self.is_closed, self.steps = False, list[Step]()
        self.told: list[Callable[[], None]] = []
        self.reports = list(reports)
        for report in reports:
            self.state.on_report(_message(report, report.node))
        for record in errors:
            self.state.on_error(_message(record, record.fingerprint))

    def add(self, report: Report, *, is_told: bool = True) -> None:
        """Takes a further report, and tells of it."""
        self.state.on_report(_message(report, report.node))
        for call in list(self.told) if is_told else ():
            call()

    def start(self) -> None: ...
    def close(self) -> None: ...
    def refresh(self) -> None: ...
    def late_in_s(self) -> float | None:
        return None

    def subscribe(self, call: Callable[[], None]) -> Callable[[], None]:
        self.told.append(call)
        return lambda: self.told.remove(call)

    def snapshot(self, within_s: float = 0.0) -> Snapshot:
        view = self.state.view(self.groups)
        trends = self.state.kinds.trends()
        reports, gone = self.state.reports(), self.state.gone
        told = Snapshot(1, view, reports, self.errors, audit=self.audit, trends=trends, steps=self.steps)
        return replace(told, gone_secrets=gone, lag_per_s=self.lag_per_s)


def _message(document: Any, key: str) -> Any:
    class Read:
        def __init__(self) -> None:
            self.key, self.value = key.encode(), msgspec.json.encode(document)

    return Read()


def report(node: str = "host.1", *partitions: Partition, **fields: Any) -> Report:
    now_ms = wall_ms()
    given = {
        "major": MAJOR,
        "minor": 0,
        "node": node,
        "app": "shop",
        "host": "host",
        "pid": 1,
        "sequence": 1,
        "started_at_ms": now_ms - 60_000,
        "at_ms": now_ms,
        "state": "running",
        "groups": ["shop"],
        "partitions": list(partitions),
        "partitions_total": len(partitions),
        **fields,
    }
    return Report(**given)


def hostile() -> FakeLive:
    """An app in which each text of others is an attack."""
    failing = Failing(offset=7, key_hash=HOSTILE, attempts=3, error=HOSTILE, since_ms=1, next_ms=wall_ms() + 9_000)
    running = Running(offset=8, attempt=1, remaining=2, since_ms=wall_ms() - 90_000)
    at = Partition(
        group=HOSTILE,
        topic=HOSTILE,
        partition=0,
        position=9,
        committed=7,
        end_offset=12,
        paused_because=HOSTILE,
        stuck_because=HOSTILE,
        failing=[failing],
        running=[running],
    )
    fields = {"versions": {HOSTILE: HOSTILE}, "settings": {HOSTILE: HOSTILE}, "threads": {HOSTILE: 2}}
    reports = [report(HOSTILE, at, groups=[HOSTILE], not_ready_because=HOSTILE, host=HOSTILE, **fields)]
    texts: Any = ("node", "app", "event", "fingerprint", "error_type", "error_text", "traceback", "handler", "topic")
    said: Any = dict.fromkeys(texts, HOSTILE)
    record = ErrorRecord(major=MAJOR, minor=0, at_ms=wall_ms(), partition=0, offset=7, **said)
    live = FakeLive(reports, [record])
    group = GroupPartition(topic=HOSTILE, partition=0, committed=7, end_offset=12, lag=5)
    live.groups = [GroupView(group=HOSTILE, state=HOSTILE, members=0, partitions=[group])]
    return live


def console(
    live: Any = None, *, policy: Policy = view_only, verbs: Collection[str] = (), payloads: bool = False
) -> TestClient:
    """A client of a console with this state, as a context: its end joins the threads. Its host is localhost."""
    state: Any = FakeLive([report()]) if live is None else live
    web = application("shop", load({}).values, state, Rights(policy, verbs, payloads), ())
    return TestClient(web, base_url="http://localhost", follow_redirects=False)


def parts_of(live: Any) -> ConsoleParts:
    """The parts of a console with this state, for one endpoint."""
    return ConsoleParts("shop", load({}).values, live, Rights(view_only, (), False), Assets(), environment(), Here())


class Here(ThreadPoolExecutor):
    """Runs functions at once, on the calling thread."""

    def submit(self, function: Any, /, *args: Any, **fields: Any) -> Any:
        done: Future[Any] = Future()
        done.set_result(function(*args, **fields))
        return done


def assert_read_only(client: TestClient) -> None:
    """Fails unless a console refuses to stop the app, and hides the contents of messages."""
    refused = client.post("/commands/stop", headers={"Sec-Fetch-Site": "same-origin"})
    assert (refused.status_code, "you may not do this" in refused.text) == (403, True)
    assert client.get("/topics/orders/search?format=json").json()["is_hidden"] is True
    assert client.get("/topics/orders/messages/0/0/file").status_code == 403
