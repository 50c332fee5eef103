"""Replays a recording through the code of a route, record by record; what it makes of each is a document.

Documents are written into a file as JSON lines, and compared with those of earlier code.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from awoke.app.app import App
from awoke.declare.routing import Route
from awoke.testing.memory.process import route_of
from awoke.testing.memory.producing import Sent
from awoke.testing.recordings.lines import read_lines, write_lines, wrong_line
from awoke.testing.recordings.recording import Recording
from awoke.testing.route_results import Failed, Outcome, Place, is_letter
from awoke.testing.route_runs import LIMIT_S, on_own_loop, run_flow
from awoke.text.json_bytes import json_of_bytes

KIND, VERSION = "awoke_results", 1

Document = dict[str, Any]


def replay(recording: Recording, app: App, *, topic: str | None = None, group: str | None = None) -> list[Document]:
    """Runs the records through the app's route of their topic, or of another one; returns a document for each.

    Each record is a job of its own, so that it is known what it has led to. What is sent behind the last record, as by
    the hook `revoked`, is a last document without an offset. Records never count as expired. Blocks as long as the
    handlers do.

    Raises as `run_route`.
    """
    route = one_by_one(route_of(app, topic or recording.topic, group))
    sent: list[tuple[Place | None, Sent]] = []
    flow = run_flow(app, route, recording.messages(), LIMIT_S, lambda place, each: sent.append((place, each)))
    run = on_own_loop(flow, "arun_route", is_async=route.is_async)
    outputs: dict[Place | None, list[Document]] = defaultdict(list)
    for place, each in sent:
        if not is_letter(route, each):
            outputs[place].append(_output(each))
    errors = {(each.partition, each.offset): each for each in run.failures}
    made = [_made(each, errors.get((each.partition, each.offset)), outputs) for each in run.messages]
    late = outputs.get(None, [])
    return [*made, {"partition": None, "offset": None, "outputs": late}] if late else made


def one_by_one(route: Route) -> Route:
    """Returns the route with jobs of one message, none of which is expired."""
    found = copy.copy(route)
    found.batch = msgspec.structs.replace(route.batch, max_messages=1)
    found.flow = msgspec.structs.replace(route.flow, expire_s=None)
    return found


def _made(outcome: Outcome, failed: Failed | None, outputs: dict[Place | None, list[Document]]) -> Document:
    error = None
    if failed is not None and outcome.state != "handled":
        error = f"{type(failed.error).__qualname__}: {failed.error}"
    return {
        "partition": outcome.partition,
        "offset": outcome.offset,
        "state": outcome.state,
        "error": error,
        "outputs": outputs.get((outcome.partition, outcome.offset), []),
    }


def _output(sent: Sent) -> Document:
    return {
        "topic": str(sent.topic),
        "key": json_of_bytes(sent.key),
        "headers": [[name, json_of_bytes(value)] for name, value in sent.headers],
        "value": json_of_bytes(sent.data),
    }


def write_results(documents: Iterable[Document], path: Path) -> None:
    """Writes what was made of a recording, over an earlier file.

    Raises:
        ConfigError: it can't be written.
    """
    write_lines(path, [{KIND: VERSION}, *documents], replaces=True)


def read_results(path: Path) -> Sequence[Document]:
    """Reads what was made of a recording.

    Raises:
        ConfigError: the file can't be read, or holds something else; names the line.
    """
    lines = read_lines(path, KIND, VERSION)
    next(lines)
    found = []
    for number, document in lines:
        if not {"partition", "offset", "outputs"} <= document.keys() or not isinstance(document["outputs"], list):
            raise wrong_line(path, number, "it is no result")
        found.append(document)
    return found
