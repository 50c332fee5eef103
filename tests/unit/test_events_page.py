"""docs/events.md names every event of the code, with its fields and its level."""

from __future__ import annotations

import ast
import logging
import re
from pathlib import Path

from awoke.events import LEVELS
from tests.unit.test_events import COMPUTED, LEVEL_OF_ITS_OWN, PACKAGE, REPOSITORY

PAGE = (REPOSITORY / "docs" / "events.md").read_text()
ROW = re.compile(r"^\| `([a-z_]+\.[a-z_]+)` \| ([a-z ]+) \| ([^|]*) \|", re.MULTILINE)
ROWS = {name: (level, set(re.findall(r"`(\w+)`", fields))) for name, level, fields in ROW.findall(PAGE)}
ENGINE = (REPOSITORY / "crates" / "bridge" / "src" / "events.rs").read_text()
SET_BY = {"set_at": {"topic", "partition"}, "set_code": {"code", "code_name"}, "set_partitions": {"partitions"}}
CAREFUL = {"topic", "partition", "offset", "deaths", "until_offset"}
"""What the event of `Careful` has by unpacking."""


def emitted_in(file: Path) -> dict[str, set[str]]:
    """The events that a file of the package emits under constant names, with their fields."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(ast.parse(file.read_text())):
        is_emit = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "emit"
        if not is_emit or not isinstance(node, ast.Call):
            continue
        name, fields = node.args[0], {each.arg for each in node.keywords if each.arg is not None}
        names = [str(name.value)] if isinstance(name, ast.Constant) else computed(file, name)
        for each in names:
            found.setdefault(each, set()).update(fields | (CAREFUL if each == "partition.careful" else set()))
    return found


def computed(file: Path, name: ast.expr) -> list[str]:
    key = name.id if isinstance(name, ast.Name) else "messages.{}"
    return list(COMPUTED[str(file.relative_to(PACKAGE)), key])


def of_engine() -> dict[str, set[str]]:
    """The events that the bridge converts, with their fields."""
    body = ENGINE.partition("let name = match")[2].partition("fn set_at")[0]
    found: dict[str, set[str]] = {}
    for arm in re.split(r"\n        What::", body)[1:]:
        arm = arm.partition("Ok((event.client")[0]
        (name,) = re.findall(r'"([a-z_]+\.[a-z_]+)"', arm)
        fields = set(re.findall(r'set_item\("(\w+)"', arm))
        for function, more in SET_BY.items():
            fields |= more if f"{function}(" in arm else set()
        found[name] = fields | {"client"}
    return found


def test_the_page_has_every_event_with_its_fields() -> None:
    emitted = of_engine()
    for file in sorted(PACKAGE.rglob("*.py")):
        emitted.update(emitted_in(file))
    assert set(LEVELS) | LEVEL_OF_ITS_OWN == set(emitted)
    assert {name: fields for name, (_, fields) in ROWS.items()} == emitted


def test_the_page_has_the_level_of_every_event() -> None:
    levels = {name: logging.getLevelName(level).lower() for name, level in LEVELS.items()}
    assert {name: level for name, (level, _) in ROWS.items() if name not in LEVEL_OF_ITS_OWN} == levels
