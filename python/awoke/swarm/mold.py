"""The mold: a process that imports the app once and forks the nodes, which share its memory until they write to it.

It has one thread and no Kafka client. A reload starts another mold. Its loop:

1. waits for a request of the supervisor, or for the end of the supervisor's socket;
2. forks a node, and sends its number and pidfd;
3. ends when the socket ends.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
import traceback

import msgspec

from awoke.app.app import App
from awoke.app.application import find_app
from awoke.errors import AwokeError, ConfigError
from awoke.observe import ledger
from awoke.observe.ledger import Ledger
from awoke.runtime.process.dependencies import parameters_of_routes
from awoke.swarm import linux, protocol
from awoke.swarm.node import BLOCKED, run_node
from awoke.swarm.options import SwarmOptions
from awoke.text.exit_codes import EXIT_CONFIGURATION, EXIT_FAILED
from awoke.text.printable import indented
from awoke.text.secrets import without_userinfo

BASE_THREADS = 1
"""The number of threads that a process may have when it forks."""


def main(descriptor: int, supervisor: int) -> int:
    """Imports the app, reports it, and forks nodes until the supervisor closes its socket; returns the exit code."""
    control = socket.socket(fileno=descriptor)
    control.set_inheritable(False)  # A process that the app starts must not keep the socket open after this one's end.
    linux.signal_when_parent_ends(signal.SIGKILL)
    if os.getppid() != supervisor:
        return EXIT_FAILED
    options = _options(control)
    # A node inherits the mask: a signal that comes during its fork stays pending until the node can handle it.
    signal.pthread_sigmask(signal.SIG_BLOCK, BLOCKED)
    try:
        app = _import(options)
    except AwokeError as error:
        # Where files are watched, their author reads the log and wants to know where the error comes from.
        text = traceback.format_exc() if options.watch else str(error)
        control.send(protocol.encode(protocol.Refused(text[-protocol.TEXT_MAX :])))
        return EXIT_CONFIGURATION
    except BaseException:
        control.send(protocol.encode(protocol.Refused(traceback.format_exc(limit=-5)[-protocol.TEXT_MAX :])))
        return EXIT_CONFIGURATION
    control.send(protocol.encode(protocol.MoldReady(linux.resident_bytes(os.getpid()), _single(app, options))))
    while (received := protocol.receive(control)) and received.data:
        node = protocol.decode(received.data, protocol.TO_MOLD).node
        if received.descriptors:
            _fork(control, received.descriptors[0], node, app, options)
        else:
            _not_forked(control, node, "its mold may open no more files")
        protocol.close_all(received.descriptors)
    return 0


def _options(control: socket.socket) -> SwarmOptions:
    """Returns the options, which the supervisor sends first. Every user may read arguments, so they are not there."""
    return protocol.decode(control.recv(protocol.MESSAGE_MAX), msgspec.json.Decoder(SwarmOptions))


def _import(options: SwarmOptions) -> App:
    gc.disable()
    threads = Ledger()
    ledger.install()
    try:
        with threads.acting_for("import", 0):
            app = find_app(options.target)
            for hook in app.before_forks:
                hook()
            app.dependencies.share(parameters_of_routes(app.all_routes))
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


def _fork(control: socket.socket, node_control: int, node: int, app: App, options: SwarmOptions) -> None:
    """Forks twice. The node's parent ends at once, and the supervisor, as subreaper, becomes the parent."""
    between = os.fork()
    if between:
        os.waitpid(between, 0)
        return
    code = EXIT_FAILED
    try:
        child = os.fork()
        if child == 0:
            # A node keeps what the app has opened. This socket is the mold's: a copy would hide the mold's end.
            control.close()
            code = run_node(node, node_control, app, options)
        else:
            code = _tell(control, node, child)
    except BaseException:
        sys.stderr.write(indented(without_userinfo(traceback.format_exc())) + "\n")
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
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
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
