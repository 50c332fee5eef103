"""The mold: a process that imports the app once and forks the nodes, which share its memory until they write to it.

It has no Kafka client, and no thread that would not survive a fork. A reload starts another mold. Its loop:

1. waits for a request of the supervisor, or for the end of the supervisor's socket;
2. forks a node, and sends its number and pidfd;
3. ends when the socket ends.

Threads that the app's import has started do not exist in a forked process. Libraries such as OpenBLAS end theirs at a
fork and start them again when they need them; a fork for nothing shows which threads do not. If any is left, or a
connection or an event loop that all nodes would use as one, the mold begins anew, as a process of the same number that
has not imported the app: each node then imports it for itself.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import logging
import os
import shutil
import signal
import socket
import sys
import threading
import traceback
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import msgspec

from awoke.app.app import App
from awoke.app.application import find_app
from awoke.errors import AwokeError
from awoke.observe import ledger, logs
from awoke.observe.ledger import Ledger
from awoke.runtime.process.dependencies import parameters_of_routes
from awoke.runtime.process.ending import end_process, flush_streams
from awoke.runtime.process.inbox import take_signals
from awoke.swarm import linux, protocol
from awoke.swarm.node import BLOCKED, run_node
from awoke.swarm.options import SwarmOptions, interpreter_options
from awoke.text.exit_codes import EXIT_CONFIGURATION, EXIT_FAILED
from awoke.text.printable import indented
from awoke.text.secrets import without_userinfo
from awoke.waiting.green_threads import check_threads

logger = logging.getLogger("awoke.swarm.mold")  # As a program its name is another.


class ImportResult(msgspec.Struct):
    """What a mold that begins anew knows of the app, from its import before that."""

    options: SwarmOptions
    single: str


def main(descriptor: int, supervisor: int, trial: int | None = None) -> int:
    """Imports the app, reports it, and forks nodes until the supervisor closes its socket; returns the exit code.

    With the descriptor of a `ImportResult` it imports nothing: the nodes do.
    """
    control = socket.socket(fileno=descriptor)
    control.set_inheritable(False)  # A process that the app starts must not keep the socket open after this one's end.
    linux.signal_when_parent_ends(signal.SIGKILL)
    if os.getppid() != supervisor:
        return EXIT_FAILED
    # A mold stops for its supervisor only. Processes that the app's import starts get the signals as usual.
    take_signals({each: lambda *_: None for each in BLOCKED})
    options = _options(control) if trial is None else (known := _read(trial)).options
    sys.path[:] = options.path or sys.path
    sys.argv[:] = options.arguments or sys.argv
    logs.set_up(options.log_level, options.log_format)
    if trial is None:
        try:
            app, left = _import(options)
        except AwokeError as error:
            # Where files are watched, their author reads the log and wants to know where the error comes from.
            text = traceback.format_exc() if options.watch else str(error)
            control.send(protocol.encode(protocol.Refused(text[-protocol.TEXT_MAX :])))
            return EXIT_CONFIGURATION
        except BaseException:
            control.send(protocol.encode(protocol.Refused(traceback.format_exc(limit=-5)[-protocol.TEXT_MAX :])))
            return EXIT_CONFIGURATION
        single = _single(app, options)
        if _is_to_begin_anew(options, left):
            _begin_anew(control, supervisor, ImportResult(options, single))
        load = _as_imported(app)
    else:
        single, load = known.single, lambda: load_app(options)
    control.send(protocol.encode(protocol.MoldReady(linux.resident_bytes(os.getpid()), single)))
    while (received := protocol.receive(control)) and received.data:
        node = protocol.decode(received.data, protocol.TO_MOLD).node
        if received.descriptors:
            _fork(control, received.descriptors[0], node, load, options)
        else:
            _not_forked(control, node, "its mold may open no more files")
        protocol.close_all(received.descriptors)
    return 0


def _options(control: socket.socket) -> SwarmOptions:
    """Returns the options, which the supervisor sends first. Every user may read arguments, so they are not there."""
    return protocol.decode(control.recv(protocol.MESSAGE_MAX), msgspec.json.Decoder(SwarmOptions))


def load_app(options: SwarmOptions) -> App:
    """Imports the app, and prepares it for its nodes."""
    app = find_app(options.target)
    check_threads()
    for hook in app.before_forks:
        hook()
    app.dependencies.share(parameters_of_routes(app.all_routes))
    return app


def _import(options: SwarmOptions) -> tuple[App, list[str]]:
    """Returns the app, and what it has opened or started that nodes can't share: threads, connections, event loops."""
    gc.disable()
    threads = Ledger()
    ledger.install()
    try:
        with threads.acting_for("import", 0):
            app = load_app(options)
    finally:
        ledger.uninstall()
    left = [*_threads(threads), *linux.connections(), *linux.databases(), *["an event loop"] * linux.has_epoll()]
    _keep_files()
    gc.collect()
    gc.freeze()
    return app, left


def _keep_files() -> None:
    """Keeps nodes from removing, at their end, what the import has made for all of them, as a temporary folder."""
    for finalizer in list(getattr(weakref.finalize, "_registry", ())):
        finalizer.atexit = False
    for function in (shutil.rmtree, os.remove, os.rmdir, os.unlink):
        atexit.unregister(function)


def _threads(started: Ledger) -> list[str]:
    """Returns the threads that do not survive a fork, with the places where they were started."""
    if len(linux.tasks()) == 1:
        return []
    if len(sys._current_frames()) == 1:
        _fork_for_nothing()  # Only where no thread runs Python: its functions for forks may count on these.
    main = threading.main_thread().name
    python = [f"{each.name} ({each.started_at or '?'})" for each in started.entries() if each.name != main]
    threads_of_python = {each.native_id for each in threading.enumerate()}
    native = [name for number, name in linux.tasks().items() if number not in threads_of_python]
    return [*(f"thread {each}" for each in python), *(f"thread {name!r} of a native library" for name in native)]


def _fork_for_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 and later warn of threads.
        child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)


def _is_to_begin_anew(options: SwarmOptions, left: list[str]) -> bool:
    """Tells whether nodes import the app for themselves; logs why if that was not asked for."""
    if not left or options.preload is False:
        return options.preload is False
    text = "%s has started or opened, while it was imported, what forked processes can't share: %s. %s"
    if options.preload:
        logger.warning(text, options.target, ", ".join(left), "preload=true: nodes are forked nevertheless")
        return False
    how = "Each node imports the app for itself, and they share no memory; preload=false says that without this warning"
    logger.warning(text, options.target, ", ".join(left), how)
    return True


def _begin_anew(control: socket.socket, supervisor: int, trial: ImportResult) -> NoReturn:
    """Replaces this process's program by a mold that has not imported the app. Its children end."""
    linux.end_children()
    kept = os.memfd_create("awoke-trial", 0)
    Path(f"/proc/self/fd/{kept}").write_bytes(msgspec.json.encode(trial))
    control.set_inheritable(True)
    command = [sys.executable, *interpreter_options(), "-m", "awoke.swarm.mold"]
    os.execv(sys.executable, [*command, *map(str, (control.fileno(), supervisor, kept))])


def _read(trial: int) -> ImportResult:
    try:
        return msgspec.json.decode(Path(f"/proc/self/fd/{trial}").read_bytes(), type=ImportResult)
    finally:
        os.close(trial)


def _as_imported(app: App) -> Callable[[], App]:
    return lambda: app


def _single(app: App, options: SwarmOptions) -> str:
    """Returns the reason why only one node may run the app; empty where any number may."""
    for route in app.all_routes:
        if route.partitions:
            why = f"each node would read partitions={list(route.partitions)}, and process each message once more"
            return f"route {route.topic!r}: {why}; run one node, or leave partitions=… out"
    if "group.instance.id" in app.settings.kafka or "group.instance.id" in options.kafka:
        return "group.instance.id is one name for all nodes, of which each would end the other: set instance_id"
    return ""


def _not_forked(control: socket.socket, node: int, why: str) -> None:
    control.send(protocol.encode(protocol.NotForked(node, why)))


def _fork(control: socket.socket, node_control: int, node: int, load: Callable[[], App], options: SwarmOptions) -> None:
    """Forks twice. The node's parent ends at once, and the supervisor, as subreaper, becomes the parent."""
    # A node inherits the mask: a signal that comes during its fork stays pending until the node can handle it.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, BLOCKED)
    between = os.fork()
    if between:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.waitpid(between, 0)
        return
    code = EXIT_FAILED
    try:
        os.setpgid(0, 0)  # What is left of the mold's group ends with the mold.
        child = os.fork()
        if child == 0:
            # A node keeps what the app has opened. This socket is the mold's: a copy would hide the mold's end.
            control.close()
            end_process(run_node(node, node_control, load, options))
        else:
            code = _tell(control, node, child)
    except BaseException:
        with contextlib.suppress(Exception):
            sys.stderr.write(indented(without_userinfo(traceback.format_exc())) + "\n")
    finally:
        flush_streams()
        os._exit(code)


def _tell(control: socket.socket, node: int, child: int) -> int:
    """Reports a node's process to the supervisor; kills a process that can't be reported."""
    try:
        descriptor = os.pidfd_open(child)
        socket.send_fds(control, [protocol.encode(protocol.Forked(node, child))], [descriptor])
    except OSError as error:
        os.kill(child, signal.SIGKILL)
        _not_forked(control, node, f"its mold can't tell of it: {error.strerror}")
        return EXIT_FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
