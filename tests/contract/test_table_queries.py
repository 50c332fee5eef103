"""Queries: any process reads the rows of a table from the process that has them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pytest

import awoke
from awoke.errors import ConfigError, DecodeError, EncodeError, UnknownTopic
from awoke.rpc.caller.caller import BlockingCallWarning, Caller
from awoke.rpc.errors import FailedPrecondition, InvalidArgument, NobodyThere, Restoring, Unavailable
from awoke.state import queries
from awoke.testing import Probe, Runs
from tests.contract.test_consume import new_app
from tests.contract.test_tables import counting, send
from tests.support.clusters import Cluster
from tests.support.waiting import became

CreateTopic = Callable[..., str]
PARTITIONS = 4


class Total(msgspec.Struct, frozen=True):
    """A row."""

    count: int


def reader(cluster: Cluster, app: awoke.App, name: str = "counts", **options: Any) -> awoke.Table:
    """Returns a table, read from elsewhere."""
    kept = {"key": str, "value": int, "group": app.settings.group, "timeout_s": 20.0, **options}
    return awoke.Table(
        app.name, name, bootstrap_servers=cluster.bootstrap_servers, kafka=dict(cluster.properties), **kept
    )


@pytest.fixture
def counted(cluster: Cluster, topic: CreateTopic, awoke_run: Runs) -> tuple[awoke.App, Probe]:
    """An app that has counted 600 messages of 20 keys in 4 partitions."""
    name = topic("in", PARTITIONS)
    app, _ = counting(cluster, name)
    send(cluster, name, 600, 20)
    probe = awoke_run(app)
    probe.idle()
    return app, probe


@contextlib.contextmanager
def restoring(monkeypatch: pytest.MonkeyPatch, app: awoke.App) -> Iterator[None]:
    """Has the table of an app say that no partition is restored."""

    class Native:
        def __init__(self, native: Any) -> None:
            self._native = native

        def partitions(self) -> list[tuple[int, int, int, int, bool]]:
            return [(*each[:4], False) for each in self._native.partitions()]

        def __getattr__(self, name: str) -> Any:
            return getattr(self._native, name)

    table = app.tables["counts"]
    with monkeypatch.context() as patched:
        patched.setattr(table, "native", Native(table.native))
        yield


def test_the_owner_answers_from_its_committed_rows(cluster: Cluster, counted: tuple[awoke.App, Probe]) -> None:
    app, _ = counted
    committed = cluster.admin.group_offsets(app.settings.group or app.name)
    offsets = {partition: offset for (_, partition), offset in committed.items()}
    with reader(cluster, app) as table:
        assert [table.get(f"{key}") for key in range(20)] == [30] * 20
        assert (table.get("nobody"), table.get("nobody", 0)) == (None, 0)
        found = table.find("7")
        assert (found.value, found.is_stale) == (30, False)
        assert found.partition == queries.partition_of(b"7", PARTITIONS)
        assert found.offset == offsets[found.partition]
        assert table.find("nobody").value is None
        assert table.many([f"{key}" for key in range(40)]) == {f"{key}": 30 for key in range(20)}
        assert table.many([]) == {}


def test_a_row_under_another_key_than_its_messages_is_found_by_its_partition(
    cluster: Cluster, topic: CreateTopic, awoke_run: Runs
) -> None:
    name, app = topic("in", PARTITIONS), new_app(cluster)
    last = app.table("last", value=int)

    @app.on(name, tables=[last])
    def note(message: awoke.Message[bytes]) -> None:
        last[b"last"] = message.offset

    send(cluster, name, 40, 20)
    awoke_run(app).idle()
    with reader(cluster, app, "last", key=None) as table:
        partitions = {queries.partition_of(b"%d" % key, PARTITIONS) for key in range(20)}
        assert {number for number in range(4) if table.get(b"last", partition=number) is not None} == partitions
        for wrong in (-1, 4):
            with pytest.raises(ConfigError, match="0 to 3"):
                table.get(b"last", partition=wrong)


def test_a_scan_yields_all_rows_in_pages(
    cluster: Cluster, counted: tuple[awoke.App, Probe], monkeypatch: pytest.MonkeyPatch
) -> None:
    app, _ = counted
    monkeypatch.setattr(queries, "PAGE_ROWS_MAX", 2)
    with reader(cluster, app) as table:
        assert sorted(table.scan()) == sorted((f"{key}", 30) for key in range(20))
        of_one = {key for key, _ in table.scan(2)}
        assert of_one == {f"{key}" for key in range(20) if queries.partition_of(b"%d" % key, PARTITIONS) == 2}
        begun = table.scan()
        next(begun)
        begun.close()  # It is cancelled, and keeps no place.
        assert len(dict(table.scan())) == 20


def test_a_reply_that_would_be_too_large_has_fewer_rows(
    cluster: Cluster, counted: tuple[awoke.App, Probe], monkeypatch: pytest.MonkeyPatch
) -> None:
    app, _ = counted
    monkeypatch.setattr("awoke.runtime.process.table_queries.PAGE_BYTES_MAX", 3)  # Two rows of two bytes.
    with reader(cluster, app) as table:
        assert len(table.many([f"{key}" for key in range(20)])) == 20


def test_an_event_loop_reads_rows_without_blocking(cluster: Cluster, counted: tuple[awoke.App, Probe]) -> None:
    app, _ = counted

    async def read() -> None:
        table = reader(cluster, app)
        async with table:
            assert await table.aget("7") == 30
            assert (await table.afind("7")).value == 30
            assert await table.amany(["7", "nobody"]) == {"7": 30}
            assert len([key async for key, _ in table.ascan()]) == 20
            assert len({await asyncio.create_task(table.aget(f"{key}")) for key in range(20)}) == 1
            with (
                pytest.warns(BlockingCallWarning, match=r"Table.find blocks .* table.afind"),
                contextlib.suppress(awoke.AwokeError),
            ):
                table.get("7")

    asyncio.run(read())


def test_a_partition_that_is_restored_says_so(
    cluster: Cluster, counted: tuple[awoke.App, Probe], monkeypatch: pytest.MonkeyPatch
) -> None:
    app, _ = counted
    with reader(cluster, app) as table, restoring(monkeypatch, app):
        with pytest.raises(Restoring, match=r"partition \d of table 'counts' is being restored by") as raised:
            table.get("7")
        assert awoke.rpc.errors.http_status(raised.value) == 503
        assert raised.value.details["partition"] == queries.partition_of(b"7", PARTITIONS)
        with pytest.raises(Restoring):
            list(table.scan())
        found = table.find("7", stale=True)
        assert (found.value, found.is_stale) == (30, True)
        assert len(table.many(["1", "7"], stale=True)) == 2
        assert len(list(table.scan(stale=True))) == 20


def test_an_app_that_does_not_run_is_an_error_soon(cluster: Cluster, counted: tuple[awoke.App, Probe]) -> None:
    app, probe = counted
    with reader(cluster, app) as table:
        assert table.get("7") == 30
        probe.stop()
        with pytest.raises(NobodyThere, match=f"table 'counts' of app '{app.name}': group"):
            table.get("7")


def test_a_query_waits_for_the_next_owner(cluster: Cluster, counted: tuple[awoke.App, Probe], awoke_run: Runs) -> None:
    app, probe = counted

    def ask(table: awoke.Table) -> int:
        while True:
            with contextlib.suppress(Restoring):
                return int(table.find("7").value)

    with reader(cluster, app, checks_group=False, group=None) as table, ThreadPoolExecutor(1) as other:
        probe.stop()
        asked = other.submit(ask, table)
        awoke_run(app)
        assert asked.result(30) == 30


def test_wrong_inputs_are_named(cluster: Cluster, counted: tuple[awoke.App, Probe]) -> None:
    app, _ = counted
    for of_app, name in ((app.name, "nothing"), ("no-such-app", "counts")):
        with pytest.raises(UnknownTopic, match=f"app '{of_app}' has no table '{name}' that answers queries"):
            awoke.Table(of_app, name, bootstrap_servers=cluster.bootstrap_servers, kafka=dict(cluster.properties))
    for wrong in ("", None, 5):
        with pytest.raises(ConfigError, match="named by two strings"):
            awoke.Table(app.name, wrong)  # type: ignore[arg-type]
    with reader(cluster, app) as table, pytest.raises(EncodeError, match=r"key of type int"):
        table.get(7)
    with reader(cluster, app, key=int) as table, pytest.raises(EncodeError, match="str is not the type of its keys"):
        table.get("7")
    with reader(cluster, app, key=None, value=Total) as table, pytest.raises(DecodeError, match="'counts'"):
        table.get(b"7")


def test_an_unknown_table_is_named_on_an_event_loop(cluster: Cluster) -> None:
    async def read() -> None:
        table = awoke.Table(
            "no-such-app", "counts", bootstrap_servers=cluster.bootstrap_servers, kafka=dict(cluster.properties)
        )
        with pytest.raises(UnknownTopic, match="'no-such-app' has no table"):
            await table.aget(b"7")
        await table.aclose()

    asyncio.run(read())


def test_requests_that_no_table_makes_are_refused(cluster: Cluster, counted: tuple[awoke.App, Probe]) -> None:
    app, _ = counted
    service, form = queries.service_of(app.name, "counts"), awoke.msgpack(queries.RowLookup)
    with Caller(
        service, cluster.bootstrap_servers, group=app.settings.group, kafka=dict(cluster.properties), timeout_s=20.0
    ) as caller:
        of_two = queries.key_in(2, PARTITIONS)
        with pytest.raises(FailedPrecondition, match=r"about partition 3 .* has come to partition 2"):
            caller.call("get", queries.RowLookup([b"7"], 3), key=of_two, argument=form)
        for keys in ([], [b"7"] * (queries.KEYS_MAX + 1)):
            with pytest.raises(InvalidArgument, match="1 to 500 keys"):
                caller.call("get", queries.RowLookup(keys), key=of_two, argument=form)
        with pytest.raises(InvalidArgument):
            caller.call("get", queries.RowLookup(["text"]), key=of_two, argument=form)  # type: ignore[list-item]


def test_a_scan_that_another_process_has_begun_again_is_an_error(
    cluster: Cluster, counted: tuple[awoke.App, Probe], monkeypatch: pytest.MonkeyPatch
) -> None:
    app, _ = counted
    monkeypatch.setattr(queries, "PAGE_ROWS_MAX", 1)
    with reader(cluster, app) as table:
        stream = table._stream

        async def swapped(*arguments: Any) -> AsyncIterator[queries.RowPage]:
            pages, others = list(stream(*arguments)), list(stream(*arguments))
            for page in [*pages[:1], *others[1:]]:
                yield page

        drive_count = dict(table.scan())
        monkeypatch.setattr(table, "_stream", swapped)
        rows = table.scan(2)
        assert next(rows)[0] in drive_count
        with pytest.raises(Unavailable, match="was given to another process while it was scanned"):
            list(rows)


def test_an_app_that_answers_no_queries_makes_no_topics(cluster: Cluster, topic: CreateTopic, awoke_run: Runs) -> None:
    name = topic("in", 1)
    app, _ = counting(cluster, name)
    app.use(table_queries=False)
    awoke_run(app)
    with pytest.raises(UnknownTopic, match="table_queries"):
        reader(cluster, app)


def test_a_topic_of_requests_with_other_partitions_keeps_no_app_from_starting(
    cluster: Cluster, topic: CreateTopic, awoke_run: Runs, caplog: pytest.LogCaptureFixture
) -> None:
    name = topic("in", 2)
    app, counts = counting(cluster, name)
    topic_of_calls = f"{counts.changelog}.rpc.calls"
    cluster.create_topic(topic_of_calls, 3)
    send(cluster, name, 2, 1)
    awoke_run(app).idle()
    assert counts.committed() == {"0": 2}
    assert became(lambda: f"{topic_of_calls!r} has 3 partitions, and needs 2" in caplog.text)


def test_queries_of_an_app_with_a_secret_are_signed(cluster: Cluster, topic: CreateTopic, awoke_run: Runs) -> None:
    name = topic("in", 1)
    app, _ = counting(cluster, name)
    app.rpc.options(secret=b"a secret of both sides")
    send(cluster, name, 2, 1)
    awoke_run(app).idle()
    with reader(cluster, app, secret=b"a secret of both sides") as table:
        assert table.get("0") == 2
    with reader(cluster, app, timeout_s=1.0) as table, pytest.raises(awoke.RpcError):
        table.get("0")
