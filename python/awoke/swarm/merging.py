"""One answer made from the answers of all nodes: metrics with the label `node`, health, and threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from awoke.swarm.node_handle import NodeHandle
from awoke.swarm.nodes import NodeState

Decoded = TypeVar("Decoded")


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


def threads_of(texts: Mapping[int, str]) -> list[dict[str, Any]]:
    """Returns the threads of all nodes, each with its node."""
    found = {node: decoded(text, list[dict[str, str]]) or [] for node, text in sorted(texts.items())}
    return [{"node": node, **each} for node, entries in found.items() for each in entries]


class Stack(msgspec.Struct):
    """The stack of a thread, as a node tells it."""

    owner: str
    name: str
    lines: list[str]


def stacks_of(texts: Mapping[int, str]) -> dict[str, Any]:
    """Returns the answer to `stacks`: those of all nodes that have answered, each with its node."""
    found = {node: decoded(text, list[Stack]) or [] for node, text in sorted(texts.items())}
    if not found:
        return {"failed": "no node has answered"}
    stacks = [{"node": node, **msgspec.structs.asdict(each)} for node, entries in found.items() for each in entries]
    nodes = f"{len(found)} nodes" if len(found) > 1 else f"node {next(iter(found))}"
    return {"done": "stacks", "text": f"{len(stacks)} threads of {nodes}", "stacks": stacks}


def decoded(text: str, kind: type[Decoded]) -> Decoded | None:
    """Returns the value of a node's JSON; `None` if it has another type."""
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, RecursionError):
        return None
