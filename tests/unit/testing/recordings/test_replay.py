"""A recording runs through the code of a route, record by record."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

import awoke
from awoke.testing.messages import MessageParts
from awoke.testing.recordings.recording import Recorded, Recording
from awoke.testing.recordings.replay import read_results, replay, write_results


class Order(msgspec.Struct):
    id: int


def orders(*values: bytes) -> Recording:
    return Recording(
        "orders", [Recorded(0, MessageParts(10 + at, value, b"k", [], 5)) for at, value in enumerate(values)]
    )


@pytest.fixture
def app() -> awoke.App:
    return awoke.App("shop")


def test_each_record_has_what_it_has_led_to(app: awoke.App) -> None:
    @app.on("orders", output="out", dead_letter="dead", retry=awoke.Retry(attempts=3))
    def charge(message: awoke.Message[Order]) -> awoke.Record | None:
        if message.value.id == 2 and message.attempt == 1:
            raise ValueError("again")
        app.producer.produce("audit", b"\xff")
        return awoke.Record({"id": message.value.id}, "key", {"h": "x"}) if message.value.id != 3 else None

    audit: dict[str, Any] = {"topic": "audit", "key": None, "headers": [], "value": {"base64": "/w=="}}
    out = {"topic": "out", "key": "key", "headers": [["h", "x"]]}
    made = replay(orders(b'{"id":1}', b'{"id":2}', b'{"id":3}', b"junk"), app)
    assert [each["offset"] for each in made] == [10, 11, 12, 13]
    assert made[0] == {
        "partition": 0,
        "offset": 10,
        "state": "handled",
        "error": None,
        "outputs": [audit, {**out, "value": '{"id":1}'}],
    }
    assert made[1]["outputs"] == [audit, {**out, "value": '{"id":2}'}]
    assert (made[1]["state"], made[1]["error"]) == ("handled", None)
    assert made[2]["outputs"] == [audit]
    assert (made[3]["state"], made[3]["outputs"]) == ("dead-lettered", [])
    assert made[3]["error"].startswith("DecodeError: orders[0] offset 13")


@pytest.mark.parametrize("options", [{}, {"exactly_once": True}, {"ordered": True, "concurrency": awoke.by_key(4)}])
def test_results_belong_to_their_records_by_each_strategy(app: awoke.App, options: Any) -> None:
    app.on("orders", output="out", **options)(lambda message: message.value)
    made = replay(orders(b"a", b"b"), app)
    assert [[output["value"] for output in each["outputs"]] for each in made] == [["a"], ["b"]]


def test_what_a_class_sends_at_its_end_is_a_last_document(app: awoke.App) -> None:
    @app.consumer("orders")
    class Sums(awoke.Consumer):
        def assigned(self) -> None:
            self.count = 0

        def consume(self, batch: awoke.Batch[Any]) -> None:
            self.count += len(batch)

        def revoked(self) -> None:
            app.producer.produce("sums", str(self.count))

    *_, last = replay(orders(b"a", b"b"), app)
    assert (last["partition"], last["offset"], last["outputs"][0]["value"]) == (None, None, "2")


def test_old_records_are_not_expired(app: awoke.App) -> None:
    app.on("orders", output="out", flow=awoke.Flow(expire_s=1))(lambda message: message.value)
    (made,) = replay(orders(b"a"), app)
    assert len(made["outputs"]) == 1


def test_the_route_of_another_topic_is_chosen_by_its_name(app: awoke.App) -> None:
    app.on("orders.v2", output="out")(lambda message: message.topic)
    (made,) = replay(orders(b"a"), app, topic="orders.v2")
    assert made["outputs"][0]["value"] == "orders.v2"


def test_an_async_route_is_replayed(app: awoke.App) -> None:
    @app.on("orders", output="out")
    async def copy(message: awoke.Message[Any]) -> Any:
        return message.value

    assert replay(orders(b"a"), app)[0]["outputs"][0]["value"] == "a"


def test_results_come_back_from_their_file(tmp_path: Path, app: awoke.App) -> None:
    app.on("orders", output="out")(lambda message: message.value)
    made = replay(orders(b"a", b"\xff"), app)
    write_results(made, tmp_path / "a")
    write_results(made, tmp_path / "a")
    assert read_results(tmp_path / "a") == made


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_text('{"awoke_results":1}\n{"offset":1}\n')
    with pytest.raises(awoke.ConfigError, match="line 2: it is no result"):
        read_results(tmp_path / "a")
