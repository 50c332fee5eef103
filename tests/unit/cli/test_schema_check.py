"""The verdict about a schema: what it is compared with, and the words."""

from __future__ import annotations

from typing import Any

import pytest

from awoke.cli.schema_check import Incompatibility, Verdict, chosen, plain

AVRO_REASON = (
    "{errorType:'READER_FIELD_MISSING_DEFAULT_VALUE', description:'The field 'b' at path '/fields/1' in the new schema "
    "has no default value and is missing in the old schema', additionalInfo:'b'}"
)
"""As Confluent's registry writes it, and the next one as it writes it of JSON."""
JSON_REASON = '{errorType:"TYPE_CHANGED", description:"A type at path \'#/a\' is different"}'


@pytest.mark.parametrize(
    ("version", "level", "compared"),
    [
        (None, "BACKWARD", (3,)),
        (None, "FULL_TRANSITIVE", (1, 2, 3)),
        ("latest", "FULL_TRANSITIVE", (3,)),
        ("all", "BACKWARD", (1, 2, 3)),
        (2, "BACKWARD", (2,)),
    ],
)
def test_a_schema_is_compared_with_the_versions_that_were_asked_for(
    version: Any, level: str, compared: tuple[int, ...]
) -> None:
    assert chosen(version, level, (1, 2, 3)) == compared


def test_a_subject_without_versions_has_none_to_compare_with() -> None:
    assert chosen(None, "BACKWARD", ()) == chosen("all", "BACKWARD", ()) == ()
    assert chosen(4, "BACKWARD", ()) == (4,)


def verdict(level: str = "BACKWARD", versions: tuple[int, ...] = (3,), *reasons: Incompatibility) -> Verdict:
    """Returns a verdict about a subject whose latest version is 3."""
    return Verdict("orders-value", level, versions, 3, reasons)


@pytest.mark.parametrize(
    ("level", "rule"),
    [
        ("BACKWARD", "readers with this schema must be able to read what was written with version 3"),
        ("FORWARD", "readers with version 3 must be able to read what is written with this schema"),
        ("FULL", "this schema and version 3 must each be able to read what was written with the other"),
        ("NONE", "the registry compares nothing"),
        ("SIDEWAYS", "awoke does not know this level; the registry decides"),
    ],
)
def test_the_rule_of_each_level_is_said(level: str, rule: str) -> None:
    assert list(verdict(level).lines("a.avsc")) == [
        "compatible: a.avsc with version 3 (the latest) of orders-value",
        f"rule {level}: {rule}",
    ]


def test_a_transitive_level_has_its_rule_for_each_version() -> None:
    assert list(verdict("BACKWARD_TRANSITIVE", (1, 2, 3)).lines("a.avsc")) == [
        "compatible: a.avsc with versions 1 to 3 of orders-value",
        "rule BACKWARD_TRANSITIVE: readers with this schema must be able to read what was written with each of them",
    ]


def test_reasons_come_with_their_version_where_there_are_several() -> None:
    lines = list(
        verdict(
            "FULL", (1, 2, 3), Incompatibility(1, "no a"), Incompatibility(1, "no b"), Incompatibility(3, "no c")
        ).lines("a.avsc")
    )
    assert lines[0] == "not compatible: a.avsc with versions 1, 3 of orders-value"
    assert lines[2:] == ["- version 1: no a", "- version 1: no b", "- version 3: no c"]
    lines = list(verdict("FULL", (2,), Incompatibility(2, "no a")).lines("a.avsc"))
    assert (lines[0], lines[2]) == ("not compatible: a.avsc with version 2 of orders-value", "- no a")


def test_a_first_version_needs_no_rule() -> None:
    (line,) = Verdict("orders-value", "FULL", (), None, ()).lines("a.avsc")
    assert line == "compatible: orders-value has no version yet, and a.avsc would be the first"


def test_reasons_of_confluents_registry_lose_what_wraps_them() -> None:
    messages = [AVRO_REASON, JSON_REASON, "{oldSchemaVersion: 1}", "{oldSchema: '{}'}", "{compatibility: 'BACKWARD'}"]
    assert plain(messages) == [
        "The field 'b' at path '/fields/1' in the new schema has no default value and is missing in the old schema",
        "A type at path '#/a' is different",
    ]


def test_reasons_of_other_registries_stay_as_they_are() -> None:
    assert plain(["/a: no"]) == ["/a: no"]
    assert plain(["{errorType:'NEW_ONE', description:''}"]) == ["NEW_ONE"]
    assert plain(["{oldSchemaVersion: 1}"]) == ["the registry gives no reason"]
    assert plain([]) == []
