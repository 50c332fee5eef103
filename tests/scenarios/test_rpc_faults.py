"""Calls while responders, brokers and callers die: each ends once, in its time, and nothing is left waiting."""

from __future__ import annotations

import contextlib
import os
import random
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import awoke
from awoke import rpc
from awoke.testing import running
from tests.scenarios.test_command_line import awoke_says
from tests.support.clusters import MISSED_SOON, RealCluster, unique
from tests.support.kafka_broker import KafkaCluster
from tests.support.processes import Process, in_child
from tests.support.swarms import Swarm

TARGET = "tests.scenarios.rpc_app:app"
CALLS = int(os.environ.get("AWOKE_CALLS", "4000"))
KILLS = int(os.environ.get("AWOKE_KILLS", "3"))
CALLERS = int(os.environ.get("AWOKE_CALLERS", "20"))
TIMEOUT_S = 20.0
THREADS = 16
HELD_S = 7
"""The time that the calls take whose replies can't be written."""


def swarm_of(cluster: RealCluster, service: str, folder: Path, **env: str) -> Swarm:
    environment = {"RPC_SERVICE": service, **env}
    return Swarm(
        cluster.bootstrap_servers,
        service,
        folder,
        "--restarts-max",
        str(KILLS * 2 + 5),
        "--restart-backoff-s",
        "0",
        env=environment,
        target=TARGET,
    )


def asked_until_answered(caller: rpc.Caller, method: str, **arguments: object) -> object:
    """The answer of the first call that has one, within two minutes."""
    until_s = time.monotonic() + 120
    while time.monotonic() < until_s:
        with contextlib.suppress(rpc.RpcError):  # Each of them takes a while.
            return caller.call(method, timeout_s=3, **arguments)  # type: ignore[arg-type]
    raise AssertionError(f"{method} was not answered")


def is_replaced(pid: int, found: dict[str, Any]) -> bool:
    """Tells whether each node of a swarm has a process, other than this one."""
    return all(each["pid"] not in (None, pid) for each in found["nodes"])


def test_every_call_ends_once_while_responders_are_killed(real_cluster: RealCluster, tmp_path: Path) -> None:
    service = unique("killed")
    outcomes, overruns_s, lock = Counter[str](), list[float](), threading.Lock()
    with (
        rpc.Caller(
            service, real_cluster.bootstrap_servers, create_topics=True, partitions=4, idempotent=["double"]
        ) as caller,
        swarm_of(real_cluster, service, tmp_path) as swarm,
    ):
        swarm.wait_up(assigned=4)
        caller.wait_until_served()
        killing = threading.Event()

        def kill() -> None:
            chosen = random.Random(7)
            for _ in range(KILLS):
                if killing.wait(chosen.uniform(0.2, 0.6)):
                    return
                killed = swarm.kill(chosen.randrange(1, 3))
                swarm.wait_until(partial(is_replaced, killed))
                swarm.wait_up()

        def call(number: int) -> None:
            began_s = time.monotonic()
            try:
                outcome = (
                    "right" if caller.call("double", number=number, timeout_s=TIMEOUT_S) == 2 * number else "wrong"
                )
            except rpc.RpcError as error:
                outcome = error.code
            took_s = time.monotonic() - began_s
            with lock:
                outcomes[outcome] += 1
                overruns_s.append(took_s - TIMEOUT_S)

        killer = threading.Thread(target=kill)
        killer.start()
        with ThreadPoolExecutor(THREADS) as threads:
            for _ in threads.map(call, range(CALLS)):
                pass
            extra = CALLS
            while killer.is_alive():  # The last kill must meet calls, too.
                call(extra)
                extra += 1
        killing.set()
        killer.join()
        assert outcomes.total() == extra
        assert caller.open_calls() == 0
        print(f"{outcomes} overrun p99 {sorted(overruns_s)[int(len(overruns_s) * 0.99)]:.3f} s {caller.counters()}")
        assert outcomes["wrong"] == 0
        assert set(outcomes) <= {"right", "deadline_exceeded", "nobody_there", "unavailable", "resource_exhausted"}
        assert outcomes["right"] >= 0.95 * extra, outcomes
        assert max(overruns_s) < 15
        done = {int(line) for line in swarm.log.read_bytes().split()}
        assert len(done) >= outcomes["right"]


def test_the_first_call_of_every_caller_is_answered(real_cluster: RealCluster) -> None:
    app = awoke.App(unique("fresh"), bootstrap_servers=real_cluster.bootstrap_servers)

    @app.rpc.method
    def double(number: int) -> int:
        return 2 * number

    def first(number: int) -> bool:
        with rpc.Caller(app.name, real_cluster.bootstrap_servers, timeout_s=TIMEOUT_S) as caller:
            found: int = caller.call("double", number=number)
            return found == 2 * number

    with running(app):
        with rpc.Caller(app.name, real_cluster.bootstrap_servers) as caller:
            caller.wait_until_served()
        with ThreadPoolExecutor(4) as threads:
            assert all(threads.map(first, range(CALLERS)))


def test_calls_fail_soon_when_the_replies_broker_dies_and_work_again(tmp_path: Path) -> None:
    settings = {"broker.session.timeout.ms": "9000"}  # Before its end no other broker leads, and can reply.
    with KafkaCluster(brokers=3, properties=settings) as kafka, awoke.Admin(kafka.bootstrap_servers) as admin:
        service = unique("leader")
        for topic in (f"{service}.rpc.calls", f"{service}.rpc.replies"):
            admin.create_topic(topic, replicas=3, config={"min.insync.replicas": "1"}, timeout_s=30)
        app = awoke.App(service, bootstrap_servers=kafka.bootstrap_servers)

        @app.rpc.method
        def hold(seconds: float) -> str:
            rpc.current_call().wait_cancelled(seconds)
            return "done"

        with running(app), rpc.Caller(service, kafka.bootstrap_servers, timeout_s=60) as caller:
            caller.wait_until_served()
            assert caller.call("hold", seconds=0) == "done"
            pending = [caller.submit("hold", seconds=HELD_S) for _ in range(3)]
            leader = admin.describe_topic(f"{service}.rpc.replies").partitions[0].leader
            kafka.kill_broker(leader)
            began_s = time.monotonic()
            for each in pending:
                with pytest.raises(rpc.Unavailable, match="can't be reached"):
                    each.wait()
            failed_s = time.monotonic() - began_s
            assert failed_s < HELD_S - 1
            assert asked_until_answered(caller, "hold", seconds=0) == "done"
            print(f"failed after {failed_s:.2f} s, answered again after {time.monotonic() - began_s:.1f} s")
            assert caller.open_calls() == 0


def test_a_call_whose_request_can_not_be_sent_ends_in_time() -> None:
    with KafkaCluster(brokers=1, properties=MISSED_SOON) as kafka:
        soon = {"reconnect.backoff.max.ms": 500}
        app = awoke.App(unique("away"), bootstrap_servers=kafka.bootstrap_servers, kafka=soon)

        @app.rpc.method
        def double(number: int) -> int:
            return 2 * number

        with running(app), rpc.Caller(app.name, kafka.bootstrap_servers, timeout_s=30, kafka=soon) as caller:
            caller.wait_until_served()
            kafka.kill_broker(1)
            began_s = time.monotonic()
            with pytest.raises((rpc.DeadlineExceeded, rpc.Unavailable)):
                caller.call("double", number=1, timeout_s=3)
            assert time.monotonic() - began_s < 20
            kafka.start_broker(1)
            assert asked_until_answered(caller, "double", number=2) == 4
            assert caller.open_calls() == 0


def test_exactly_once_executes_what_it_answers(real_cluster: RealCluster, tmp_path: Path) -> None:
    service = unique("once")
    with (
        rpc.Caller(service, real_cluster.bootstrap_servers, create_topics=True, partitions=4) as caller,
        swarm_of(real_cluster, service, tmp_path, RPC_MODE="exactly_once") as swarm,
    ):
        swarm.wait_up(assigned=4)
        caller.wait_until_served()
        pending = [caller.submit("double", number=number, timeout_s=60) for number in range(300)]
        swarm.kill(1)
        swarm.wait_up(assigned=4)
        assert [each.wait() for each in pending] == [2 * number for number in range(300)]
        assert caller.counters()["duplicate"] == 0


def test_a_forked_caller_gets_an_error(real_cluster: RealCluster) -> None:
    with rpc.Caller(unique("fork"), real_cluster.bootstrap_servers, create_topics=True) as caller:
        pending = caller.submit("anything", timeout_s=10)

        def check() -> None:
            for use in (lambda: caller.call("anything"), pending.wait, pending.cancel, pending.done, caller.open_calls):
                with pytest.raises(awoke.ForkedClientError):
                    use()
            caller.close()

        assert in_child(check) == 0
        assert pending.cancel()


def test_calls_at_the_shell(real_cluster: RealCluster) -> None:
    at, service = ("--bootstrap-servers", real_cluster.bootstrap_servers), unique("shell")
    assert "start it" in awoke_says("rpc", "call", service, "double", *at, code=1)
    with Process("run", TARGET, *at, env={"RPC_SERVICE": service, "AWOKE_GROUP": service}) as process:
        process.wait_for("partitions.assigned")
        assert awoke_says("rpc", "call", service, "double", "number=21", *at) == "42"
        said = awoke_says("rpc", "methods", service, *at)
        assert "double(number: int) -> int" in said
        assert "Twice as much." in said
        assert "required field `number`" in awoke_says("rpc", "call", service, "double", *at, code=1)
        assert "awoke rpc methods" in awoke_says("rpc", "call", service, "triple", "number=1", *at, code=1)
        assert "name=value" in awoke_says("rpc", "call", service, "double", "21", *at, code=2)
        late = awoke_says("rpc", "call", service, "hold", "seconds=30", "--timeout-s", "2", *at, code=1)
        assert "deadline_exceeded" in late
