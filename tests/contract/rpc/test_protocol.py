"""The records on the wire: callers in other languages, and records that must not be trusted."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import awoke
from awoke import rpc
from awoke.testing import running
from tests.support.clusters import Cluster, reading
from tests.support.rpc_wire import ID, Headers, Wire, sign_reply, sign_request
from tests.support.services import WITHIN_S, calling, new_app
from tests.support.waiting import Collected

SECRET = b"0123456789abcdef"


@contextlib.contextmanager
def served(cluster: Cluster, **options: Any) -> Iterator[Wire]:
    app = new_app(cluster, **options)

    @app.rpc.method
    def echo(text: str) -> str:
        return text

    with running(app), awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as producer:
        yield Wire(app, producer)


def test_a_plain_producer_can_call(cluster: Cluster) -> None:
    with served(cluster) as wire:
        wire.call(b'{"text": "hello"}', wire.headers())
        wire.call(b'["in order"]', wire.headers(rpc_deadline_ms=None))
        wire.call(b"{", wire.headers())
        wire.call(b'{"text": 1}', wire.headers())
        replies = wire.replies(4)
    assert {body for kind, body in replies if kind == "reply"} == {"hello", "in order"}
    assert sorted(kind for kind, _ in replies) == ["error", "error", "reply", "reply"]
    assert {body["code"] for kind, body in replies if kind == "error"} == {"invalid_argument"}  # type: ignore[index]


MANY: dict[str, str | bytes | None] = {f"more-{number}": "x" for number in range(60)}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"rpc_kind": "nonsense"}, "undecodable"),
        ({"rpc_kind": None}, "undecodable"),
        ({"rpc_kind": "cancel", "rpc_id": None}, "undecodable"),
        ({"rpc_kind": "cancel", "rpc_id": b"x" * 65}, "undecodable"),
        ({"rpc_kind": "more", "rpc_caller": "x" * 129}, "undecodable"),
        ({"rpc_kind": "cast", "rpc_idempotency_key": "x" * 257}, "undecodable"),
        ({"rpc_method": "x" * 129}, "undecodable"),
        ({"rpc_kind": "cast", "rpc_reply_topic": "x" * 250}, "undecodable"),
        ({"rpc_reply_topic": None}, "undecodable"),
        (MANY, "undecodable"),
        ({"rpc_deadline_ms": "soon"}, "undecodable"),
        ({"rpc_deadline_ms": "9" * 30}, "undecodable"),
        ({"rpc_reply_partition": "-1"}, "undecodable"),
        ({"rpc_reply_partition": None}, "undecodable"),
        ({"rpc_id": None}, "undecodable"),
        ({"rpc_id": b"x" * 65}, "undecodable"),
        ({"rpc_reply_topic": "__consumer_offsets"}, "reply_topic"),
        ({"rpc_reply_partition": "99"}, "reply_partition"),
        ({"rpc_budget_ms": b"\xff\xff"}, "undecodable"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused_and_counted(
    cluster: Cluster, changes: dict[str, str | bytes | None], reason: str
) -> None:
    with served(cluster) as wire:
        wire.call(b'{"text": "bad"}', wire.headers(**changes))
        assert wire.refused.wait_for(1) == [reason]
        wire.call(b'{"text": "good"}', wire.headers())
        assert wire.replies(1) == [("reply", "good")]


def test_a_huge_request_is_refused_before_it_is_decoded(cluster: Cluster) -> None:
    with served(cluster, request_bytes_max=1_000) as wire:
        wire.call(json.dumps({"text": "x" * 1_000}).encode(), wire.headers())
        wire.call(b'{"text": "x"}', wire.headers(more=b"x" * 500, still=b"x" * 500))
        wire.call(b'{"text": "x"}', wire.headers(), key=b"x" * 1_000)
        assert wire.refused.wait_for(3) == ["too_large"] * 3


def test_replies_that_make_no_sense_are_counted_and_harmless(cluster: Cluster) -> None:
    app, go, began = new_app(cluster), threading.Event(), threading.Event()

    @app.rpc.method
    def hold(number: int) -> int:
        began.set()
        go.wait(WITHIN_S)
        return number

    with (
        calling(app, reply_bytes_max=1_000) as caller,
        awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as producer,
        running_wire(app, producer) as wire,
    ):
        before = caller.counters()
        gone = caller.submit("hold", number=0, timeout_s=0.05)
        with pytest.raises(rpc.DeadlineExceeded):
            gone.wait()
        pending = caller.submit("hold", number=1)
        large = caller.submit("hold", number=2)
        assert began.wait(WITHIN_S)
        mine = pending.id
        wire.reply(caller, b"0", {})
        wire.reply(caller, b"0", {"rpc-id": b"short", "rpc-kind": "reply"})
        wire.reply(caller, b"0", {"rpc-id": ID, "rpc-kind": "reply"})
        wire.reply(caller, b"0", {"rpc-id": mine[:8] + b"unknown!", "rpc-kind": "reply"})
        wire.reply(caller, b"0", {"rpc-id": gone.id, "rpc-kind": "reply"})
        wire.reply(caller, b"0", {"rpc-id": mine, "rpc-kind": "nonsense"})
        wire.reply(caller, b"0" * 1_001, {"rpc-id": large.id, "rpc-kind": "reply"})
        with pytest.raises(rpc.ResourceExhausted, match="1001 bytes"):
            large.wait()
        assert not pending.done()
        go.set()
        assert pending.wait() == 1
        wire.reply(caller, b"0", {"rpc-id": mine, "rpc-kind": "reply"})
        assert caller.call("hold", number=3) == 3
        counts = {name: count - before[name] for name, count in caller.counters().items()}
    assert (counts["undecodable"], counts["foreign"], counts["unknown"], counts["too_large"]) == (3, 1, 1, 1)
    assert counts["late"] >= 1
    assert counts["duplicate"] == 1


@contextlib.contextmanager
def running_wire(app: awoke.App, producer: awoke.Producer) -> Iterator[Wire]:
    """The wire of an app that runs already."""
    yield Wire(app, producer)


def test_a_result_that_is_no_json_is_a_clear_error(cluster: Cluster) -> None:
    app, go = new_app(cluster), threading.Event()

    @app.rpc.method
    def hold() -> None:
        go.wait(WITHIN_S)

    with (
        calling(app) as caller,
        awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as producer,
        running_wire(app, producer) as wire,
    ):
        for kind, error in (("reply", awoke.DecodeError), ("error", rpc.Internal)):
            pending = caller.submit("hold")
            wire.reply(caller, b"\xff{", {"rpc-id": pending.id, "rpc-kind": kind})
            with pytest.raises(error):
                pending.wait()
        go.set()


def test_signed_calls(cluster: Cluster) -> None:
    app, refused = new_app(cluster, secret=SECRET), Collected[str]()
    app.events.subscribe("rpc.refused", lambda event: refused.add(event.fields["reason"]))

    @app.rpc.method
    def echo(text: str) -> str:
        return text

    @app.rpc.method
    def stream(to: int) -> Iterator[int]:
        yield from range(to)

    with calling(app, secret=SECRET, window=4) as caller:
        assert caller.call("echo", text="signed") == "signed"
        assert list(caller.stream("stream", to=50)) == list(range(50))
        with pytest.raises(rpc.InvalidArgument):
            caller.call("echo")
        for wrong in (None, b"another secret"):
            with (
                rpc.Caller(app.name, cluster.bootstrap_servers, secret=wrong) as other,
                pytest.raises(rpc.DeadlineExceeded),
            ):
                other.call("echo", text="x", timeout_s=0.5)
        assert set(refused.wait_for(2)) == {"forged"}
        with rpc.Caller(app.name, cluster.bootstrap_servers, secret=SECRET) as trusting:
            before = trusting.counters()["forged"]
            pending = trusting.submit("echo", text="mine", timeout_s=WITHIN_S)
            assert pending.wait() == "mine"
            assert trusting.counters()["forged"] == before


def test_a_forged_reply_does_not_end_a_call(cluster: Cluster) -> None:
    app, go, began = new_app(cluster, secret=SECRET), threading.Event(), threading.Event()

    @app.rpc.method
    def hold() -> str:
        began.set()
        go.wait(WITHIN_S)
        return "true"

    with (
        calling(app, secret=SECRET) as caller,
        awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as producer,
        running_wire(app, producer) as wire,
    ):
        pending = caller.submit("hold")
        assert began.wait(WITHIN_S)
        forged: Headers = {"rpc-id": pending.id, "rpc-kind": "reply"}
        wire.reply(caller, b'"false"', forged)
        wire.reply(caller, b'"false"', {**forged, "rpc-signature": b"x" * 32})
        go.set()
        assert pending.wait() == "true"
        assert caller.counters()["forged"] == 2


def test_a_copied_call_is_not_executed_again(cluster: Cluster) -> None:
    app, seen, refused = new_app(cluster, secret=SECRET), Collected[str](), Collected[str]()
    app.events.subscribe("rpc.refused", lambda event: refused.add(event.fields["reason"]))

    @app.rpc.method
    def charge(card: str) -> None:
        seen.add(card)

    with (
        calling(app, secret=SECRET) as caller,
        awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as producer,
    ):
        caller.call("charge", card="visa")
        topic = f"{app.name}.rpc.calls"
        with reading(cluster, topic) as reader:
            wanted = [message for message in reader.read_until_end(WITHIN_S) if b"visa" in (message.value or b"")]
            (message,) = wanted
            producer.produce(topic, message.value, headers=message.headers, partition=message.partition).wait(WITHIN_S)
        assert refused.wait_for(1) == ["replayed"]
        caller.call("charge", card="master")
    assert seen.items == ["visa", "master"]


def test_another_client_signs_calls_and_checks_replies(cluster: Cluster) -> None:
    app = new_app(cluster, secret=SECRET)

    @app.rpc.method
    def tenant(text: str) -> str | None:
        return (rpc.current_call().headers.get("tenant") or b"none").decode() + text

    with (
        running(app),
        awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as producer,
        running_wire(app, producer) as wire,
    ):
        signed = wire.headers(rpc_method="tenant", rpc_signed="tenant", tenant="7")
        headers = {**signed, "rpc-signature": sign_request(SECRET, wire.topic, b"key", signed, b'["!"]')}
        wire.call(b'["!"]', headers, key=b"key")
        assert wire.replies(1) == [("reply", "7!")]
        with awoke.Reader(f"{app.name}.rpc.replies", bootstrap_servers=cluster.bootstrap_servers) as reader:
            (reply,) = [each for each in reader.read_until_end(WITHIN_S) if dict(each.headers)["rpc-id"] == ID]
        found = dict(reply.headers)["rpc-signature"]
        assert found == sign_reply(SECRET, wire.topic, ID, "reply", reply.value or b"")
