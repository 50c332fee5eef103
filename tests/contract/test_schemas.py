"""Routes whose formats need a schema registry: it is away, comes back, lacks an id, or refuses the login."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

import awoke
from awoke.payloads import dead_letter
from awoke.testing import EmbeddedRegistry, Runs, VirtualClock, running
from tests.contract.test_consume import assert_committed, committed, new_app
from tests.contract.test_recovery import letters
from tests.support.clusters import Cluster, MockCluster, unique
from tests.support.command_line import awoke_says
from tests.support.waiting import Collected, stays_so, wait_until


@pytest.fixture(params=["mock"])
def cluster(mock_cluster: MockCluster) -> Cluster:
    """Embedded brokers alone: real ones do here as they do in other files."""
    return mock_cluster


CreateTopic = Callable[..., str]
Seen = Collected[tuple[int, int, int]]

KINDS = [
    "def",
    "async def",
    "class",
    "async class",
    "lanes",
    "class with lanes",
    "where",
    "exactly once",
    "output",
    "lanes output",
    "ordered",
    "async ordered",
]
SENDING = ["exactly once", "output", "lanes output", "ordered", "async ordered"]


class Order(msgspec.Struct):
    id: int


@pytest.fixture
def registry() -> Iterator[EmbeddedRegistry]:
    with EmbeddedRegistry() as registry:
        yield registry


def wait_for_back_offs(waits: Collected[Any], count: int, clock: VirtualClock | None) -> list[Any]:
    """Waits until messages have begun this number of back-offs: the first four end within 5 s."""
    waits.wait_for(1)
    if clock is not None:
        clock.advance(5.0)
    return waits.wait_for(count)


def app_of(cluster: Cluster, registry: EmbeddedRegistry, **options: Any) -> awoke.App:
    return new_app(cluster, **{"registry_url": registry.url, "registry_timeout_s": 2.0, **options})


def fill(cluster: Cluster, registry: EmbeddedRegistry, topic: awoke.Topic, values: list[Any]) -> None:
    """Sends values with their places as keys; a value that is no bytes registers the schema of its class."""
    app = app_of(cluster, registry, registry_register="dev", registry_timeout_s=30.0)
    orders = app.topic(str(topic), value=topic.value, key=int)
    awoke.wait_all([app.producer.produce(orders, value, key=place) for place, value in enumerate(values)], 30)
    app.close_producer()
    app.schemas.close()


def route(app: awoke.App, kind: str, topic: awoke.Topic, out: str, seen: Seen, **options: Any) -> None:
    """Adds a route of this kind that collects key, id and attempt of its orders."""
    if kind == "where":
        options["flow"] = awoke.Flow(where=lambda message: message.value.id >= 0)
    if "lanes" in kind or "ordered" in kind:
        options["concurrency"] = awoke.by_key(4)
    if kind in SENDING:
        options |= {"output": awoke.Topic(out, value=topic.value, key=int), "exactly_once": kind == "exactly once"}
        options |= {"ordered": True} if "ordered" in kind else {}

    def note(message: awoke.Message[Order, int]) -> Order | None:
        seen.add((message.key, message.value.id, message.attempt))
        return message.value if "output" in options else None

    async def note_async(message: awoke.Message[Order, int]) -> Order | None:
        return note(message)

    class Orders(awoke.Consumer):
        def consume(self, batch: awoke.Batch[Order, int]) -> None:
            for key, order in list(zip(batch.keys(), batch.values(), strict=True)):
                seen.add((key, order.id, batch.attempt))

    class AsyncOrders(awoke.Consumer):
        async def consume(self, batch: awoke.Batch[Order, int]) -> None:
            for key, order in list(zip(batch.keys(), batch.values(), strict=True)):
                seen.add((key, order.id, batch.attempt))

    if "class" in kind:
        app.consumer(topic, **options)(AsyncOrders if "async" in kind else Orders)
    else:
        app.on(topic, **options)(note_async if "async" in kind else note)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", [awoke.avro(Order), awoke.json_schema(Order)], ids=["avro", "json"])
def test_messages_wait_while_the_registry_is_away_and_none_is_lost_or_counted(
    cluster: Cluster,
    topic: CreateTopic,
    registry: EmbeddedRegistry,
    clock: VirtualClock | None,
    kind: str,
    form: Any,
) -> None:
    orders, out, dead = awoke.Topic(topic(), value=form, key=int), topic("out"), topic("dead")
    fill(cluster, registry, orders, [Order(number) for number in range(20)])
    registry.set_up(False)
    app, seen, waits = app_of(cluster, registry), Seen(), Collected[awoke.Event]()
    route(app, kind, orders, out, seen, dead_letter=dead, retry=awoke.Retry(attempts=2, backoff_s=(0.01, 0.02)))
    app.events.subscribe("registry.waited", waits.add)
    if kind in SENDING:
        app.use(registry_register="dev")
    with running(app):
        wait_for_back_offs(waits, 4, clock)
        if clock is None:
            stays_so(lambda: not seen.items, "no message is processed", 0.2)
        assert not seen.items, "no message is processed"
        registry.set_up(True)
        if clock is not None:
            clock.advance(60.0)
        found = seen.wait_until(lambda items: len({key for key, _, _ in items}) == 20)
        assert {(key, number) for key, number, _ in found} == {(number, number) for number in range(20)}
        assert {attempt for _, _, attempt in found} == {1}
        if clock is not None:
            clock.advance(60.0)  # The commit interval, too, is a time of this clock.
        whole = {(str(orders), 0): 20}
        wait_until(lambda: committed(cluster, app) == whole, "all are committed")
    assert letters(cluster, dead) == []
    assert_committed(cluster, app, {(str(orders), 0): 20})


def test_a_registry_that_goes_away_later_stops_only_what_needs_a_new_schema(
    cluster: Cluster, topic: CreateTopic, registry: EmbeddedRegistry, awoke_run: Runs
) -> None:
    orders = awoke.Topic(topic(), value=awoke.avro(Order), key=int)
    newer = {
        "type": "record",
        "name": "Order",
        "fields": [{"name": "id", "type": "long"}, {"name": "x", "type": "null"}],
    }
    fill(cluster, registry, orders, [Order(0)])
    app, seen, waits = app_of(cluster, registry), Seen(), Collected[awoke.Event]()
    route(app, "def", orders, "", seen)
    app.events.subscribe("registry.waited", waits.add)
    probe = awoke_run(app)
    probe.idle()
    with awoke.SchemaRegistry(registry.url) as client:
        schema = awoke.registry.Schema(msgspec.json.encode(newer).decode())
        assert client.register(unique("any"), schema).id == 2
    registry.set_up(False)
    with awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as producer:
        producer.produce(str(orders), b"\0\0\0\0\1\2", key=b"1").wait(30)
        seen.wait_for(2)
        assert waits.items == []
        producer.produce(str(orders), b"\0\0\0\0\2\4", key=b"2").wait(30)
        waits.wait_for(1)
    registry.set_up(True)
    probe.idle()
    assert seen.items == [(0, 0, 1), (1, 1, 1), (2, 2, 1)]


def test_an_id_that_the_registry_does_not_have_and_bytes_that_are_cut_off_are_dead_letters(
    cluster: Cluster, topic: CreateTopic, registry: EmbeddedRegistry, awoke_run: Runs
) -> None:
    orders, dead = awoke.Topic(topic(), value=awoke.avro(Order), key=int), topic("dead")
    wrong = [b"\0\0\0\0\x63\1", b"\0\0\0\0\1", b"no schema"]
    fill(cluster, registry, orders, [Order(0), *wrong, Order(4)])
    app, seen = app_of(cluster, registry), Seen()
    route(app, "def", orders, "", seen, dead_letter=dead)
    probe = awoke_run(app)
    # They may lie in two partitions.
    probe.idle()
    assert sorted(seen.items) == [(0, 0, 1), (4, 4, 1)]
    assert {each.offset for each in probe.failures} == {each.offset for each in probe.dead_letters}
    found = letters(cluster, dead)
    assert [letter.raw_value for letter in found] == wrong
    said = [dead_letter.origin(letter) for letter in found]
    words = ("Schema 99 not found", "the bytes end within the record", "the bytes begin with 6e 6f 20 73 63")
    for origin, word in zip(said, words, strict=True):
        assert origin is not None
        assert word in origin.error_text
    assert_committed(cluster, app, {(str(orders), 0): 5})


def test_a_login_that_is_refused_makes_messages_wait_and_says_why(cluster: Cluster, topic: CreateTopic) -> None:
    with EmbeddedRegistry(user="shop", password="right") as registry:
        orders = awoke.Topic(topic(), value=awoke.avro(Order), key=int)
        app = app_of(cluster, registry, registry_user="shop", registry_password="right", registry_register="dev")
        same = app.topic(str(orders), value=orders.value, key=int)
        app.producer.produce(same, Order(7), key=7).wait(30)
        app.close_producer()
        app.schemas.close()
        app = app_of(cluster, registry, registry_user="shop", registry_password="wrong", blocked_after_s=0.05)
        waits, seen = Collected[Any](), Seen()
        route(app, "def", orders, "", seen)
        app.events.subscribe("registry.waited", waits.add)
        with running(app) as server:
            waited = waits.wait_for(2)[0]
            assert "401" in str(waited.error)
            assert "wrong" not in str(waited.error)
            wait_until(lambda: "RegistryUnauthorized" in str(server.health().reasons), "health says why")
        assert seen.items == []


def test_what_is_sent_to_a_subject_without_a_schema_waits_until_there_is_one(
    cluster: Cluster, topic: CreateTopic, registry: EmbeddedRegistry
) -> None:
    orders, out = topic(), awoke.Topic(topic("out"), value=awoke.avro(Order))
    app, waits = app_of(cluster, registry), Collected[Any]()

    @app.on(orders, output=out, value=int)
    def price(message: awoke.Message[int]) -> Order:
        return Order(message.value)

    app.events.subscribe("registry.waited", waits.add)
    app.producer.produce(orders, b"7").wait(30)
    with running(app):
        assert f"no schema of '{out}-value'" in str(waits.wait_for(1)[0].error)
        fill(cluster, registry, out, [Order(0)])
        with awoke.Reader(out, bootstrap_servers=cluster.bootstrap_servers, value=bytes) as reader:
            found = iter(reader)
            both = {next(found).value for _ in range(2)}  # The app may be first: the schema came before Order(0).
            assert both == {b"\0\0\0\0\1\0", b"\0\0\0\0\1\x0e"}


def test_a_producer_on_an_event_loop_is_told_that_a_schema_is_missing(
    cluster: Cluster, topic: CreateTopic, registry: EmbeddedRegistry, awoke_run: Runs
) -> None:
    orders, out = topic(), awoke.Topic(topic("out"), value=awoke.avro(Order))
    app = app_of(cluster, registry, registry_register="dev")
    sent, attempts = Collected[Any](), Collected[int]()

    @app.on(orders)
    async def handle(message: awoke.Message[bytes]) -> None:
        attempts.add(message.attempt)
        sent.add(await app.producer.produce(out, Order(7)))

    app.topic(str(out), value=out.value)
    app.producer.produce(orders, b"").wait(30)
    awoke_run(app).idle()
    assert set(attempts.items) == {1}, "a schema that is loaded is no attempt"


def test_an_app_with_such_a_format_and_without_a_registry_does_not_start(cluster: Cluster, topic: CreateTopic) -> None:
    app = new_app(cluster)
    app.on(topic(), value=awoke.avro(Order))(lambda message: None)
    with pytest.raises(awoke.ConfigError, match="registry_url"), running(app):
        pass


def test_a_reader_decodes_keys_and_values(cluster: Cluster, topic: CreateTopic, registry: EmbeddedRegistry) -> None:
    orders = awoke.Topic(topic(), value=awoke.avro(Order), key=int)
    fill(cluster, registry, orders, [Order(0), Order(1), b"no schema"])
    servers = cluster.bootstrap_servers
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWOKE_REGISTRY_URL", registry.url)
        with awoke.Reader(orders, bootstrap_servers=servers) as reader:
            first, second, third = reader.read_until_end(30)
            assert [(each.key, each.value) for each in (first, second)] == [(0, Order(0)), (1, Order(1))]
            assert (third.key, third.raw_key, third.raw_value) == (2, b"2", b"no schema")
            with pytest.raises(awoke.DecodeError, match="not with 00 and the id"):
                third.value  # noqa: B018 - it is read here.
    with awoke.Reader(orders, bootstrap_servers=servers, value=bytes, key=str) as reader:
        assert [message.key for message in reader.read_until_end(30)] == ["0", "1", "2"]


def test_messages_of_proto_sources_are_decoded_at_the_shell(
    cluster: Cluster, topic: CreateTopic, registry: EmbeddedRegistry
) -> None:
    orders = topic()
    item = awoke.registry.Schema('syntax = "proto3"; package shop; message Item { string name = 1; }', "PROTOBUF")
    imports = 'import "shop/item.proto"; import "google/protobuf/duration.proto";'
    fields = "Item item = 1; google.protobuf.Duration within = 2;"
    text = f'syntax = "proto3"; package shop; {imports} message Other {{}} message Order {{ {fields} }}'
    reference = awoke.registry.Reference("shop/item.proto", "item", 1)
    with awoke.registry.SchemaRegistry(registry.url) as client:
        client.register("item", item)
        good = client.register(f"{orders}-value", awoke.registry.Schema(text, "PROTOBUF", (reference,))).id
        bad = client.register("bad", awoke.registry.Schema("message Bad { Nothing a = 1; }", "PROTOBUF")).id
    payload = b"\x0a\x05\x0a\x03tea\x12\x02\x08\x3c"
    values = [b"\0" + good.to_bytes(4) + b"\2\2" + payload, b"\0" + bad.to_bytes(4) + b"\0" + payload]
    with awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as producer:
        awoke.wait_all([producer.produce(orders, each, partition=0) for each in values], 30)
    at = ("--bootstrap-servers", cluster.bootstrap_servers, "--registry-url", registry.url)
    shown = awoke_says("tail", orders, "--until-end", "--decode", "--json", *at)
    decoded, undecoded = map(msgspec.json.decode, shown.splitlines())
    assert (decoded["value"], decoded["value_schema"]) == ({"item": {"name": "tea"}, "within": "60s"}, good)
    assert "Protobuf message Bad" in undecoded["value_note"]
    assert "does not compile: the schema.proto:1:15: " in undecoded["value_note"]


def test_a_producer_closes_the_client_that_it_has_opened(
    cluster: Cluster, topic: CreateTopic, registry: EmbeddedRegistry
) -> None:
    orders = awoke.Topic(topic(), value=awoke.avro(Order), key=int)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWOKE_REGISTRY_URL", registry.url)
        patch.setenv("AWOKE_REGISTRY_REGISTER", "dev")
        for number in range(2):
            with awoke.Producer(cluster.bootstrap_servers, topics=[orders]) as producer:
                producer.produce(orders, Order(number), key=number).wait(30)


def test_an_app_runs_again_with_another_registry(cluster: Cluster, topic: CreateTopic) -> None:
    orders, seen = awoke.Topic(topic(), value=awoke.avro(Order), key=int), Seen()
    app = new_app(cluster, registry_register="dev")
    route(app, "def", app.topic(str(orders), value=orders.value, key=int), "", seen)
    for number, fields in enumerate((["id"], ["more", "id"])):
        with EmbeddedRegistry() as registry:
            schema = {"type": "record", "name": "Order", "fields": [{"name": each, "type": "long"} for each in fields]}
            fill(
                cluster,
                registry,
                awoke.Topic(orders, value=awoke.avro(schema=schema)),
                [dict.fromkeys(fields, 9) | {"id": number}],
            )
            app.use(registry_url=registry.url)
            with running(app):
                seen.wait_for(number + 1)
    assert [found[1] for found in seen.items] == [0, 1], "the same id is another schema in another registry"


@pytest.mark.parametrize("kind", ["output", "lanes output", "ordered", "async ordered"])
def test_results_wait_while_the_registry_of_the_output_is_away(
    cluster: Cluster, topic: CreateTopic, registry: EmbeddedRegistry, clock: VirtualClock | None, kind: str
) -> None:
    orders, out, dead = awoke.Topic(topic(), value=Order, key=int), topic("out"), topic("dead")
    results = awoke.Topic(out, value=awoke.avro(Order))
    with awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as producer:
        awoke.wait_all([producer.produce(str(orders), Order(each), key=f"{each}") for each in range(20)], 30)
    registry.set_up(False)
    app, waits = app_of(cluster, registry, registry_register="dev"), Collected[awoke.Event]()
    options: Any = {"concurrency": awoke.by_key(4)} if kind != "output" else {}

    def note(message: awoke.Message[Order, int]) -> Order:
        return message.value

    async def note_async(message: awoke.Message[Order, int]) -> Order:
        return message.value

    app.on(
        orders, output=results, ordered="ordered" in kind, dead_letter=dead, retry=awoke.Retry(attempts=2), **options
    )(note_async if "async" in kind else note)
    app.events.subscribe("registry.waited", waits.add)
    with running(app):
        wait_for_back_offs(waits, 3, clock)
        registry.set_up(True)
        if clock is not None:
            clock.advance(60.0)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("AWOKE_REGISTRY_URL", registry.url)
            with awoke.Reader(results, bootstrap_servers=cluster.bootstrap_servers) as reader:
                found = iter(reader)
                numbers: list[int] = []
                while len(set(numbers)) < 20:
                    numbers.append(next(found).value.id)
    assert letters(cluster, dead) == []
    if "ordered" in kind:
        assert list(dict.fromkeys(numbers)) == list(range(20))


def test_the_counters_of_the_registry_are_those_of_the_app(
    cluster: Cluster, topic: CreateTopic, registry: EmbeddedRegistry, awoke_run: Runs
) -> None:
    orders = awoke.Topic(topic(), value=awoke.avro(Order), key=int)
    fill(cluster, registry, orders, [Order(number) for number in range(50)])
    app, seen = app_of(cluster, registry, registry_cache_max=1), Seen()
    route(app, "def", orders, "", seen)
    app.use(metrics_port=0)
    probe = awoke_run(app)
    server = probe.runner
    probe.idle()
    counts = server.registry()
    lines = server.metrics_text().decode().splitlines()
    probe.stop()
    assert counts["hits"] >= 49
    assert counts["requests"] >= 1
    assert (counts["errors"], counts["evictions"]) == (0, 0)
    assert counts["wait_s"] > 0
    assert any(line.startswith("awoke_registry_cache_hits_total ") and float(line.split()[1]) >= 49 for line in lines)
    assert "awoke_registry_errors_total 0.0" in lines


@pytest.mark.parametrize("kind", ["def", "async def", "class", "output"])
def test_messages_wait_while_the_key_store_of_their_encryption_is_away(
    cluster: Cluster, topic: CreateTopic, registry: EmbeddedRegistry, clock: VirtualClock | None, kind: str
) -> None:
    keys, current, asked = {"2025": b"a" * 32, "2026": b"b" * 32}, ["2025"], Collected[str]()
    is_away = threading.Event()

    def find(name: str) -> bytes | None:
        asked.add(threading.current_thread().name)
        if is_away.is_set():
            raise ConnectionError("the key store is away")
        return keys.get(name)

    def patients(name: str) -> awoke.Topic:
        return awoke.Topic(name, value=awoke.encrypted(Order, keys=find, current=lambda: current[0]), key=int)

    orders, out, dead = patients(topic()), topic("out"), topic("dead")
    app = app_of(cluster, registry)
    same = app.topic(str(orders), value=orders.value, key=int)
    for number in range(10):
        current[0] = "2025" if number < 5 else "2026"
        app.producer.produce(same, Order(number), key=number).wait(30)
    app.close_producer()
    is_away.set()
    app, seen, waits = app_of(cluster, registry), Seen(), Collected[Any]()
    orders = patients(str(orders))
    route(app, kind, orders, out, seen, dead_letter=dead, retry=awoke.Retry(attempts=2, backoff_s=(0.01, 0.02)))
    app.events.subscribe("registry.waited", waits.add)
    with running(app):
        assert "keys= failed for the key '2025': ConnectionError" in str(wait_for_back_offs(waits, 3, clock)[0].error)
        assert seen.items == []
        is_away.clear()
        if clock is not None:
            clock.advance(60.0)
        found = seen.wait_until(lambda items: len({key for key, _, _ in items}) == 10)
    assert {(key, number, attempt) for key, number, attempt in found} == {(each, each, 1) for each in range(10)}
    assert letters(cluster, dead) == []
