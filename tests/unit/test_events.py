"""Events: each that awoke emits has a level, and the log shows it at that level."""

from __future__ import annotations

import ast
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from awoke.broker_lines import BrokerLines
from awoke.events import LEVELS, Event, Events, log
from awoke.runtime import recovery

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGE = REPOSITORY / "python" / "awoke"

COMPUTED = {
    ("events.py", "name"): (),
    ("runtime/executor.py", "messages.{}"): ("messages.expired", "messages.filtered"),
    ("runtime/stopping.py", "name"): (),
    ("runtime/recovery.py", "event"): (recovery.SKIPPED, recovery.DEAD_LETTERED),
}
"""Names that are no constant where they are emitted; those of the engine are read from the bridge."""

LEVEL_OF_ITS_OWN = {"client.log"}


def emitted() -> Iterator[str]:
    """The name of every event that is emitted in the package."""
    for file in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "emit":
                yield from names_of(node.args[0], str(file.relative_to(PACKAGE)))


def names_of(name: ast.expr, file: str) -> tuple[str, ...]:
    if isinstance(name, ast.Constant):
        return (str(name.value),)
    if isinstance(name, ast.JoinedStr):
        return COMPUTED[
            file, "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in name.values)
        ]
    assert isinstance(name, ast.Name), f"{file}: an event's name is a constant"
    return COMPUTED[file, name.id]


def test_every_event_of_the_package_has_a_level() -> None:
    names = set(emitted())
    assert {"lane.failed", "rpc.failed", "rpc.refused", "job.failed", "message.skipped"} <= names
    assert names - set(LEVELS) == set()


def test_every_event_of_the_engine_has_a_level() -> None:
    source = (REPOSITORY / "crates" / "bridge" / "src" / "events.rs").read_text()
    names = set(re.findall(r'"([a-z]+\.[a-z][a-z_]*)"', source))
    assert "commit.failed" in names
    assert names - set(LEVELS) - LEVEL_OF_ITS_OWN == set()


@pytest.mark.parametrize("name", ["lane.failed", "rpc.failed", "rpc.refused"])
def test_what_fails_in_user_code_or_is_refused_is_a_warning_at_least(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="awoke.events"):
        Events().emit(name, error=ValueError("no good"))
    (record,) = caplog.records
    assert record.levelno >= logging.WARNING
    assert name in record.getMessage()


def test_an_event_of_user_code_is_logged_for_debugging(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="awoke.events"):
        log(Event("shop.opened", {}), BrokerLines())
    assert [record.levelno for record in caplog.records] == [logging.DEBUG]


@pytest.mark.parametrize(("partitions", "level"), [([], logging.DEBUG), ([("orders", 0)], logging.INFO)])
def test_a_rebalance_that_changes_nothing_is_for_debugging(
    partitions: list[tuple[str, int]], level: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, logger="awoke.events"):
        log(Event("partitions.assigned", {"client": "shop", "partitions": partitions}), BrokerLines())
    assert [record.levelno for record in caplog.records] == [level]
