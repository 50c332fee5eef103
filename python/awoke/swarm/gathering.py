"""Metrics of all nodes as one text: each sample gets the label `node`."""

from __future__ import annotations

from collections.abc import Mapping


def merged(texts: Mapping[int, str]) -> str:
    """What the nodes said, in Prometheus's text format, family by family."""
    heads: dict[str, list[str]] = {}
    samples: dict[str, list[str]] = {}
    for node, text in texts.items():
        family = ""
        for line in text.splitlines():
            if line.startswith("# "):
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
