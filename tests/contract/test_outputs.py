"""Results of functions on their way to the route's output: one record, several, and the headers that they keep."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import pytest

import awoke
from awoke.testing import Runs
from tests.contract.test_consume import assert_committed, new_app
from tests.support.clusters import Cluster, read_all, unique

WITHIN_S = 30.0

AT_MS = 1_700_000_000_000

Headers = Sequence[tuple[str, bytes | None]]


class Kind(NamedTuple):
    """A kind of route."""

    name: str
    options: dict[str, Any]

    @property
    def is_exactly_once(self) -> bool:
        return bool(self.options.get("exactly_once"))


KINDS = [
    Kind("partition", {}),
    Kind("by_key", {"concurrency": awoke.by_key(4)}),
    Kind("ordered", {"concurrency": awoke.by_key(4), "ordered": True}),
    Kind("exactly_once", {"exactly_once": True}),
    Kind("exactly_once_by_key", {"exactly_once": True, "concurrency": awoke.by_key(4)}),
]
PLACES = [*(("mock", kind) for kind in KINDS), ("real", KINDS[0]), ("real", KINDS[-1])]
"""Real brokers see a producer, or transactions, whatever the kind of route."""


@pytest.fixture(params=PLACES, ids=[f"{broker}-{kind.name}" for broker, kind in PLACES])
def place(request: pytest.FixtureRequest) -> tuple[str, Kind]:
    found: tuple[str, Kind] = request.param
    return found


@pytest.fixture
def kind(place: tuple[str, Kind]) -> Kind:
    return place[1]


@pytest.fixture
def cluster(request: pytest.FixtureRequest, place: tuple[str, Kind]) -> Cluster:
    found: Cluster = request.getfixturevalue(f"{place[0]}_cluster")
    return found


Handler = Callable[[awoke.Message[bytes]], Any]


@pytest.fixture(params=[False, True], ids=["def", "async"])
def written_as(request: pytest.FixtureRequest) -> Callable[[Handler], Callable[..., Any]]:
    """Makes a `def` or an `async def` of a handler."""

    def as_async(handler: Handler) -> Callable[..., Any]:
        async def handle(message: awoke.Message[bytes]) -> Any:
            return handler(message)

        return handle

    return as_async if request.param else lambda handler: handler


def results(cluster: Cluster, topic: str, count: int) -> list[awoke.Message[bytes | None]]:
    """The messages of a topic, which are this many."""
    found = read_all(cluster, topic)
    assert len(found) == count
    return found


def values(cluster: Cluster, topic: str) -> list[bytes]:
    """The values that a topic has now."""
    return [message.value or b"" for message in read_all(cluster, topic)]


def feed(cluster: Cluster, topic: str, values: Sequence[bytes], headers: Headers = ()) -> None:
    with awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as producer:
        for value in values:
            producer.produce(topic, value, key=b"key", headers=list(headers)).wait(WITHIN_S)


def topics(cluster: Cluster, partitions: int = 3) -> tuple[str, str]:
    name, out = unique("in"), unique("out")
    cluster.create_topic(name)
    cluster.create_topic(out, partitions)
    return name, out


def test_a_record_is_sent_as_it_is(
    cluster: Cluster, kind: Kind, written_as: Callable[[Handler], Callable[..., Any]], awoke_run: Runs
) -> None:
    (name, out), app = topics(cluster), new_app(cluster)

    def handle(message: awoke.Message[bytes]) -> Any:
        match message.value:
            case b"full":
                return awoke.Record({"id": 1}, "other", {"tenant": "7"}, 2, AT_MS)
            case b"tombstone":
                return awoke.Record(None, key=message.key, partition=1)
            case b"nothing":
                return None
        return message.value

    app.on(name, output=out, **kind.options)(written_as(handle))
    feed(cluster, name, [b"full", b"tombstone", b"nothing", b"plain"], [("of", b"input")])
    awoke_run(app).idle()
    found = {message.raw_value: message for message in results(cluster, out, 3)}
    full, tombstone, plain = found[b'{"id":1}'], found[None], found[b"plain"]
    assert (full.key, full.headers, full.partition, full.timestamp_ms) == (b"other", [("tenant", b"7")], 2, AT_MS)
    assert (tombstone.key, tombstone.partition, tombstone.headers) == (b"key", 1, [])
    assert (plain.key, plain.headers) == (b"key", [])
    assert_committed(cluster, app, {(name, 0): 4})


def test_a_list_of_records_is_sent_record_by_record(
    cluster: Cluster, kind: Kind, written_as: Callable[[Handler], Callable[..., Any]], awoke_run: Runs
) -> None:
    (name, out), app = topics(cluster, partitions=1), new_app(cluster)

    def handle(message: awoke.Message[bytes]) -> Any:
        number = int(message.value)
        if number == 2:
            return [[1, 2], [3]]  # A value: no records are in it.
        return [awoke.Record(f"{number}.{place}", key=message.key) for place in range(number)] or None

    app.on(name, output=out, **kind.options)(written_as(handle))
    feed(cluster, name, [b"0", b"1", b"2", b"3"])
    awoke_run(app).idle()
    found = [message.raw_value for message in results(cluster, out, 5)]
    assert found == [b"1.0", b"[[1,2],[3]]", b"3.0", b"3.1", b"3.2"]
    assert_committed(cluster, app, {(name, 0): 4})


def test_an_annotated_handler_may_return_an_empty_list(cluster: Cluster, kind: Kind, awoke_run: Runs) -> None:
    (name, out), app = topics(cluster, partitions=1), new_app(cluster)

    @app.on(name, output=out, **kind.options)
    def handle(message: awoke.Message[bytes]) -> list[awoke.Record]:
        return [awoke.Record(message.value)] if message.value != b"none" else []

    feed(cluster, name, [b"none", b"one", b"none", b"two"])
    awoke_run(app).idle()
    assert [message.raw_value for message in results(cluster, out, 2)] == [b"one", b"two"]
    assert_committed(cluster, app, {(name, 0): 4})


@pytest.mark.parametrize(
    ("forwards", "expected"),
    [
        (False, [("own", b"1")]),
        (True, [("tenant", b"7"), ("tenant", b"8"), ("empty", None), ("own", b"1")]),
        (["tenant", "own"], [("tenant", b"7"), ("tenant", b"8"), ("own", b"1")]),
        (("own",), [("own", b"1")]),
    ],
    ids=["none", "all", "some", "own"],
)
def test_headers_are_carried_on_by_choice(
    cluster: Cluster, kind: Kind, forwards: bool | Collection[str], expected: Headers, awoke_run: Runs
) -> None:
    (name, out), app = topics(cluster, partitions=1), new_app(cluster)

    @app.on(name, output=out, forward_headers=forwards, **kind.options)
    def handle(message: awoke.Message[bytes]) -> awoke.Record | bytes:
        return awoke.Record(b"record", headers={"own": "1"}) if message.value == b"1" else message.value

    feed(cluster, name, [b"1"], [("tenant", b"7"), ("own", b"0"), ("tenant", b"8"), ("empty", None)])
    feed(cluster, name, [b"2"], [("tenant", b"7")])
    awoke_run(app).idle()
    record, plain = results(cluster, out, 2)
    assert record.headers == expected
    assert plain.headers == ([("tenant", b"7")] if forwards is True or forwards == ["tenant", "own"] else [])


def test_a_record_for_a_partition_that_is_not_there_is_dead_lettered(
    cluster: Cluster, kind: Kind, awoke_run: Runs
) -> None:
    (name, out), app = topics(cluster), new_app(cluster)
    dead = unique("dead")
    cluster.create_topic(dead)

    @app.on(name, output=out, dead_letter=dead, retry=awoke.Retry(backoff_s=(0.01, 0.01)), **kind.options)
    def handle(message: awoke.Message[bytes]) -> list[awoke.Record]:
        partition = 99 if message.value == b"wrong" else 0
        return [awoke.Record(message.value, partition=0), awoke.Record(b"2", partition=partition)]

    feed(cluster, name, [b"a", b"wrong", b"b"])
    probe = awoke_run(app)
    probe.idle()
    assert [each.offset for each in probe.dead_letters] == [1]
    assert 1 in {each.offset for each in probe.failures}
    assert values(cluster, dead) == [b"wrong"]
    assert (set(values(cluster, out)) - {b"wrong"}) == {b"a", b"b", b"2"}
    if kind.is_exactly_once:
        assert values(cluster, out) == [b"a", b"2", b"b", b"2"]
    assert_committed(cluster, app, {(name, 0): 3})


def test_one_record_that_can_not_be_sent_fails_its_message(cluster: Cluster, kind: Kind, awoke_run: Runs) -> None:
    (name, out), app = topics(cluster, partitions=1), new_app(cluster)
    dead = unique("dead")
    cluster.create_topic(dead)

    @app.on(name, output=out, dead_letter=dead, retry=awoke.Retry(attempts=1), **kind.options)
    def handle(message: awoke.Message[bytes]) -> Any:
        first = awoke.Record(message.value)
        match message.value:
            case b"encode":
                return [first, awoke.Record(object())]
            case b"kind":
                return [first, b"no record"]
            case b"time":
                return [first, awoke.Record(b"2", timestamp_ms=0)]
        return [first, awoke.Record(b"2")]

    feed(cluster, name, [b"a", b"encode", b"kind", b"time", b"b"])
    probe = awoke_run(app)
    probe.idle()
    assert sorted(each.offset for each in probe.dead_letters) == [1, 2, 3]
    assert {1, 2, 3} <= {each.offset for each in probe.failures}
    assert sorted(values(cluster, dead)) == [b"encode", b"kind", b"time"]
    assert set(values(cluster, out)) - {b"encode", b"time"} == {b"a", b"b", b"2"}
    if kind.is_exactly_once:
        assert values(cluster, out) == [b"a", b"2", b"b", b"2"]
    assert_committed(cluster, app, {(name, 0): 5})


def test_results_of_several_types_keep_their_order_and_their_keys(
    cluster: Cluster, kind: Kind, written_as: Callable[[Handler], Callable[..., Any]], awoke_run: Runs
) -> None:
    (name, out), app = topics(cluster, partitions=1), new_app(cluster)
    dead = unique("dead")
    cluster.create_topic(dead)
    answers: list[Any] = [
        b"0",
        {"n": 1},
        "2",
        {"n": 3},
        {"n": object()},
        [5],
        awoke.Record(b"6", "key"),
        {"n": 7},
        b"8",
    ]

    def handle(message: awoke.Message[bytes]) -> Any:
        return answers[int(message.value)]

    app.on(name, output=out, dead_letter=dead, retry=awoke.Retry(attempts=1), **kind.options)(written_as(handle))
    feed(cluster, name, [b"%d" % number for number in range(len(answers))])
    probe = awoke_run(app)
    probe.idle()
    assert [each.offset for each in probe.dead_letters] == [4]
    assert 4 in {each.offset for each in probe.failures}
    found = [(each.key, each.raw_value) for each in read_all(cluster, out)]
    # Those behind a result that can't be sent may come again.
    expected = [b"0", b'{"n":1}', b"2", b'{"n":3}', b"[5]", b"6", b'{"n":7}', b"8"]
    assert list(dict.fromkeys(found)) == [(b"key", each) for each in expected]
    assert kind.name == "ordered" or len(found) == len(expected)
    assert values(cluster, dead) == [b"4"]
    assert_committed(cluster, app, {(name, 0): 9})
