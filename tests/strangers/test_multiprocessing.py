"""Processes that an app's own code starts: they hear their signals, hold up no stop, and outlive no swarm."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tests.support.clusters import MockCluster
from tests.support.processes import signal_process
from tests.support.three_modes import in_three_modes, processes_of, stop_all
from tests.support.waiting import wait_until

POOLS = """
import concurrent.futures, multiprocessing, signal, subprocess, sys


def double(number):
    return 2 * number


def handlers(_=None):
    found = (signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP))
    return [getattr(each, "name", None) or each.__name__ for each in found]


def wakeup(_=None):
    return signal.set_wakeup_fd(-1)


def wait_for_term(ready):
    ready.set()
    signal.pause()


def doubled(number):
    match number:
        case 0:  # Leaving the block sends TERM to its processes.
            with multiprocessing.Pool(2) as pool:
                note("child", handlers=pool.map(handlers, [0])[0], wakeup=pool.map(wakeup, [0])[0])
                return pool.map(double, [number])[0]
        case 1 | 2:
            how = multiprocessing.get_context("spawn" if number == 1 else "forkserver")
            with concurrent.futures.ProcessPoolExecutor(1, how) as pool:
                return pool.submit(double, number).result()
        case 3:
            ready = multiprocessing.Event()
            child = multiprocessing.Process(target=wait_for_term, args=(ready,))
            child.start()
            ready.wait()
            child.terminate()
            child.join()
            note("ended", code=child.exitcode)
        case 4:
            child = os.fork()
            if child == 0:
                note("child", handlers=handlers(), wakeup=wakeup())
                os._exit(7)
            note("forked", code=os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        case 6 | 7:  # Children that leave the handler: they must not handle what their parent handles.
            child = os.fork()
            if child == 0:
                return 2 * number if number == 6 else sys.exit(5)
            note("left", code=os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        case 5:
            return int(subprocess.run([sys.executable, "-c", "print(10)"], stdout=-1).stdout)
    return 2 * number


@app.on(TOPIC)
def handle(message: awoke.Message[bytes]) -> None:
    number, parent = int(message.value), os.getpid()
    assert doubled(number) == 2 * number
    if os.getpid() == parent:
        note("handled", value=number)
"""

LEFT = """
import multiprocessing, signal, time


def stay():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    note("stays")
    while True:
        signal.pause()


@app.on(TOPIC)
def handle(message: awoke.Message[bytes]) -> None:
    if message.value == b"3":
        multiprocessing.Process(target=stay, name="stubborn").start()
    note("handled", value=int(message.value))
"""


def test_processes_of_a_handler_begin_with_default_signals(mock_cluster: MockCluster, tmp_path: Path) -> None:
    with in_three_modes(tmp_path, mock_cluster, POOLS) as runs:
        stop_all(runs)
    for run in runs:
        assert len(run.notes("child")) == 2
        for child in run.notes("child"):
            assert child["handlers"] == ["SIG_DFL", "default_int_handler", "SIG_DFL", "SIG_DFL"]
            assert child["wakeup"] == -1
        assert [each["code"] for each in run.notes("ended")] == [-signal.SIGTERM]
        assert [each["code"] for each in run.notes("forked")] == [7]
        assert sorted(each["code"] for each in run.notes("left")) == [1, 5]
        assert "has returned from the handler that forked it" in run.process.output
    assert processes_of(tmp_path) == []


def test_a_process_that_does_not_end_is_named_and_holds_no_stop_up(mock_cluster: MockCluster, tmp_path: Path) -> None:
    """Python waits for it for ever at its own end."""
    with in_three_modes(tmp_path, mock_cluster, LEFT, env={"AWOKE_SHUTDOWN_TIMEOUT_S": "2"}) as runs:
        for run in runs:
            run.wait_for("stays", 1)
        stop_all(runs, code=3)
        for run in runs:
            (child,) = run.notes("stays")
            assert "the process does not end within 2 s" in run.process.output
            assert f"process {child['pid']} (stubborn)" in run.process.output
    assert processes_of(tmp_path) == []


HANGS = """
import multiprocessing, subprocess, signal

STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); signal.pause()"


@app.on(TOPIC)
def handle(message: awoke.Message[bytes]) -> None:
    note("handled", value=int(message.value))
    if message.value == b"7":
        # A child of a child: its parent ends at once.
        command = ["sh", "-c", 'python -c "$0" & read line', STUBBORN]
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert child.stdout.readline() == b"1\\n"
        child.kill()
        note("left", child=child.pid)
        multiprocessing.Process(target=signal.pause).start()
        if os.environ["HANGS"]:
            multiprocessing.active_children()[0].join()
"""


def test_what_a_killed_node_has_started_is_ended(mock_cluster: MockCluster, tmp_path: Path) -> None:
    with in_three_modes(tmp_path, mock_cluster, HANGS, ["swarm"], env={"HANGS": ""}) as (run,):
        run.wait_for("left", 1)
        node = next(each["pid"] for each in run.notes("handled") if each["value"] == 7)

        def of_node() -> list[int]:
            return [pid for pid in processes_of(tmp_path) if os.getpgid(pid) == node]

        wait_until(lambda: len(of_node()) == 3, "its children run", 30)
        group = of_node()
        signal_process(node, signal.SIGKILL)
        run.process.wait_for("has left processes behind, which are ended")
        wait_until(lambda: not set(group) & set(processes_of(tmp_path)), "they have ended", 30)
        run.process.wait_for("do not end, and are killed")  # The one that ignores TERM.
        run.stop()
    assert processes_of(tmp_path) == []


def test_nothing_outlives_a_supervisor_that_is_killed(mock_cluster: MockCluster, tmp_path: Path) -> None:
    """Not even the children of a node that hangs: it waits for one of them, and does not stop in time."""
    options = ("--drain-timeout-s", "1")
    with in_three_modes(tmp_path, mock_cluster, HANGS, ["watch"], env={"HANGS": "1"}, options=options) as (run,):
        run.wait_for("left", 1)
        assert len(processes_of(tmp_path)) >= 5
        run.process.signal(signal.SIGKILL)
        wait_until(lambda: processes_of(tmp_path) == [], "all processes have ended", 30)
