"""The admin socket of a swarm, and its HTTP endpoint for health, metrics and threads."""

from __future__ import annotations

import contextlib
import logging
import os
import reprlib
import time
from collections.abc import Mapping
from typing import Any, Protocol

from awoke.errors import AwokeError, ConfigError
from awoke.observe.web import http, listener
from awoke.observe.web.http import HttpListener
from awoke.observe.web.listener import Listener, Peer, Respond
from awoke.observe.web.loop import Loop
from awoke.operate.commands import lines as command_lines
from awoke.operate.commands.socket_file import SocketFile
from awoke.swarm import audited, linux, protocol
from awoke.swarm.answers import Answers
from awoke.swarm.merging import health_of, merged, of_nodes, stacks_of, threads_of
from awoke.swarm.nodes import NodeState
from awoke.swarm.options import Options
from awoke.swarm.rolling import OnEnd

logger = logging.getLogger(__name__)

NODES_MAX = 1_000
"""The most nodes that a swarm is scaled to."""


class Host(Protocol):
    """The commands of a swarm, as the endpoint needs them."""

    @property
    def is_stopping(self) -> bool:
        """True once the swarm stops."""

    def status(self) -> dict[str, Any]:
        """Returns the state of the swarm."""

    def stop(self) -> None:
        """Stops the swarm in order."""

    def quiet(self) -> None:
        """Makes the nodes begin no new jobs."""

    def reload(self, on_end: OnEnd | None = None) -> bool:
        """Begins a reload; returns false if one is under way."""

    def scale(self, count: int) -> None:
        """Changes the number of nodes."""

    def dump(self, number: int) -> bool:
        """Makes a node write its stacks to the log; returns false if it has no process."""


class AdminEndpoint:
    """The listening sockets of a supervisor. For the supervisor's thread; does not block."""

    def __init__(self, options: Options, loop: Loop, answers: Answers, host: Host) -> None:
        self._options, self._loop, self._answers, self._host = options, loop, answers, host
        self._nodes = answers.nodes
        self._began_s = time.monotonic()
        self._listeners: list[Listener] = []
        self._commands: Listener | None = None
        """That of the admin socket, once it is open."""

    def open(self) -> None:
        """Opens the sockets.

        Raises:
            ConfigError: The admin socket or the port is taken.
        """
        self._file = SocketFile(self._options.socket)
        self._commands = Listener(self._loop, self._file.listening, listener.is_whole_line, self._on_command)
        self._listeners.append(self._commands)
        try:
            self._open_http()
        except ConfigError:
            self.close()
            raise

    def _open_http(self) -> None:
        if self._options.metrics_port is not None:
            host = self._options.metrics_host
            web = http.listening_socket(host, self._options.metrics_port)
            logger.info("health and metrics at http://%s:%d", host, web.getsockname()[1])
            names = http.names_in(self._options.metrics_allowed_hosts, host)
            self._listeners.append(HttpListener(self._loop, web, names, self._on_http))

    def close(self) -> None:
        """Closes the sockets and removes the admin socket's file."""
        self._file.remove()
        for each in self._listeners:
            each.close()

    # Commands.

    def _on_command(self, request: bytes, respond: Respond) -> None:
        began_ms, peer = audited.now_ms(), None if self._commands is None else self._commands.peer
        command: dict[str, Any] = {}

        def answer(found: dict[str, Any]) -> None:
            if name != "stop" or "done" not in found:
                self._record(audited.note_of(command, found, peer, os.getpid(), began_ms), peer)
            respond(command_lines.encoded(found))

        name = ""
        try:
            command = command_lines.decoded(request)
            name = str(command.get("command"))
            if name == "stop":  # Its nodes end: none of them could send a record later.
                self._record(audited.note_of(command, {}, peer, os.getpid(), began_ms), peer)
            if name == "reload":
                self._reload(answer, waits=command.get("waits") is not False)
            elif name == "resume":
                place, group = command_lines.place_of(command), command_lines.group_of(command)
                self._answers.resumes.begin(*place, answer, group=group)
            elif name == "skip":
                place, group = command_lines.place_of(command), command_lines.group_of(command)
                self._answers.resumes.begin(*place, answer, command_lines.offset_of(command), group)
            elif name in audited.ACTS:
                place = command_lines.place_of(command)
                given = {**audited.arguments_of(command), "topic": place[0], "partition": place[1]}
                self._answers.resumes.act(name, given, audited.user_of(peer), audited.reason_of(command), answer)
            elif name == "stacks":
                self._answers.gatherings.begin("stacks", lambda texts: answer(stacks_of(texts)))
            elif name == "threads":
                self._answers.gatherings.begin(
                    "threads", lambda texts: answer({"done": name, "threads": threads_of(texts)})
                )
            else:
                answer(self._execute(name, command))
        except AwokeError as error:
            answer({"error": str(error)})

    def _record(self, note: protocol.Noted, peer: Peer | None) -> None:
        """Hands the record of a command to a node, unless a node has sent the command: it has recorded it."""
        pids = {each.pidfd.pid for each in self._nodes.values() if each.pidfd is not None}
        if note.verb not in audited.VERBS | audited.ACTS or (peer is not None and peer.pid in pids):
            return
        up = [each for each in self._nodes.values() if each.state is NodeState.UP and each.control is not None]
        for node in up:
            assert node.control is not None
            with contextlib.suppress(OSError):  # Its buffer is full: another one may take it.
                node.control.send(protocol.encode(note))
                return
        logger.warning("no node is up to record the command %s of %s", note.verb, note.who)

    def _reload(self, answer: Any, *, waits: bool) -> None:
        """Begins a reload, and answers when it has ended, or at once: a node that asks is replaced by it."""

        def end(why: str | None) -> None:
            if waits:
                answer({"done": "reload"} if why is None else {"failed": why})

        if not self._host.reload(end):
            raise ConfigError("a reload is under way already, or the swarm starts or stops", "reload")
        if not waits:
            answer({"done": "reload"})

    def _execute(self, name: str, command: dict[str, Any]) -> dict[str, Any]:
        match name:
            case "status":
                return self._status()
            case "stop":
                self._host.stop()
            case "quiet":
                self._host.quiet()
            case "scale":
                self._host.scale(command_lines.number_of(command, "nodes", least=1, most=NODES_MAX))
            case "dump":
                node = command_lines.number_of(command, "node")
                if not self._host.dump(node):
                    raise ConfigError(f"there is no node {node}", "node")
            case _:
                raise ConfigError(f"there is no command {reprlib.repr(name)}", "command")
        return {"done": name}

    def _status(self) -> dict[str, Any]:
        return {
            "target": self._options.target,
            "pid": os.getpid(),
            "uptime_s": round(time.monotonic() - self._began_s, 1),
            "memory_bytes": linux.resident_bytes(os.getpid()),
            "wakes": self._loop.wakes,
            **self._host.status(),
            "nodes": [self._nodes[number].status() for number in sorted(self._nodes)],
        }

    def log_status(self) -> None:
        """Writes the state of the swarm to the log."""
        logger.info("state: %s", command_lines.json_of(self._status()).decode())

    # HTTP.

    def _on_http(self, path: str, respond: Respond) -> None:
        match path:
            case "/live":
                # It says only that the loop turns. A restart of the process does not bring back lost brokers.
                respond(http.answer("200 OK", "alive\n"))
            case "/ready":
                why = self._why_not_ready()
                text = "ready\n" if why is None else f"not ready: {why}\n"
                respond(http.answer("200 OK" if why is None else "503 Service Unavailable", text))
            case "/health":
                self._answers.gatherings.begin("health", lambda texts: respond(self._health_page(texts)))
            case "/status":
                respond(http.answer("200 OK", command_lines.json_of(self._status()), "application/json"))
            case "/metrics":
                self._answers.gatherings.begin("metrics", lambda texts: respond(self._metrics_page(texts)))
            case "/threads":
                self._answers.gatherings.begin("threads", lambda texts: respond(threads_page(texts)))
            case _:
                paths = "/live, /ready, /health, /metrics, /threads and /status"
                respond(http.answer("404 Not Found", f"there are {paths}\n"))

    def _why_not_ready(self) -> str | None:
        """Returns the reason why the swarm processes no messages, as far as the supervisor knows; `None` if it does."""
        if self._host.is_stopping:
            return "the swarm stops"
        waiting = [node.number for node in self._nodes.values() if node.state is not NodeState.UP]
        if waiting or not self._nodes:
            return f"nodes {waiting}"
        quiet = [node.number for node in self._nodes.values() if node.is_quiet]
        if quiet:
            return f"nodes {quiet} are quiet: they begin no new jobs"
        away = [f"node {number}: {node.why_not_ready}" for number, node in self._nodes.items() if node.why_not_ready]
        return "; ".join(away) or None

    def _health_page(self, texts: Mapping[int, str]) -> bytes:
        reasons = health_of(self._nodes, texts)
        body = command_lines.json_of({"is_healthy": not reasons, "reasons": reasons})
        return http.answer("503 Service Unavailable" if reasons else "200 OK", body, "application/json")

    def _metrics_page(self, texts: Mapping[int, str]) -> bytes:
        text = merged(texts) + of_nodes(self._nodes)
        return http.answer("200 OK", text, "text/plain; version=0.0.4; charset=utf-8")


def threads_page(texts: Mapping[int, str]) -> bytes:
    """Returns the threads of all nodes for an HTTP client."""
    return http.answer("200 OK", command_lines.json_of(threads_of(texts)), "application/json")
