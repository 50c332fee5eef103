"""What a supervisor is made of: deadlines, restarts, descriptors of processes, messages, metrics of many nodes."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

import awoke
from awoke import exit_codes
from awoke.cli.swarm import COLUMNS, node_row
from awoke.cli.tables import aligned, duration
from awoke.runtime.inbox import Inbox
from awoke.swarm import linux, policy, protocol, systemd
from awoke.swarm.gathering import merged
from awoke.swarm.node import Node
from awoke.swarm.options import Options, bytes_of, socket_path
from awoke.swarm.pidfd import Pidfd
from awoke.web import http
from awoke.web.deadlines import Deadlines


def test_deadlines_come_in_order_and_can_be_moved_and_taken_back() -> None:
    deadlines, done = Deadlines(), list[str]()
    assert deadlines.next_in_s() is None
    deadlines.set("b", 0.002, lambda: done.append("b"))
    deadlines.set("a", 0.001, lambda: done.append("a"))
    deadlines.set("1:x", 0.001, lambda: done.append("x"))
    deadlines.set("late", 60, lambda: done.append("late"))
    deadlines.set("late", 0.003, lambda: done.append("sooner"))
    deadlines.cancel_all("1:")
    time.sleep(0.005)
    assert deadlines.next_in_s() == 0.0
    deadlines.run_due()
    assert done == ["a", "b", "sooner"]
    deadlines.set("c", 0.0, lambda: done.append("c"))
    deadlines.postpone(60)
    deadlines.run_due()
    assert "c" in deadlines
    assert 59 < (deadlines.next_in_s() or 0) <= 60
    deadlines.cancel("c")
    assert deadlines.next_in_s() is None


def test_a_deadline_that_sets_itself_again_comes_once_a_turn() -> None:
    deadlines, count = Deadlines(), [0]

    def again() -> None:
        count[0] += 1
        deadlines.set("again", 0.01, again)

    again()
    time.sleep(0.012)
    deadlines.run_due()
    assert count == [2]


def test_the_first_restart_is_at_once_and_later_ones_wait() -> None:
    restarts = policy.RestartPolicy(restarts_max=100)
    delays = [restarts.after(1, 1, 0.1).restart_in_s for _ in range(10)]
    assert delays[0] == 0.0
    for number, delay_s in enumerate(delays[1:]):
        assert delay_s is not None
        assert 0.8 * min(60.0, 2.0**number) <= delay_s <= min(60.0, 2.0**number)
    assert restarts.after(2, 1, 0.1).restart_in_s == 0.0, "each node has a count of its own"
    assert restarts.after(1, 1, 61.0).restart_in_s == 0.0, "it was healthy"


def test_too_many_restarts_and_wrong_configuration_end_the_swarm() -> None:
    restarts = policy.RestartPolicy(restarts_max=3)
    assert [restarts.after(node, -9, 1.0).exit_code for node in range(3)] == [0, 0, 0]
    assert restarts.after(9, -9, 1.0) == (None, exit_codes.EXIT_TOO_MANY_RESTARTS)
    assert policy.RestartPolicy().after(1, 78, 1.0) == (None, exit_codes.EXIT_CONFIGURATION)


def test_a_pidfd_signals_and_reaps_its_process_and_no_other() -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    process = Pidfd.open(child.pid)
    assert process.is_alive()
    assert process.reap() is None
    assert process.send(signal.SIGKILL)
    while process.reap() is None:
        pass
    assert process.reap() == -signal.SIGKILL
    assert not process.send(signal.SIGTERM), "its number may be somebody else's now"
    assert not process.is_alive()
    child.returncode = -signal.SIGKILL  # It has been waited for.
    process.close()
    process.close()
    with pytest.raises(ProcessLookupError):
        Pidfd.open(child.pid)


def test_a_process_that_is_not_a_child_is_not_reaped() -> None:
    process = Pidfd.open(os.getppid())
    assert process.reap() is None
    process.close()


def test_messages_say_what_they_are() -> None:
    vitals = protocol.Vitals(1, 2 << 30, 30, 4, 5, 6, 7, 8, -1)
    assert protocol.decode_node(protocol.VITALS_MARK + protocol.VITALS.pack(*vitals)) == vitals
    assert protocol.decode_node(protocol.encode(protocol.Failed("no"))) == protocol.Failed("no")
    assert protocol.decode(protocol.encode(protocol.MoldReady(1)), protocol.FROM_MOLD) == protocol.MoldReady(1)
    with pytest.raises(ValueError, match="3 bytes"):
        protocol.decode_node(b"xyz")


def test_metrics_of_nodes_are_one_text() -> None:
    head = "# HELP jobs_total Jobs.\n# TYPE jobs_total counter\n"
    one = head + 'jobs_total{topic="t"} 1.0\n# HELP up Up.\n# TYPE up gauge\nup 1.0\n'
    two = head + 'jobs_total{topic="t"} 2.0\n'
    assert merged({1: one, 2: two}) == (
        head
        + 'jobs_total{node="1",topic="t"} 1.0\njobs_total{node="2",topic="t"} 2.0\n'
        + '# HELP up Up.\n# TYPE up gauge\nup{node="1"} 1.0\n'
    )
    assert merged({}) == ""


@pytest.mark.parametrize(("text", "size"), [("5", 5), ("2k", 2048), ("512M", 512 << 20), ("1 GiB", 1 << 30)])
def test_sizes(text: str, size: int) -> None:
    assert bytes_of(text) == size


@pytest.mark.parametrize("text", ["", "M", "-1M", "0", "1T", "half"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(awoke.ConfigError, match="no size"):
        bytes_of(text)


def test_options_are_checked_and_travel() -> None:
    with pytest.raises(awoke.ConfigError, match="at least 1"):
        Options(target="a:b", nodes=0, socket="s")
    with pytest.raises(awoke.ConfigError, match="hard memory limit"):
        Options(target="a:b", nodes=1, socket="s", memory_soft_bytes=2, memory_hard_bytes=1)
    options = Options(target="a:b", nodes=2, socket="s", kafka={"acks": "all"})
    assert msgspec.json.decode(msgspec.json.encode(options), type=Options) == options
    assert "a-b" in socket_path("a:b")


def test_http_requests_are_read_to_the_end_of_their_head() -> None:
    assert not http.is_complete(bytearray(b"GET /live HTTP/1.1\r\n"))
    assert http.request_of(b"GET /live?x=1 HTTP/1.1\r\nHost: x\r\n\r\n") == ("GET", "/live", "x")
    assert http.request_of(b"POST /live HTTP/1.0\r\n\r\n") == ("POST", "/live", None)
    assert http.request_of(b"GET /live\r\n\r\n") is None
    assert http.answer("200 OK", "hello").endswith(b"Content-Length: 5\r\nConnection: close\r\n\r\nhello")


def test_systemd_is_told_where_it_listens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    systemd.notify("READY=1")  # Nobody listens.
    path = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(path)
        monkeypatch.setenv("NOTIFY_SOCKET", path)
        systemd.notify("READY=1")
        assert listening.recv(100) == b"READY=1"
    systemd.notify("READY=1")  # It has gone.
    assert systemd.watchdog_every_s() is None
    monkeypatch.setenv("WATCHDOG_USEC", "3000000")
    assert systemd.watchdog_every_s() == 1.5
    monkeypatch.setenv("WATCHDOG_PID", "1")
    assert systemd.watchdog_every_s() is None


def test_what_linux_says_of_a_process() -> None:
    linux.check_system()
    assert linux.tasks()
    assert linux.resident_bytes(os.getpid()) > linux.proportional_bytes(os.getpid()) // 2 > 0
    assert linux.resident_bytes(1 << 22) == linux.proportional_bytes(1 << 22) == 0


@pytest.mark.parametrize(
    ("settings", "options", "name"),
    [
        ({}, {}, "HOST.s.2"),
        ({"instance_id": "shop"}, {}, "shop-2"),
        ({"instance_id": "shop"}, {"static_members": False}, "shop-2"),
        ({}, {"static_members": False}, None),
        ({}, {"kafka": {"group.instance.id": "mine"}}, None),
        ({}, {"kafka": {"group.protocol": "consumer"}}, None),
        ({"kafka": {"group.protocol": "consumer"}}, {}, None),
    ],
)
def test_a_node_has_a_name_in_its_group(settings: dict[str, Any], options: dict[str, Any], name: str | None) -> None:
    app = awoke.App("shop", **settings)
    with contextlib.closing(Inbox()) as heard, socket.socket() as control:
        node = Node(2, control, app, Options(target="a:b", nodes=2, socket="/tmp/s", **options), heard)
        assert node._names()["instance_id"] == (name and name.replace("HOST", socket.gethostname()))


def test_the_status_of_large_swarms_fits_80_columns() -> None:
    node = {"node": 12, "pid": 4_194_304, "state": "stopping", "is_quiet": False, "memory_bytes": 9_999 << 20}
    more = {"oldest_job_s": 299.9, "assigned": 1_000, "lag": 123_456_789, "restarts": 1_000, "uptime_s": 86_399.0}
    lines = aligned([COLUMNS, node_row({**node, **more})])
    assert max(map(len, lines)) <= 80
    assert lines[1].split() == [
        *("12", "4194304", "stopping", "9999", "299.9", "s", "1000", "123456789", "1000", "24", "h")
    ]


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (119, "119 s"), (120, "2 min"), (7_200, "2 h"), (172_800, "2 d")]
)
def test_durations_are_short(seconds: float, text: str) -> None:
    assert duration(seconds) == text
