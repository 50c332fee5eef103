"""What one process accepts, a swarm and --watch accept: each row of the table in docs/swarm.md, in all three."""

from __future__ import annotations

import re
import signal
import socketserver
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.clusters import MockCluster, unique
from tests.support.processes import AWOKE, REPOSITORY, signal_process
from tests.support.three_modes import MESSAGES, ModeRun, in_three_modes, processes_of, stop_all

SHARED = """
import atexit, logging, random, shutil, sys, tempfile, threading
import beside_the_script

folder, other = tempfile.TemporaryDirectory(), tempfile.mkdtemp()
atexit.register(shutil.rmtree, other)
random.seed(1)
note("imported", folders=[folder.name, other], name=beside_the_script.NAME)
logging.getLogger("shop").addHandler(logging.FileHandler("log"))
logging.getLogger("shop").propagate = False
atexit.register(note, "atexit")


def end_after_main():
    threading.main_thread().join()
    note("thread ended")


@app.on_startup
def start() -> None:
    note(
        "started",
        in_main_thread=threading.current_thread() is threading.main_thread(),
        options=[__debug__, "error::UserWarning" in sys.warnoptions, sys._xoptions.get("answer")],
        arguments=sys.argv[1:3],
        path=sys.path,
        folder=os.getcwd(),
    )
    threading.Thread(target=end_after_main).start()


@app.on(TOPIC)
def handle(message: awoke.Message[bytes]) -> None:
    logging.getLogger("shop").warning("number %s", message.value.decode())
    note("handled", value=int(message.value), drawn=random.random())
"""
"""Forked from one import."""

OWN = """
import asyncio, queue, socket, threading

jobs = queue.Queue()


def serve():
    while True:
        jobs.get().set()


threading.Thread(target=serve, name="at-import", daemon=True).start()
loop = asyncio.new_event_loop()
connection = socket.create_connection(("127.0.0.1", int(os.environ["PORT"])))
producer = awoke.Producer(os.environ["SERVERS"])


@app.on(TOPIC)
def handle(message: awoke.Message[bytes]) -> None:
    done = threading.Event()
    jobs.put(done)
    assert done.wait(30)
    loop.run_until_complete(asyncio.sleep(0))
    connection.sendall(f"{os.getpid()}\\n".encode())
    producer.produce(os.environ["OTHER"], b"x").wait(30)
    note("handled", value=int(message.value))
"""
"""Imported by each node."""

STREAMS = """
import io, sys

sys.stdout = io.StringIO()  # No descriptor.
sys.stderr = None if os.environ["STREAMS"] == "none" else open(os.devnull, "w")
if sys.stderr is not None:
    sys.stderr.close()


@app.on(TOPIC)
def handle(message: awoke.Message[bytes]) -> None:
    print("nobody reads this")
    note("handled", value=int(message.value))
"""


@pytest.fixture(scope="module")
def brokers() -> Iterator[MockCluster]:
    cluster = MockCluster()
    yield cluster
    cluster.close()


@pytest.fixture(scope="module")
def shared(brokers: MockCluster, tmp_path_factory: pytest.TempPathFactory) -> dict[str, ModeRun]:
    """The app that is forked, in each mode, after its end. It was started by a script of another folder."""
    folder = tmp_path_factory.mktemp("shared")
    scripts = folder / "scripts"
    scripts.mkdir()
    (scripts / "beside_the_script.py").write_text("NAME = 'beside'\n")
    (scripts / "launch.py").write_text("from awoke.cli import main\n\nmain()\n")
    program = ("-O", "-W", "error::UserWarning", "-X", "answer=42", str(scripts / "launch.py"))
    with in_three_modes(folder, brokers, SHARED, program=program) as runs:
        for run in runs:
            run.wait_for("started", 2 if run.mode == "swarm" else 1)
        swarm = next(run for run in runs if run.mode == "swarm")
        signal_process(swarm.notes("started")[0]["pid"], signal.SIGTERM)
        swarm.wait_for("started", 3)  # The first node has ended, and another one was forked.
        assert all(Path(each).is_dir() for each in swarm.notes("imported")[0]["folders"]), "they are all nodes'"
        stop_all(runs)
    return {run.mode: run for run in runs}


@pytest.fixture(scope="module")
def own(brokers: MockCluster, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[ModeRun, Connections]]:
    """The app that each node imports, after its end, and its connections."""
    other = unique("other")
    brokers.create_topic(other)
    folder, found = tmp_path_factory.mktemp("own"), Connections()
    with found.server:
        env = {"PORT": str(found.port), "SERVERS": brokers.bootstrap_servers, "OTHER": other}
        with in_three_modes(folder, brokers, OWN, env=env) as runs:
            stop_all(runs)
        found.close()
    return {run.mode: (run, found) for run in runs}


class Connections:
    """A server that notes the processes which write to each connection."""

    def __init__(self) -> None:
        self.writers: dict[int, set[str]] = defaultdict(set)

        class Noted(socketserver.StreamRequestHandler):
            def handle(handler) -> None:  # noqa: N805
                for line in handler.rfile:
                    self.writers[handler.client_address[1]].add(line.decode().strip())

        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Noted)
        self.port = self.server.server_address[1]
        self._thread = threading.Thread(target=self.server.serve_forever)
        self._thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self._thread.join()


def options(run: ModeRun) -> None:
    assert all(each["options"] == [False, True, "42"] for each in run.notes("started"))


def path_and_arguments(run: ModeRun) -> None:
    assert run.notes("imported")[0]["name"] == "beside"
    assert all(each["arguments"] == ["run", "shop:app"] for each in run.notes("started"))
    assert all(Path(each["folder"]) == run.folder for each in run.notes("started"))


def logging_configuration(run: ModeRun) -> None:
    lines = sorted((run.folder / "log").read_text().split())
    assert sorted(lines) == sorted(["number"] * MESSAGES + [str(number) for number in range(MESSAGES)])
    assert "number 0" not in run.process.output, "the app's logger does not propagate"


def main_thread(run: ModeRun) -> None:
    assert all(each["in_main_thread"] for each in run.notes("started"))


def exit_functions(run: ModeRun) -> None:
    started = [each["pid"] for each in run.notes("started")]
    assert sorted(each["pid"] for each in run.notes("atexit")) == sorted(started)


def joined_threads(run: ModeRun) -> None:
    started = [each["pid"] for each in run.notes("started")]
    assert sorted(each["pid"] for each in run.notes("thread ended")) == sorted(started)


def random_numbers(run: ModeRun) -> None:
    drawn = [each["drawn"] for each in run.notes("handled")]
    assert len(set(drawn)) == MESSAGES


def temporary_folders(run: ModeRun) -> None:
    (imported,) = run.notes("imported")
    assert {Path(each).is_dir() for each in imported["folders"]} == {run.mode != "process"}


OF_SHARED: dict[str, Callable[[ModeRun], None]] = {
    "options of the interpreter": options,
    "`sys.path`, `sys.argv`, working folder": path_and_arguments,
    "logging configuration of the app": logging_configuration,
    "start-up functions": main_thread,
    "functions of `atexit`": exit_functions,
    "threads that are no daemons": joined_threads,
    "random numbers": random_numbers,
    "temporary folders made at import": temporary_folders,
}
OF_OWN = "threads, connections, clients and event loops made at import"
OF_STREAMS = "standard streams closed or replaced"
ELSEWHERE = {
    "SQLite's and LMDB's files opened at import": "test_embedded_databases",
    "native threads of libraries": "test_numpy",
    "spans and errors that are queued": "test_sentry",
    "processes that handlers start": "test_multiprocessing",
    "processes that are left at the stop": "test_multiprocessing",
}


@pytest.mark.parametrize("row", OF_SHARED)
@pytest.mark.parametrize("mode", ["process", "swarm", "watch"])
def test_it_is_the_same_in_each_mode(shared: dict[str, ModeRun], row: str, mode: str) -> None:
    OF_SHARED[row](shared[mode])


@pytest.mark.parametrize("mode", ["process", "swarm", "watch"])
def test_what_is_made_at_import_works(own: dict[str, tuple[ModeRun, Connections]], mode: str) -> None:
    run, connections = own[mode]
    pids = {str(each["pid"]) for each in run.notes("handled")}
    writers = [each for each in connections.writers.values() if each & pids]
    assert all(len(each) == 1 for each in writers), "each process has a connection of its own"
    warned = [line for line in run.process.output.splitlines() if "can't share" in line]
    assert len(warned) == (run.mode != "process")
    for what in ("thread at-import (", "rdk:main", f"a connection to 127.0.0.1:{connections.port}", "an event loop"):
        assert all(what in line for line in warned)


@pytest.mark.parametrize("streams", ["none", "closed"])
def test_streams_may_be_closed_or_replaced(brokers: MockCluster, tmp_path: Path, streams: str) -> None:
    with in_three_modes(tmp_path, brokers, STREAMS, env={"STREAMS": streams}) as runs:
        stop_all(runs)
    assert processes_of(tmp_path) == []


def test_closed_descriptors_are_written_to_by_nobody(brokers: MockCluster, tmp_path: Path) -> None:
    """The shell starts it without standard streams: their numbers are those of the next files and sockets."""
    closing = "import os, sys; [os.close(each) for each in range(3)]; "
    closing += "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    source = STREAMS.partition("\n\n\n")[2]
    with in_three_modes(tmp_path, brokers, source, program=("-c", closing, *AWOKE)) as runs:
        stop_all(runs)


def test_the_table_has_a_test_for_each_row() -> None:
    text = (REPOSITORY / "docs" / "swarm.md").read_text().partition("## The same as in one process")[2]
    rows = re.findall(r"^\| (.+?) \|", text.partition("\n## ")[0], re.MULTILINE)
    assert sorted(rows[1:]) == sorted([*OF_SHARED, OF_OWN, OF_STREAMS, *ELSEWHERE])
    assert all((REPOSITORY / "tests" / "strangers" / f"{each}.py").exists() for each in ELSEWHERE.values())
