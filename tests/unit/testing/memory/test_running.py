"""A run of a route without brokers: the order of its jobs, and the time. `test_route_runs` has the strategies."""

from __future__ import annotations

from typing import Annotated, Any

import pytest

import awoke
from awoke.testing.memory.process import MemoryProcess, route_of
from awoke.testing.memory.running import MemoryRun
from awoke.testing.messages import MessageParts
from awoke.waiting.drive import drive


def run_of(app: awoke.App, numbers: dict[int, int], limit_s: float = 100.0) -> MemoryRun:
    """Returns a run with this number of messages in each partition."""
    messages = {
        number: [MessageParts(at, b"", None, [], 5) for at in range(count)] for number, count in numbers.items()
    }
    return MemoryRun(MemoryProcess(app, route_of(app, "orders"), lambda sent: None), messages, limit_s)


def test_another_partition_runs_while_one_waits_and_the_time_passes_only_then() -> None:
    app, steps = awoke.App("shop"), list[Any]()

    @app.on("orders", batch=awoke.Batching(max_messages=1), retry=awoke.Retry(backoff_s=(7.0, 7.0)))
    def charge(message: awoke.Message[Any]) -> None:
        steps.append((message.partition, message.offset, run.now_s))
        if (message.partition, message.offset, message.attempt) == (0, 0, 1):
            raise ValueError

    run = run_of(app, {0: 2, 1: 2})
    drive(run.run())
    assert steps == [(0, 0, 0.0), (1, 0, 0.0), (1, 1, 0.0), (0, 0, 7.0), (0, 1, 7.0)]
    assert run.place is None


def test_hooks_run_and_partitions_end_although_a_job_stops_the_app() -> None:
    app, steps = awoke.App("shop"), list[Any]()

    @app.consumer("orders")
    class Orders(awoke.Consumer):
        def assigned(self) -> None:
            steps.append(f"assigned {self.partition}")

        def consume(self, batch: awoke.Batch[Any]) -> None:
            raise SystemExit

        def revoked(self) -> None:
            steps.append(f"revoked {self.partition}")

    run = run_of(app, {0: 1, 1: 1})
    drive(run.run())
    assert steps == ["assigned 0", "assigned 1", "revoked 0", "revoked 1"]
    assert not any(each.is_current for each in run.partitions)


def test_a_function_of_the_process_that_fails_ends_the_run() -> None:
    def broken() -> None:
        raise LookupError("no bank")

    app = awoke.App("shop")

    @app.on("orders")
    def charge(
        message: awoke.Message[Any], bank: Annotated[str, awoke.Depends(open_bank, scope="process")]
    ) -> None: ...

    with pytest.raises(LookupError, match="no bank"), app.override(open_bank, broken):
        drive(run_of(app, {0: 1}).run())
    assert app._producer is None


def open_bank() -> str:
    return "bank"
