"""Compatibility levels: the versions that count, the direction of each, and the levels of subjects."""

from __future__ import annotations

import pytest

from awoke.payloads.registry.compatibility import LEVELS
from awoke.payloads.registry.schema import Schema
from awoke.testing.registry.compatibility import Earlier, Levels, compared, reasons
from awoke.testing.registry.kinds import parse
from awoke.testing.registry.refusal import Refusal

INT, LONG = (parse(Schema(f'"{name}"'), {}) for name in ("int", "long"))
VERSIONS = [Earlier(1, INT), Earlier(3, LONG)]


@pytest.mark.parametrize(
    ("level", "numbers"),
    [
        ("NONE", []),
        *[(level, [3]) for level in ("BACKWARD", "FORWARD", "FULL")],
        *[(level, [1, 3]) for level in ("BACKWARD_TRANSITIVE", "FORWARD_TRANSITIVE", "FULL_TRANSITIVE")],
    ],
)
def test_a_level_counts_the_latest_version_or_all(level: str, numbers: list[int]) -> None:
    assert level in LEVELS
    assert [each.number for each in compared(level, VERSIONS)] == numbers
    assert list(compared(level, [])) == []


def test_a_level_says_which_schema_reads() -> None:
    wider, narrower = (LONG, [Earlier(1, INT)]), (INT, [Earlier(1, LONG)])
    assert reasons("BACKWARD", *wider) == reasons("FORWARD", *narrower) == reasons("NONE", *narrower) == []
    text = "/: the reader expects `int`, the writer may send `long`"
    assert reasons("BACKWARD", *narrower) == [f"{text} (reader: the new schema, writer: version 1)"]
    assert reasons("FORWARD", *wider) == [f"{text} (reader: version 1, writer: the new schema)"]
    assert reasons("FULL", *wider) == reasons("FORWARD", *wider)
    assert reasons("FULL_TRANSITIVE", *narrower) == reasons("BACKWARD_TRANSITIVE", *narrower)


def test_a_subject_has_its_own_level_or_the_common_one() -> None:
    levels = Levels("backward")
    assert (levels.common, levels.own("s"), levels.applied_to("s")) == ("BACKWARD", None, "BACKWARD")
    assert levels.set("full", "s") == "FULL"
    assert levels.set("NONE") == "NONE"
    assert (levels.common, levels.own("s"), levels.applied_to("t")) == ("NONE", "FULL", "NONE")


def test_a_level_is_reset_to_the_one_before() -> None:
    levels = Levels("BACKWARD")
    levels.set("FULL", "s")
    levels.set("NONE")
    assert levels.reset("s") == "FULL"
    assert levels.reset() == "NONE"
    assert levels.applied_to("s") == levels.common == "BACKWARD"
    levels.set("FULL", "t")
    levels.forget("t")
    levels.forget("u")
    assert levels.own("t") is None
    with pytest.raises(Refusal) as raised:
        levels.reset("t")
    assert raised.value.code == 40401


@pytest.mark.parametrize("level", ["", "BACKWARDS", None, 5])
def test_an_unknown_level_is_refused(level: object) -> None:
    levels = Levels("BACKWARD")
    with pytest.raises(Refusal) as raised:
        levels.set(level, "s")
    assert raised.value.code == 42203
    assert levels.own("s") is None
