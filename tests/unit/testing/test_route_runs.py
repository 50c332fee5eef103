"""A route runs without brokers, by the strategies and the recovery of a process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import msgspec
import pytest

import awoke
from awoke import testing
from awoke.observe.events import MessageDeadLettered
from awoke.testing import Failed, Outcome, Output


class Order(msgspec.Struct):
    id: int


class Broken(Exception):
    pass


@pytest.fixture
def app() -> awoke.App:
    return awoke.App("shop")


def failing(times: dict[int, int]) -> Callable[[awoke.Message[Order]], dict[str, int]]:
    """Returns a handler that fails at orders as often as is said, and else returns the id."""

    def handle(message: awoke.Message[Order]) -> dict[str, int]:
        if message.attempt <= times.get(message.value.id, 0):
            raise Broken(f"order {message.value.id}")
        return {"paid": message.value.id}

    return handle


LADDER = awoke.Retry(attempts=4, backoff_s=(1.0, 600.0))


def test_outputs_are_what_was_returned_and_sent_with_keys_and_headers(app: awoke.App) -> None:
    @app.on("orders", output="receipts", forward_headers=True)
    def charge(message: awoke.Message[Order]) -> Order:
        app.producer.produce("audit", b"seen", key="k")
        return message.value

    run = testing.run_route(app, "orders", [testing.message(Order(1), key="a", headers={"h": "x"})])
    assert run.state == "completed"
    assert run.outputs == [
        Output(topic="audit", value=b"seen", key=b"k", data=b"seen"),
        Output(topic="receipts", value=Order(1), key=b"a", headers=[("h", b"x")], data=b'{"id":1}'),
    ]
    assert run.values("receipts") == [Order(1)]
    assert run.committed == {0: 1}


def test_a_ladder_of_retries_takes_no_time_and_is_reported(app: awoke.App) -> None:
    app.on("orders", value=Order, output="out", retry=awoke.Retry(backoff_s=(1.0, 600.0)))(failing({1: 12}))
    run = testing.run_route(app, "orders", [Order(0), Order(1), Order(2)])
    assert run.delays_s == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600]
    assert run.took_s == sum(run.delays_s)
    assert run.messages[1] == Outcome(partition=0, offset=1, state="handled", attempts=13)
    assert [each["paid"] for each in run.values("out")] == [0, 1, 2]


def test_an_exhausted_message_is_a_dead_letter_with_its_reason(app: awoke.App) -> None:
    app.on("orders", value=Order, output="out", retry=LADDER, dead_letter="orders.dead")(failing({1: 9}))
    run = testing.run_route(app, "orders", [Order(0), testing.message(Order(1), key="k", headers={"h": "x"}), Order(2)])
    (letter,) = run.dead_letters
    assert (letter.topic, letter.partition, letter.offset, letter.attempts) == ("orders.dead", 0, 1, 4)
    assert (letter.value, letter.key, letter.headers) == (b'{"id":1}', b"k", [("h", b"x")])
    assert (letter.error_type.rpartition(".")[2], letter.reason) == ("Broken", "order 1")
    assert [each.state for each in run.messages] == ["handled", "dead-lettered", "handled"]
    assert [each["paid"] for each in run.values("out")] == [0, 2]
    assert (run.state, run.committed) == ("completed", {0: 3})


def test_a_value_that_does_not_decode_is_a_dead_letter_at_once(app: awoke.App) -> None:
    app.on("orders", value=Order, dead_letter="orders.dead")(lambda message: None)
    run = testing.run_route(app, "orders", [b"junk", Order(1)])
    assert [each.state for each in run.messages] == ["dead-lettered", "handled"]
    assert isinstance(run.failures[0].error, awoke.DecodeError)


def test_an_exhausted_message_stops_the_app_if_the_route_says_nothing(app: awoke.App) -> None:
    app.on("orders", value=Order, output="out", retry=LADDER)(failing({1: 9}))
    run = testing.run_route(app, "orders", [Order(0), Order(1), Order(2)])
    assert (run.state, run.committed) == ("stopped", {0: 1})
    assert isinstance(run.error, awoke.RetriesExhausted)
    assert run.offsets("waiting") == [1, 2]
    with pytest.raises(Broken, match="order 1"):
        run.check()


def test_an_exhausted_message_pauses_its_partition_only(app: awoke.App) -> None:
    retry = awoke.Retry(attempts=1, on_exhausted="pause")
    app.on("orders", value=Order, output="out", retry=retry)(failing({1: 9}))
    run = testing.run_route(app, "orders", [testing.message(Order(each), partition=each % 2) for each in range(4)])
    assert run.state == "paused"
    assert run.messages == [
        Outcome(partition=0, offset=0, state="handled", attempts=1),
        Outcome(partition=0, offset=1, state="handled", attempts=1),
        Outcome(partition=1, offset=0, state="waiting", attempts=1),
        Outcome(partition=1, offset=1, state="waiting", attempts=0),
    ]


def test_an_exhausted_message_is_skipped(app: awoke.App) -> None:
    retry = awoke.Retry(attempts=2, backoff_s=(3.0, 3.0), on_exhausted="skip")
    app.on("orders", value=Order, output="out", retry=retry)(failing({1: 9}))
    run = testing.run_route(app, "orders", [Order(0), Order(1), Order(2)])
    assert (run.offsets("handled"), run.offsets("skipped"), run.took_s) == ([0, 2], [1], 3.0)


def test_a_message_that_fails_for_ever_waits_when_the_time_is_up(app: awoke.App) -> None:
    app.on("orders", value=Order, output="out", retry=awoke.Retry(backoff_s=(10.0, 10.0)))(failing({1: 999}))
    run = testing.run_route(app, "orders", [Order(1)], limit_s=60)
    assert (run.state, run.took_s, len(run.failures)) == ("waiting", 60.0, 7)
    assert run.failures[-1] == Failed(partition=0, offset=0, attempt=7, retry_in_s=10.0, error=run.failures[-1].error)


def test_an_attempt_of_several_jobs_is_told_to_the_handler(app: awoke.App) -> None:
    attempts = []

    @app.on("orders", retry=awoke.Retry(attempts=3))
    def charge(message: awoke.Message[Any]) -> None:
        attempts.append((message.offset, message.attempt))
        if message.offset == 1 and message.attempt < 3:
            raise Broken

    testing.run_route(app, "orders", [b"", b"", b""])
    assert attempts == [(0, 1), (1, 1), (1, 2), (1, 3), (2, 1)]


def test_with_lanes_a_failing_key_delays_only_its_own_messages(app: awoke.App) -> None:
    handled = []

    @app.on("orders", concurrency=awoke.by_key(4), retry=awoke.Retry(backoff_s=(5.0, 5.0)))
    def charge(message: awoke.Message[Any]) -> None:
        if message.offset == 0 and message.attempt == 1:
            raise Broken
        handled.append(message.offset)

    run = testing.run_route(app, "orders", [testing.message(b"", key=key) for key in ("a", "b", "a", "c", None)])
    assert handled == [1, 3, 4, 0, 2]
    assert (run.took_s, run.committed) == (5.0, {0: 5})


@pytest.mark.parametrize(
    "concurrency", [awoke.unordered(4), awoke.by(lambda message: message.offset, 4)], ids=["unordered", "by"]
)
def test_messages_of_other_lanes_do_not_wait(app: awoke.App, concurrency: awoke.Concurrency) -> None:
    handled = []

    @app.on("orders", concurrency=concurrency)
    def charge(message: awoke.Message[Any]) -> None:
        if message.attempt == 1 and message.offset == 0:
            raise Broken
        handled.append(message.offset)

    testing.run_route(app, "orders", [testing.message(b"", key="a") for _ in range(3)])
    assert handled == [1, 2, 0]


@pytest.mark.parametrize("is_ordered", [False, True])
def test_results_of_lanes_leave_as_they_come_or_in_order(app: awoke.App, is_ordered: bool) -> None:
    app.on("orders", value=Order, output="out", ordered=is_ordered, concurrency=awoke.by_key(4))(failing({0: 2}))
    run = testing.run_route(app, "orders", [testing.message(Order(each), key=str(each)) for each in range(4)])
    assert [each["paid"] for each in run.values("out")] == ([0, 1, 2, 3] if is_ordered else [1, 2, 3, 0])
    assert (run.state, run.committed) == ("completed", {0: 4})


def test_ordered_results_do_not_wait_for_a_dead_letter(app: awoke.App) -> None:
    options: Any = {"retry": awoke.Retry(attempts=2), "dead_letter": "dead", "concurrency": awoke.by_key(4)}
    app.on("orders", value=Order, output="out", ordered=True, **options)(failing({0: 9}))
    run = testing.run_route(app, "orders", [testing.message(Order(each), key=str(each)) for each in range(4)])
    assert [each["paid"] for each in run.values("out")] == [1, 2, 3]
    assert [each.offset for each in run.dead_letters] == [0]


@pytest.mark.parametrize("concurrency", [awoke.by_partition(), awoke.by_key(4)])
def test_exactly_once_sends_nothing_of_a_failed_message(app: awoke.App, concurrency: awoke.Concurrency) -> None:
    options: Any = {"retry": awoke.Retry(attempts=2), "dead_letter": "dead", "concurrency": concurrency}
    app.on("orders", value=Order, output="out", exactly_once=True, **options)(failing({1: 1, 2: 9}))
    run = testing.run_route(app, "orders", [testing.message(Order(each), key=str(each)) for each in range(4)])
    assert sorted(each["paid"] for each in run.values("out")) == [0, 1, 3]
    assert [each.offset for each in run.dead_letters] == [2]
    assert (run.state, run.committed) == ("completed", {0: 4})


def test_a_class_commits_its_transaction_with_what_it_sends(app: awoke.App) -> None:
    @app.consumer("orders", exactly_once=True)
    class Copy(awoke.Consumer):
        def consume(self, batch: awoke.Batch[Order]) -> None:
            with self.transaction() as transaction:
                for message in batch:
                    transaction.produce("copy", message.value)
                if (batch.first_offset, batch.attempt) == (0, 1):
                    raise Broken

    run = testing.run_route(app, "orders", [Order(1), Order(2)])
    assert run.values("copy") == [Order(1), Order(2)]
    assert len(run.failures) == 1


def test_a_class_gets_batches_and_hooks_and_its_marks_count(app: awoke.App) -> None:
    steps: list[object] = []

    @app.consumer("clicks", batch=awoke.Batching(max_messages=2))
    class Clicks(awoke.Consumer):
        def assigned(self) -> None:
            steps.append(f"assigned {self.partition}")

        def consume(self, batch: awoke.Batch[Any]) -> None:
            steps.append(batch.offsets())
            self.mark(batch[0])
            if batch.offsets() == [0, 1]:
                raise Broken

        def revoked(self) -> None:
            steps.append("revoked")

    run = testing.run_route(app, "clicks", [b"a", b"b", b"c"])
    assert steps == ["assigned 0", [0, 1], [1, 2], "revoked"]
    assert run.committed == {0: 3}


def test_a_class_with_manual_offsets_commits_what_it_marks(app: awoke.App) -> None:
    @app.consumer("clicks", offsets="manual")
    class Clicks(awoke.Consumer):
        def consume(self, batch: awoke.Batch[Any]) -> None:
            self.mark(batch[0])

    run = testing.run_route(app, "clicks", [b"a", b"b"])
    assert run.committed == {0: 1}


def test_a_class_may_seek_and_pause(app: awoke.App) -> None:
    got = []

    @app.consumer("clicks", batch=awoke.Batching(max_messages=1))
    class Clicks(awoke.Consumer):
        def assigned(self) -> None:
            self.seek(1)

        def consume(self, batch: awoke.Batch[Any]) -> None:
            got.append(batch.first_offset)
            if got == [1, 2]:
                self.seek("earliest")
            elif len(got) == 4:
                self.pause()

    run = testing.run_route(app, "clicks", [b"a", b"b", b"c"])
    assert got == [1, 2, 0, 1]
    assert run.state == "paused"


def test_with_own_thread_all_code_runs_on_one_thread(app: awoke.App) -> None:
    threads = []

    @app.consumer("clicks", own_thread=True)
    class Clicks(awoke.Consumer):
        def assigned(self) -> None:
            threads.append(threading.current_thread())

        def consume(self, batch: awoke.Batch[Any]) -> None:
            threads.append(threading.current_thread())

    testing.run_route(app, "clicks", [b"a"])
    assert len(set(threads)) == 1
    assert not threads[0].is_alive()


def test_an_async_route_runs_on_a_loop_of_its_own_or_on_the_running_one(app: awoke.App) -> None:
    loops = []

    async def bank() -> Any:
        yield asyncio.get_running_loop()
        loops.append(asyncio.get_running_loop())

    @app.on("orders", output="out", retry=awoke.Retry(attempts=2))
    async def charge(message: awoke.Message[Any], bank: Annotated[Any, awoke.Depends(bank, scope="process")]) -> bytes:
        await asyncio.sleep(0)
        assert bank is asyncio.get_running_loop()
        if message.attempt == 1:
            raise Broken
        return b"paid"

    assert testing.run_route(app, "orders", [b"", b""]).values("out") == [b"paid", b"paid"]

    async def within() -> None:
        assert (await testing.arun_route(app, "orders", [b""])).values("out") == [b"paid"]
        assert loops[-1] is asyncio.get_running_loop()
        with pytest.raises(awoke.ConfigError, match="arun_route"):
            testing.run_route(app, "orders", [b""])

    asyncio.run(within())


def test_messages_that_are_filtered_are_not_handled(app: awoke.App) -> None:
    handled = []
    app.on("orders", flow=awoke.Flow(where=lambda message: message.offset != 1))(
        lambda message: handled.append(message.offset)
    )
    run = testing.run_route(app, "orders", [b""] * 3)
    assert (handled, run.committed) == ([0, 2], {0: 3})


def test_outgoing_middleware_and_topics_with_types_count(app: awoke.App) -> None:
    receipts = app.topic("receipts", key=int)

    @app.outgoing
    def stamped(message: awoke.Outgoing) -> awoke.Outgoing:
        return message.with_header("by", "shop")

    @app.on("orders", output=receipts)
    def charge(message: awoke.Message[Any]) -> awoke.Record:
        return awoke.Record({"a": 1}, key=7)

    (output,) = testing.run_route(app, "orders", [b""]).outputs
    assert (output.key, output.headers, output.data) == (b"7", [("by", b"shop")], b'{"a":1}')


def test_a_result_that_cant_be_sent_fails_its_message(app: awoke.App) -> None:
    app.on("orders", output="out", retry=awoke.Retry(attempts=1))(lambda message: object())
    run = testing.run_route(app, "orders", [b""])
    assert isinstance(run.failures[0].error, awoke.EncodeError)


def test_events_reach_the_apps_subscribers(app: awoke.App) -> None:
    seen: list[MessageDeadLettered] = []
    app.events.subscribe(MessageDeadLettered, seen.append)
    app.on("orders", value=Order, dead_letter="dead")(lambda message: None)
    run = testing.run_route(app, "orders", [b"junk"])
    assert seen == [each for each in run.events if isinstance(each, MessageDeadLettered)]
    assert len(seen) == 1


def test_an_outcome_of_pytest_reaches_the_test(app: awoke.App) -> None:
    @app.on("orders")
    def charge(message: awoke.Message[Any]) -> None:
        pytest.fail("the test says so")

    with pytest.raises(pytest.fail.Exception, match="the test says so"):
        testing.run_route(app, "orders", [b""])


class OwnBase(BaseException):
    """As some libraries have: not derived from Exception."""


@pytest.mark.parametrize("error", [OwnBase, asyncio.CancelledError])
def test_an_error_that_is_no_exception_is_a_failure(app: awoke.App, error: type[BaseException]) -> None:
    @app.on("orders", retry=awoke.Retry(attempts=2), dead_letter="dead")
    async def charge(message: awoke.Message[Any]) -> None:
        raise error

    assert len(testing.run_route(app, "orders", [b""]).dead_letters) == 1


def test_the_apps_producer_is_its_own_again_after_the_run(app: awoke.App) -> None:
    app.on("orders")(lambda message: None)
    testing.run_route(app, "orders", [b""])
    assert app._producer is None


def test_a_topic_of_several_groups_needs_the_group(app: awoke.App) -> None:
    app.on("orders", output="out")(lambda message: b"own")
    app.on("orders", output="out", group="billing")(lambda message: b"billing")
    with pytest.raises(awoke.ConfigError, match="say group="):
        testing.run_route(app, "orders", [b""])
    assert testing.run_route(app, "orders", [b""], group="billing").values("out") == [b"billing"]


def test_a_topic_without_a_route_is_refused(app: awoke.App) -> None:
    with pytest.raises(awoke.ConfigError, match="no route for topic 'orders'; it reads: none"):
        testing.run_route(app, "orders", [])


def test_a_failing_hook_is_found_by_check(app: awoke.App) -> None:
    @app.consumer("clicks")
    class Clicks(awoke.Consumer):
        def consume(self, batch: awoke.Batch[Any]) -> None: ...

        def revoked(self) -> None:
            raise Broken("at the end")

    run = testing.run_route(app, "clicks", [b"a"])
    with pytest.raises(Broken, match="at the end"):
        run.check()


def test_generators_send_all_that_they_yield(app: awoke.App) -> None:
    @app.on("orders", output="out")
    def split(message: awoke.Message[Any]) -> Iterator[bytes]:
        yield b"a"
        yield b"b"

    run = testing.run_route(app, "orders", [b""]).check()
    assert run.values("out") == [b"a", b"b"]


def test_a_table_keeps_what_messages_before_a_failure_wrote(app: awoke.App) -> None:
    counts = app.table("counts", key=str, value=int)
    seen: list[int] = []

    @app.on("orders", tables=[counts], retry=awoke.Retry(attempts=2))
    def count(message: awoke.Message[Order]) -> None:
        counts["all"] = counts.get("all", 0) + 1
        seen.append(counts["all"])
        if message.value.id == 2 and message.attempt == 1:
            raise Broken

    run = testing.run_route(app, "orders", [testing.message(Order(number)) for number in (1, 2, 3)])
    assert run.state == "completed"
    assert seen == [1, 2, 2, 3]


def test_messages_whose_id_came_before_are_skipped(app: awoke.App) -> None:
    seen: list[int] = []

    @app.on("orders", dedup=awoke.Dedup(field="id", for_s=60))
    def take(message: awoke.Message[Order]) -> None:
        seen.append(message.value.id)

    testing.run_route(app, "orders", [testing.message(Order(number)) for number in (1, 2, 1, 3, 2)]).check()
    assert seen == [1, 2, 3]
