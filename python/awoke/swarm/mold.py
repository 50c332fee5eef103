"""The process that imports the app, once, and forks nodes from what it then is: they share its memory until they write to it.

It has one thread, opens no client, and does nothing but wait for its supervisor to ask for a node. A reload is another mold.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
import traceback
from typing import Any

import msgspec

from awoke.app import App
from awoke.application import find_app
from awoke.errors import AwokeError, ConfigError
from awoke.exit_codes import EXIT_CONFIGURATION, EXIT_GAVE_UP
from awoke.runtime import ledger
from awoke.runtime.ledger import Ledger
from awoke.swarm import linux, protocol
from awoke.swarm.node import BLOCKED, run_node
from awoke.swarm.options import Options

BASE_THREADS = 1
"""All that a process that forks may have."""


def main(descriptor: int, options: Options, supervisor: int) -> int:
    """Import the app, say so, and fork nodes until the supervisor wants no more; the exit code."""
    control = socket.socket(fileno=descriptor)
    control.set_inheritable(False)  # A process that the app starts must not hide this one's end.
    linux.signal_when_parent_ends(signal.SIGKILL)
    if os.getppid() != supervisor:
        return EXIT_GAVE_UP
    # Not for this process, which ends when its supervisor wants, but for a node that is being forked: it hears them later.
    signal.pthread_sigmask(signal.SIG_BLOCK, BLOCKED)
    try:
        app = _import(options)
    except AwokeError as error:
        control.send(protocol.encode("refused", text=str(error)))
        return EXIT_CONFIGURATION
    except BaseException:
        control.send(protocol.encode("refused", text=traceback.format_exc(limit=-5)[-50_000:]))
        return EXIT_CONFIGURATION
    control.send(protocol.encode("ready", resident_bytes=linux.resident_bytes(os.getpid())))
    while request := _receive(control):
        message, descriptors = request
        (node_control,) = descriptors
        node = int(message["node"])
        _fork(control, node_control, node, app, options)
        os.close(node_control)
    return 0


def _import(options: Options) -> App:
    gc.disable()
    threads = Ledger()
    ledger.install()
    try:
        with threads.acting_for("import", 0):
            app = find_app(options.target)
            for hook in app.before_forks:
                hook()
    finally:
        ledger.uninstall()
    tasks = linux.tasks()[BASE_THREADS:]
    if tasks:
        started = [f"{each.name} at {each.started_at}" for each in threads.entries() if each.owner == "import"]
        raise ConfigError(
            f"{options.target} starts threads or makes Kafka clients while it is imported, and a process with threads "
            f"can't be forked: {', '.join(started or tasks)}. Make them when the app runs: in assigned(), with "
            "app.background or in a function of @app.after_fork",
            "nodes",
        )
    gc.collect()
    gc.freeze()
    return app


def _receive(control: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    data, descriptors, _, _ = socket.recv_fds(control, protocol.MESSAGE_MAX, 4)
    if not data:
        return None
    message = protocol.decode(data)
    assert isinstance(message, dict)
    return message, descriptors


def _fork(control: socket.socket, node_control: int, node: int, app: App, options: Options) -> None:
    """Fork twice: the node's parent ends at once, so that the supervisor, which takes orphans in, becomes its parent."""
    between = os.fork()
    if between:
        os.waitpid(between, 0)
        return
    code = EXIT_GAVE_UP
    try:
        child = os.fork()
        if child == 0:
            # What the app opened is the nodes', too; this is the mold's alone, and one that held it would hide its end.
            control.close()
            code = run_node(node, node_control, app, options)
        else:
            descriptor = os.pidfd_open(child)
            message = protocol.encode("forked", node=node, pid=child)
            socket.send_fds(control, [message], [descriptor])
            code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    given = msgspec.json.decode(sys.argv[2].encode(), type=Options)
    sys.exit(main(int(sys.argv[1]), given, int(sys.argv[3])))
