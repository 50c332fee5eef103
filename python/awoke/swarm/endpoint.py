"""The HTTP endpoint of a swarm: health, metrics and threads of all nodes, and the state of the swarm."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TypeVar

import msgspec

from awoke.observe.web import http
from awoke.observe.web.http import HttpListener
from awoke.observe.web.listener import Respond
from awoke.observe.web.loop import Loop
from awoke.operate.commands import lines
from awoke.operate.commands.views import CommandResult, OperatorCommand
from awoke.swarm.commands import SwarmCommands
from awoke.swarm.node_handle import NodeHandle
from awoke.swarm.nodes import NodeState
from awoke.swarm.options import SwarmOptions
from awoke.swarm.questions import Questions, of_all

logger = logging.getLogger(__name__)

Decoded = TypeVar("Decoded")


class SwarmEndpoint:
    """Listens at `metrics_port`, where that is set. For the supervisor's thread; does not block."""

    def __init__(self, options: SwarmOptions, loop: Loop, questions: Questions, commands: SwarmCommands) -> None:
        self._options, self._loop, self._questions, self._commands = options, loop, questions, commands
        self._nodes = questions.nodes
        self._listener: HttpListener | None = None

    def open(self) -> None:
        """Opens the port.

        Raises:
            ConfigError: It is taken.
        """
        if self._options.metrics_port is not None:
            host = self._options.metrics_host
            web = http.listening_socket(host, self._options.metrics_port)
            logger.info("health and metrics at http://%s", http.authority(host, web.getsockname()[1]))
            names = http.names_in(self._options.metrics_allowed_hosts, host)
            self._listener = HttpListener(self._loop, web, names, self._on_http)

    def close(self) -> None:
        """Closes the port."""
        if self._listener is not None:
            self._listener.close()

    def _on_http(self, path: str, respond: Respond) -> None:
        match path:
            case "/live":
                # It says only that the loop turns. A restart of the process does not bring back lost brokers.
                respond(http.answer("200 OK", "alive\n"))
            case "/ready":
                why = self.why_not_ready()
                text = "ready\n" if why is None else f"not ready: {why}\n"
                respond(http.answer("200 OK" if why is None else "503 Service Unavailable", text))
            case "/health":
                self._questions.tell("health", lambda results, silent: respond(self._health_page(texts_of(results))))
            case "/status":
                respond(http.answer("200 OK", lines.json_of(self._commands.status()), "application/json"))
            case "/metrics":
                self._questions.tell("metrics", lambda results, silent: respond(self._metrics_page(texts_of(results))))
            case "/threads":
                self._questions.tell("threads", lambda results, silent: respond(threads_page(results)))
            case _:
                paths = "/live, /ready, /health, /metrics, /threads and /status"
                respond(http.answer("404 Not Found", f"there are {paths}\n"))

    def why_not_ready(self) -> str | None:
        """Returns the reason why the swarm processes no messages, as far as the supervisor knows; `None` if it does."""
        if self._commands.is_stopping:
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
        body = lines.json_of({"is_healthy": not reasons, "reasons": reasons})
        return http.answer("503 Service Unavailable" if reasons else "200 OK", body, "application/json")

    def _metrics_page(self, texts: Mapping[int, str]) -> bytes:
        text = merged(texts) + of_nodes(self._nodes)
        return http.answer("200 OK", text, "text/plain; version=0.0.4; charset=utf-8")


def threads_page(results: Mapping[int, CommandResult]) -> bytes:
    """Returns the threads of all nodes for an HTTP client."""
    threads = of_all(OperatorCommand(verb="threads", who="", via=""), results).threads
    return http.answer("200 OK", lines.json_of(threads), "application/json")


def texts_of(results: Mapping[int, CommandResult]) -> dict[int, str]:
    """Returns the text of each node."""
    return {number: result.text for number, result in results.items()}


def merged(texts: Mapping[int, str]) -> str:
    """Returns the metrics of all nodes in Prometheus's text format, family by family."""
    heads: dict[str, list[str]] = {}
    samples: dict[str, list[str]] = {}
    for node, text in texts.items():
        family = ""
        for line in text.splitlines():
            if line.startswith("# ") and line.count(" ") >= 2:
                _, kind, family = line.split(" ", 3)[:3]
                head = heads.setdefault(family, [])
                if not any(each.startswith(f"# {kind} ") for each in head):
                    head.append(line)
            elif line:
                samples.setdefault(family, []).append(_with_node(line, node))
    lines = []
    for family, head in heads.items():
        lines += [*head, *samples.get(family, [])]
    return "\n".join(lines) + "\n" if lines else ""


def _with_node(line: str, node: int) -> str:
    name, brace, rest = line.partition("{")
    if brace:
        return f'{name}{{node="{node}",{rest}'
    name, _, value = line.partition(" ")
    return f'{name}{{node="{node}"}} {value}'


def of_nodes(nodes: Mapping[int, NodeHandle]) -> str:
    """Returns the supervisor's own metrics of its nodes, in Prometheus's text format."""
    metrics: list[tuple[str, str, str, Callable[[NodeHandle], int]]] = [
        ("awoke_node_up", "gauge", "1 when the node is up.", lambda node: int(node.state is NodeState.UP)),
        ("awoke_node_restarts_total", "counter", "Restarts after a failure.", lambda node: node.restarts),
        ("awoke_node_memory_bytes", "gauge", "Resident memory of the node.", lambda node: node.memory_bytes),
    ]
    lines = []
    for name, kind, text, value in metrics:
        lines += [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
        lines += [f'{name}{{node="{number}"}} {value(node)}' for number, node in sorted(nodes.items())]
    return "\n".join(lines) + "\n"


def health_of(nodes: Mapping[int, NodeHandle], texts: Mapping[int, str]) -> list[str]:
    """Returns the faults of a swarm, one sentence each: of nodes that answered, and of nodes that did not."""
    reasons = []
    for number, node in sorted(nodes.items()):
        if number in texts:
            said = decoded(texts[number], list[str])
            reasons += [f"node {number}: {each}" for each in (["can't be understood"] if said is None else said)]
        elif node.state is NodeState.UP:
            reasons.append(f"node {number}: does not answer")
        else:
            reasons.append(f"node {number}: is {node.state.shown}")
    return reasons if nodes else ["there is no node"]


def decoded(text: str, kind: type[Decoded]) -> Decoded | None:
    """Returns the value of a node's JSON; `None` if it has another type."""
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, RecursionError):
        return None
