"""`make console`: a visitor sees each step of the start, then what the app does; and nothing is left of it.

Goal: what it shows is true from its first second, and each process that it started ends with it, whenever that is.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import awoke
from examples.flights import console
from tests.support.clusters import RealCluster
from tests.support.processes import REPOSITORY, Process
from tests.support.waiting import wait_until

WITHIN_S = 120.0
"""Two starts of Python, forks and a join of the group come within this on a busy machine."""
DEMO = ("-m", "examples.flights.console", "--no-browser", "--port", "0")
FIRST_LINE, TOPICS, SWARM = "it starts", "topics: they are made", "swarm: supervisor"
NODE, LISTENS, ALL = "node 1: process", "console: it listens at", "2 of 2 nodes have reported"
MAKE = ["make", "-o", ".venv/dev", "-o", "console-assets", f"BIN={Path(sys.executable).parent}"]
"""Builds and fetches nothing before."""


def processes_of(mark: str) -> set[int]:
    """Returns the processes that have this text in their environment: those that a demo has started, and it itself."""
    found = set[int]()
    for each in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):  # It has ended, or is another user's.
            if mark.encode() in each.read_bytes():
                found.add(int(each.parent.name))
    return found


@pytest.fixture
def mark(tmp_path: Path) -> Iterator[str]:
    """Yields the socket of a demo's swarm, which no other process has in its environment; ends what is left of it."""
    found = str(tmp_path / "swarm.sock")
    # Processes inherit that it is ignored, as it is in the background of a shell without job control.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield found
    signal.signal(signal.SIGINT, before)
    for pid in processes_of(found):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def wait_none_left(mark: str) -> None:
    """Waits until no process of a demo is left. Nodes may end a moment after the program that is waited for."""
    wait_until(lambda: not processes_of(mark), "no process is left", WITHIN_S)


def demo(mark: str) -> Process:
    """Starts the demo."""
    return Process(program=DEMO, env={"AWOKE_SOCKET": mark})


def page_of(url: str, path: str) -> Any:
    """Returns a page as a program gets it."""
    request = urllib.request.Request(url + path, headers={"Accept": "application/json"})
    with urllib.request.urlopen(request, timeout=WITHIN_S) as answer:
        return json.load(answer)


def test_a_visitor_sees_the_start_and_then_all_that_the_app_has(mark: str) -> None:
    with demo(mark) as process:
        process.wait_for(LISTENS, WITHIN_S)
        found = re.search(r"http://[0-9.:]+", process.output)
        assert found is not None
        url = found[0]

        first = page_of(url, "/")
        assert first["is_waiting"] is not bool(first["processes"])
        if first["is_waiting"]:  # On a quick machine the processes have reported already.
            assert {"Topics", "Brokers"} <= {each["name"] for each in first["steps"]}
        process.wait_for(ALL, WITHIN_S)
        wait_all_shown(url)
        assert processes_of(mark) > {process.pid}

        process.signal(signal.SIGINT)
        assert process.wait(WITHIN_S) == 0, process.output
        steps = [FIRST_LINE, "brokers: embedded", TOPICS, SWARM, LISTENS, NODE, ALL, "all has ended"]
        assert [each for each in steps if each not in process.output] == []
        wait_none_left(mark)


def wait_all_shown(url: str) -> None:
    """Waits until the console shows each thing that the demo has."""

    def is_shown(path: str, is_so: Callable[[Any], bool], what: str) -> None:
        wait_until(lambda: is_so(page_of(url, path)), what, WITHIN_S, every_s=0.5)

    is_shown("/", lambda page: page["processes"] == 2 and page["lag"] is not None, "the overview")
    is_shown("/stuck", lambda page: any("no gate for flight" in each["text"] for each in page["reasons"]), "poison")
    is_shown("/partitions?state=failing", lambda page: has(page["partitions"], topic="flights"), "a blocked key")
    is_shown("/jobs", lambda page: has(page["jobs"], topic="inspections"), "the slow handler")
    is_shown("/calls", lambda page: is_answered(page["methods"]["rows"]), "the calls")
    is_shown("/letters/bags.lost", lambda page: page["letters"]["total"] > 0, "the dead letters")


def has(rows: Any, **fields: Any) -> bool:
    """Tells whether a table has a row with these values."""
    return any(each.items() >= fields.items() for each in rows["rows"])


def is_answered(methods: list[dict[str, Any]]) -> bool:
    """Tells whether calls were answered, with and without a result."""
    return any(each["outcomes"].get("ok") and each["outcomes"].get("not_found") for each in methods)


@pytest.mark.parametrize(
    ("moment", "number"),
    [
        (FIRST_LINE, signal.SIGTERM),
        (TOPICS, signal.SIGINT),
        (SWARM, signal.SIGTERM),
        (SWARM, signal.SIGHUP),
        (NODE, signal.SIGINT),
        (NODE, signal.SIGTERM),
        (ALL, signal.SIGHUP),
        (ALL, signal.SIGTERM),
    ],
)
def test_a_signal_ends_every_process_whenever_it_comes(mark: str, moment: str, number: signal.Signals) -> None:
    with demo(mark) as process:
        process.wait_for(moment, WITHIN_S)
        process.signal(number)
        assert process.wait(WITHIN_S) == 0, process.output
        assert "all has ended" in process.output
        supervisor = re.search(r"supervisor (\d+)", process.output)
        # It is waited for: left alone, it would also end some time after its brokers.
        assert supervisor is None or int(supervisor[1]) not in processes_of(mark)
        wait_none_left(mark)


def test_a_browser_of_the_terminal_is_not_waited_for(mark: str, tmp_path: Path) -> None:
    """It ends when its user closes it; the demo ends before, and says that it leaves it alone."""
    browser = tmp_path / "browser"
    browser.write_text("#!/bin/sh\nexec sleep 1000 >/dev/null 2>&1\n")
    browser.chmod(0o700)
    program = [each for each in DEMO if each != "--no-browser"]
    with Process(program=program, env={"AWOKE_SOCKET": mark, "BROWSER": f"{browser} %s"}) as process:
        process.wait_for(LISTENS, WITHIN_S)
        process.signal(signal.SIGINT)
        assert process.wait(WITHIN_S) == 0, process.output
        assert "console: the browser still runs, and is left alone" in process.output


def test_a_console_that_is_not_loaded_in_time_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "LOADED_WITHIN_S", 0.0)
    nothing: Any = None
    with pytest.raises(awoke.OperationTimeout, match="the console was not loaded within 0 s"):
        console.Site(nothing, nothing, nothing, nothing).wait_loaded()


@contextlib.contextmanager
def made(mark: str, terminal: int | None = None, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Runs `make console` in a session of its own, on a terminal if one is given."""
    command = [*MAKE, "console", f"ARGS={' '.join((*DEMO[2:], *arguments))}"]
    env = {**os.environ, "AWOKE_SOCKET": mark}
    if terminal is not None:
        # `login_tty` is not safe between fork and exec where threads are: Python runs it in a process of one thread.
        command = [sys.executable, "-c", "import os, sys; os.login_tty(0); os.execvp('make', sys.argv[1:])", *command]
    with subprocess.Popen(
        command,
        cwd=REPOSITORY,
        env=env,
        stdin=subprocess.DEVNULL if terminal is None else terminal,
        stdout=subprocess.PIPE if terminal is None else terminal,
        stderr=subprocess.STDOUT if terminal is None else terminal,
        start_new_session=terminal is None,
        text=True,
    ) as running:
        yield running


def read_to(lines: Any, *texts: str) -> str:
    """Reads lines until each text was in one, in any order, and returns the lines. Blocks; fails at their end."""
    seen = ""
    for line in lines:
        seen += str(line)
        if all(each in seen for each in texts):
            return seen
    raise AssertionError(f"no {texts} in:\n{seen}")


@pytest.mark.parametrize("moment", [SWARM, ALL])
@pytest.mark.parametrize("to", ["make", "group"])
def test_a_signal_for_make_ends_every_process(mark: str, moment: str, to: str) -> None:
    """SIGTERM comes to `make` alone, which passes it on; Ctrl-C comes to all processes of the terminal."""
    with made(mark) as running:
        assert running.stdout is not None
        read_to(running.stdout, moment)
        if to == "make":
            running.send_signal(signal.SIGTERM)
        else:
            os.killpg(running.pid, signal.SIGINT)
        rest = running.stdout.read()
        running.wait(WITHIN_S)
        assert "all has ended" in rest
        wait_none_left(mark)


def test_the_end_of_the_terminal_ends_every_process(mark: str) -> None:
    """The system tells `make` of it, and `make` does not tell its child."""
    ours, theirs = os.openpty()
    with made(mark, theirs) as running:
        os.close(theirs)
        with open(ours, errors="replace") as lines:
            read_to(lines, ALL)
        running.wait(WITHIN_S)
        wait_none_left(mark)


@pytest.mark.parametrize("is_first", [True, False])
def test_it_runs_on_brokers_that_are_named_and_leaves_no_process(
    mark: str, real_cluster: RealCluster, is_first: bool
) -> None:
    """The second time it finds the topics of the first, and its static members, which stay for a session."""
    with made(mark, None, "--bootstrap-servers", real_cluster.bootstrap_servers) as running:
        assert running.stdout is not None
        shown = read_to(running.stdout, LISTENS, ALL)
        url = re.search(r"http://[0-9.:]+", shown)
        assert url is not None
        wait_all_shown(url[0])
        assert [each["address"] for each in page_of(url[0], "/topics")["brokers"]] == [real_cluster.bootstrap_servers]
        running.send_signal(signal.SIGTERM)
        rest = running.stdout.read()
        running.wait(WITHIN_S)
        assert "all has ended" in rest
        assert "brokers: embedded" not in shown
        wait_none_left(mark)
