"""Tables: rows are committed with the messages that changed them, and are there again after a restart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import awoke
from awoke.errors import ConfigError, StateError
from awoke.testing import Runs, running
from tests.contract.test_consume import committed, new_app
from tests.support.clusters import Cluster, RealCluster, read_all, unique
from tests.support.waiting import became, wait_until

CreateTopic = Callable[..., str]
SOON = awoke.Retry(attempts=2, backoff_s=(0.01, 0.02))


def counting(cluster: Cluster, name: str, **options: Any) -> tuple[awoke.App, Any]:
    """Returns an app that counts the messages of each key, and its table."""
    app = new_app(cluster)
    counts = app.table("counts", key=str, value=int)

    @app.on(name, tables=[counts], **options)
    def count(message: awoke.Message[bytes]) -> None:
        key = (message.key or b"").decode()
        counts[key] = counts.get(key, 0) + 1
        if message.value == b"bad":
            raise ValueError("no good")

    return app, counts


def rows(cluster: Cluster, table: Any) -> dict[bytes, bytes | None]:
    """Returns the last value of each key in the changelog of a table, as any client reads it."""
    return {message.raw_key or b"": message.value for message in read_all(cluster, str(table.changelog))}


def read_values(cluster: Cluster, topic: str) -> list[bytes]:
    return [message.value or b"" for message in read_all(cluster, topic)]


def send(cluster: Cluster, topic: str, count: int, keys: int, value: bytes = b"good") -> None:
    with awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as producer:
        for number in range(count):
            producer.produce(topic, value, key=b"%d" % (number % keys))


@pytest.mark.parametrize("concurrency", [None, awoke.by_key(8)], ids=["partition", "by_key"])
def test_rows_survive_a_restart(
    cluster: Cluster, topic: CreateTopic, concurrency: awoke.Concurrency | None, awoke_run: Runs
) -> None:
    name = topic("in", 3)
    app, counts = counting(cluster, name, concurrency=concurrency)
    send(cluster, name, 600, 20)
    probe = awoke_run(app)
    probe.idle()
    probe.stop()
    send(cluster, name, 600, 20)
    awoke_run(app).idle()
    assert rows(cluster, counts) == {b"%d" % key: b"60" for key in range(20)}
    assert sum(committed(cluster, app).values()) == 1_200


@pytest.mark.parametrize("concurrency", [None, awoke.by_key(8)], ids=["partition", "by_key"])
def test_a_message_that_fails_leaves_no_row(
    cluster: Cluster, topic: CreateTopic, concurrency: awoke.Concurrency | None, awoke_run: Runs
) -> None:
    name, dead = topic("in", 1), topic("dead")
    app, counts = counting(cluster, name, concurrency=concurrency, retry=SOON, dead_letter=dead)
    send(cluster, name, 3, 1)
    send(cluster, name, 1, 1, b"bad")
    send(cluster, name, 3, 1)
    probe = awoke_run(app)
    probe.idle()
    assert rows(cluster, counts) == {b"0": b"6"}
    assert probe.table("counts") == {"0": 6}
    assert [each.attempt for each in probe.failures] == [1, 2]
    assert len(read_all(cluster, dead)) == 1


def test_a_row_is_deleted(cluster: Cluster, topic: CreateTopic, awoke_run: Runs) -> None:
    name, app, seen = topic("in", 1), new_app(cluster), []
    table = app.table("last")

    @app.on(name, tables=[table])
    def handle(message: awoke.Message[bytes]) -> None:
        key = message.key or b""
        seen.append((table.get(key), key in table, sorted(table), len(table)))
        if key in table:
            del table[key]
            assert key not in table
        else:
            table[key] = message.value

    send(cluster, name, 4, 2)
    awoke_run(app).idle()
    assert seen == [
        (None, False, [], 0),
        (None, False, [b"0"], 1),
        (b"good", True, [b"0", b"1"], 2),
        (b"good", True, [b"1"], 1),
    ]
    assert rows(cluster, table) == {b"0": None, b"1": None}


def test_a_table_is_used_in_handlers_that_name_it(cluster: Cluster, topic: CreateTopic, awoke_run: Runs) -> None:
    name, app = topic("in", 1), new_app(cluster)
    counts, others = app.table("counts", value=int), app.table("others")
    told: list[str] = []

    @app.on(name, tables=[counts], concurrency=awoke.by_key(2))
    def handle(message: awoke.Message[bytes]) -> None:
        for use in (lambda: others.get(b"a"), lambda: counts.__setitem__(b"of another", 1)):
            with pytest.raises(StateError) as raised:
                use()
            told.append(str(raised.value))

    send(cluster, name, 1, 1)
    awoke_run(app).idle()
    with pytest.raises(StateError, match="route names it"):
        counts.get(b"a")
    assert "tables=[others]" in told[0]
    assert "b'0'" in told[1]
    assert "b'of another'" in told[1]


def test_a_changelog_with_other_partitions_is_refused(cluster: Cluster, topic: CreateTopic, awoke_run: Runs) -> None:
    name = topic("in", 3)
    app, counts = counting(cluster, name)
    with awoke.Admin(cluster.bootstrap_servers, kafka=cluster.properties) as admin:
        admin.create_topic(str(counts.changelog), partitions=2)
    with pytest.raises(ConfigError, match="2 partitions"):
        awoke_run(app)


def test_a_transaction_of_a_dead_process_holds_no_restart_up(
    cluster: Cluster, topic: CreateTopic, awoke_run: Runs
) -> None:
    name = topic("in", 1)
    app, counts = counting(cluster, name)
    send(cluster, name, 3, 1)
    probe = awoke_run(app)
    probe.idle()
    probe.stop()
    kafka = {**cluster.properties, "transaction.timeout.ms": "600000"}
    with awoke.Producer(cluster.bootstrap_servers, kafka=kafka, transactional_id=unique("dead")) as dead:

        def restart() -> None:
            with dead.transaction() as transaction:
                transaction.produce(str(counts.changelog), b"99", key=b"0", partition=0).wait()
                send(cluster, name, 1, 1)
                with running(app, bootstrap_servers=cluster.bootstrap_servers, kafka=cluster.properties):
                    wait_until(lambda: counts.committed() == {"0": 4}, "the next message is counted", 60, 0.01)
                raise ZeroDivisionError  # It aborts the transaction.

        with pytest.raises(ZeroDivisionError):
            restart()


def test_a_changelog_from_which_kafka_deletes_rows_is_refused(real_cluster: RealCluster) -> None:
    name = unique("in")
    with awoke.Admin(real_cluster.bootstrap_servers, kafka=real_cluster.properties) as admin:
        admin.create_topic(name)
        for ttl_s, config, told in (
            (None, {"cleanup.policy": "delete"}, "cleanup.policy=delete"),
            (None, {"cleanup.policy": "compact,delete", "retention.ms": "60000"}, "it needs cleanup.policy=compact"),
            (60, {"cleanup.policy": "compact,delete", "retention.ms": "59000"}, "retention.ms=60000"),
        ):
            app = new_app(real_cluster)
            table = app.table("rows", ttl_s=ttl_s)
            app.on(name, tables=[table])(lambda message: None)
            admin.create_topic(str(table.changelog), config=config)
            servers, kafka = real_cluster.bootstrap_servers, real_cluster.properties
            with pytest.raises(ConfigError, match=told), running(app, bootstrap_servers=servers, kafka=kafka):
                pass


@pytest.mark.parametrize("concurrency", [None, awoke.by_key(8)], ids=["partition", "by_key"])
@pytest.mark.parametrize("is_async", [False, True], ids=["def", "async def"])
@pytest.mark.parametrize("has_block", [False, True], ids=["batch", "transaction"])
def test_a_class_writes_rows_with_its_batch(
    cluster: Cluster,
    topic: CreateTopic,
    concurrency: awoke.Concurrency | None,
    is_async: bool,
    has_block: bool,
    awoke_run: Runs,
) -> None:
    name, out, app = topic("in", 2), topic("out"), new_app(cluster)
    counts = app.table("counts", value=int)
    failed: list[int] = []

    def count(batch: awoke.Batch[bytes]) -> None:
        for message in batch:
            counts[message.key or b""] = counts.get(message.key or b"", 0) + 1
        if len(failed) < 3:
            failed.append(len(batch))
            raise ValueError("at first")

    def send_counts(transaction: Any, batch: awoke.Batch[bytes]) -> None:
        count(batch)
        for message in batch:
            transaction.produce(out, str(counts[message.key or b""]), key=message.key)

    class Counter(awoke.Consumer):
        def consume(self, batch: awoke.Batch[bytes]) -> None:
            if not has_block:
                count(batch)
                return
            with self.transaction() as transaction:
                send_counts(transaction, batch)
            assert not any(counts.get(message.key or b"") is None for message in batch), "it is committed"

    class AsyncCounter(awoke.Consumer):
        async def consume(self, batch: awoke.Batch[bytes]) -> None:
            if not has_block:
                count(batch)
                return
            async with self.transaction() as transaction:
                send_counts(transaction, batch)

    kind = AsyncCounter if is_async else Counter
    app.consumer(name, tables=[counts], concurrency=concurrency, retry=awoke.Retry(attempts=9, backoff_s=(0.01, 0.02)))(
        kind
    )
    send(cluster, name, 60, 6)
    probe = awoke_run(app)
    probe.idle()
    assert len(probe.failures) == len(failed)
    probe.stop()
    send(cluster, name, 60, 6)
    awoke_run(app).idle()
    assert rows(cluster, counts) == {b"%d" % key: b"20" for key in range(6)}
    assert len(read_values(cluster, out)) == (120 if has_block else 0)


def test_a_class_with_tables_marks_in_transactions_only(cluster: Cluster, topic: CreateTopic, awoke_run: Runs) -> None:
    name, app, told = topic("in", 1), new_app(cluster), list[str]()
    counts = app.table("counts", value=int)

    @app.consumer(name, tables=[counts])
    class Counter(awoke.Consumer):
        def consume(self, batch: awoke.Batch[bytes]) -> None:
            with pytest.raises(ConfigError, match=r"with self\.transaction") as marked:
                self.mark(batch[0])
            counts[b"a"] = 1
            with pytest.raises(StateError, match="written before") as begun, self.transaction():
                pass
            told.extend([str(marked.value), str(begun.value)])

    send(cluster, name, 1, 1)
    awoke_run(app).idle()
    assert len(told) == 2
    assert rows(cluster, counts) == {b"a": b"1"}


def test_routes_refuse_what_tables_can_not_do() -> None:
    app = awoke.App("tables-refused")
    table = app.table("one")

    def handle(message: awoke.Message[bytes]) -> None: ...

    for options, told in (
        ({"tables": [table], "concurrency": awoke.unordered(4)}, "by_key"),
        ({"tables": [table], "exactly_once": False}, "exactly_once=False"),
        ({"tables": [table, table]}, "twice"),
        ({"tables": ["one"]}, "app.table"),
    ):
        with pytest.raises(ConfigError, match=told):
            app.on("topic", **options)(handle)
    with pytest.raises(ConfigError, match="already"):
        app.table("one")


def test_a_reference_is_there_before_the_first_message_and_follows_its_topic(
    cluster: Cluster, topic: CreateTopic, awoke_run: Runs
) -> None:
    name, customers, output, app = topic("in", 3), topic("customers", 3), topic("out"), new_app(cluster)
    names = app.reference(customers, key=str, value=str)

    @app.on(name, key=str, output=output, tables=[names])
    def greet(message: awoke.Message[bytes, str]) -> str:
        return f"{names.get(message.key, 'nobody')} {message.key in names} {len(names) > 0}"

    with awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as producer:
        for number in range(60):
            producer.produce(customers, f"name {number}", key=f"{number}")
        producer.produce(customers, None, key="7")
        producer.flush(30)
    probe = awoke_run(app)
    for number in (5, 7):
        probe.send(name, b"", key=f"{number}")
    probe.idle()
    assert sorted(read_values(cluster, output)) == [b"name 5 True True", b"nobody False True"]
    probe.send(customers, "new name", key="7")
    assert became(lambda: "new name" in names.committed().values())
    probe.send(name, b"", key="7")
    probe.idle()
    assert b"new name True True" in read_values(cluster, output)
    with pytest.raises(StateError, match="route names it"):
        names.get("5")


def test_a_reference_with_other_partitions_is_refused(cluster: Cluster, topic: CreateTopic, awoke_run: Runs) -> None:
    name, customers, app = topic("in", 3), topic("customers", 2), new_app(cluster)
    app.on(name, tables=[app.reference(customers)])(lambda message: None)
    with pytest.raises(ConfigError, match="2 partitions"):
        awoke_run(app)


@pytest.mark.parametrize("concurrency", [None, awoke.by_key(8)], ids=["partition", "by_key"])
@pytest.mark.parametrize(
    "dedup",
    [
        awoke.Dedup(header="id", for_s=600),
        awoke.Dedup(field="order.id", for_s=600),
        awoke.Dedup(by=lambda message: message.value["order"]["id"], for_s=600),
    ],
    ids=["header", "field", "function"],
)
def test_a_message_whose_id_came_before_is_skipped(
    cluster: Cluster, topic: CreateTopic, dedup: awoke.Dedup, concurrency: awoke.Concurrency | None, awoke_run: Runs
) -> None:
    name, out, app = topic("in", 2), topic("out"), new_app(cluster)
    repeated: list[Any] = []
    app.events.subscribe("message.repeated", repeated.append)

    @app.on(name, value=dict, output=out, dedup=dedup, concurrency=concurrency)
    def pay(message: awoke.Message[dict[str, Any]]) -> bytes:
        return (message.key or b"") + b" " + str(message.value["order"]["id"]).encode()

    def send_ids(*ids: int) -> None:
        with awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as producer:
            for id in ids:
                key, headers = b"%d" % (id % 4), {"id": b"%d" % id}
                producer.produce(name, b'{"order": {"id": %d}}' % id, key=key, headers=headers)

    send_ids(1, 2, 3, 2, 1, 4, 5, 5)
    probe = awoke_run(app)
    probe.idle()
    probe.stop()
    send_ids(3, 6, 6, 1)
    awoke_run(app).idle()
    assert sorted(read_values(cluster, out)) == [b"%d %d" % (id % 4, id) for id in [4, 1, 5, 2, 6, 3]]
    assert len(repeated) == 6


def test_a_message_without_an_id_is_processed_and_one_that_failed_has_not_come(
    cluster: Cluster, topic: CreateTopic, awoke_run: Runs
) -> None:
    name, app = topic("in", 1), new_app(cluster)
    seen: list[bytes] = []

    @app.on(name, dedup=awoke.Dedup(header="id", for_s=600), retry=SOON)
    def take(message: awoke.Message[bytes]) -> None:
        seen.append(message.value)
        if seen.count(b"bad") == 1:
            raise ValueError("at first")

    with awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as producer:
        for value, headers in [(b"a", {}), (b"a", {}), (b"bad", {"id": b"1"}), (b"c", {"id": b"1"})]:
            producer.produce(name, value, headers=headers)
    probe = awoke_run(app)
    probe.idle()
    assert seen == [b"a", b"a", b"bad", b"bad"]
    assert [failure.attempt for failure in probe.failures] == [1]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"for_s": 60}, "say one of header="),
        ({"for_s": 60, "header": "id", "field": "id"}, "say one of header="),
        ({"for_s": 60, "header": ""}, "header is a name"),
        ({"for_s": 60, "field": "a..b"}, "field is a name"),
        ({"for_s": 60, "by": 3}, "by is a function"),
        ({"for_s": -1, "header": "id"}, "for_s"),
        ({"for_s": 0, "header": "id"}, "for_s"),
    ],
)
def test_a_dedup_that_says_nothing_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        awoke.Dedup(**options)


def test_a_misspelt_field_of_an_id_fails_its_message(cluster: Cluster, topic: CreateTopic, awoke_run: Runs) -> None:
    name, dead, app = topic("in", 1), topic("dead"), new_app(cluster)
    retry = awoke.Retry(attempts=1)

    @app.on(name, dedup=awoke.Dedup(field="idd", for_s=600), retry=retry, dead_letter=dead)
    def take(message: awoke.Message[bytes]) -> None: ...

    send(cluster, name, 1, 1)
    probe = awoke_run(app)
    probe.idle()
    assert "no attribute 'idd'" in str(probe.failures[0].error)


def test_dedup_is_refused_where_a_row_can_not_be_kept() -> None:
    app = awoke.App("shop")
    for options in ({"exactly_once": False}, {"concurrency": awoke.unordered(4)}):
        with pytest.raises(ConfigError, match="dedup"):
            app.on("orders", dedup=awoke.Dedup(header="id", for_s=60), **options)(lambda message: None)


def test_a_row_is_gone_after_its_time(cluster: Cluster, topic: CreateTopic, awoke_run: Runs) -> None:
    name, app = topic("in", 1), new_app(cluster)
    short, long = (
        app.table("short", key=str, value=int, ttl_s=0.001),
        app.table("long", key=str, value=int, ttl_s=3_600),
    )
    found: list[tuple[int | None, int | None]] = []

    @app.on(name, tables=[short, long])
    def count(message: awoke.Message[bytes]) -> None:
        found.append((short.get("a"), long.get("a")))
        short["a"] = long["a"] = len(found)

    probe = awoke_run(app)
    for number in range(3):
        send(cluster, name, 1, 1)
        probe.idle()
        wait_until(lambda: short.committed() == {}, "the row is old", 5, 0.001)
        assert long.committed() == {"a": number + 1}
    assert found == [(None, None), (None, 1), (None, 2)]
    probe.stop()
    send(cluster, name, 1, 1)
    awoke_run(app).idle()
    assert found[-1] == (None, 3)
