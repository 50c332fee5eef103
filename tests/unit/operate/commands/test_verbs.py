"""The table of verbs, and the one check of a command."""

from __future__ import annotations

from typing import Any

import pytest

from awoke.errors import ConfigError
from awoke.operate.commands.verbs import REMOTE, VERBS, allowed, checked, checked_text
from awoke.settings import load
from tests.support.python_syntax import REPOSITORY

PLACE: dict[str, Any] = {"topic": "orders", "partition": 0}


def test_arguments_that_are_left_out_are_not_there() -> None:
    assert checked("pause", {**PLACE, "group": None, "durable": True}) == {**PLACE, "durable": True}
    assert checked("seek", {**PLACE, "offset": -2}) == {**PLACE, "offset": -2}
    assert checked("quiet", {}) == {}


@pytest.mark.parametrize(
    ("verb", "arguments", "text"),
    [
        ("explode", {}, "there is no command 'explode'"),
        ("pause", {"topic": "orders"}, "pause needs the argument 'partition'"),
        ("quiet", {"nodes": 3}, "quiet has no argument 'nodes'; it has none"),
        ("pause", {**PLACE, "x" * 5_000: 1}, "pause has no argument 'xx"),
        ("x" * 5_000, {}, "there is no command 'xx"),
        ("skip", {**PLACE, "offset": 10**30}, "offset must be an integer from 0"),
        ("skip", {**PLACE, "offset": {}}, "offset must be an integer from 0"),
        ("skip", PLACE, "skip needs the argument 'offset'"),
        ("dump", {"node": "1"}, "node must be an integer from 0"),
        ("scale", {"nodes": 1.5}, "nodes must be an integer from 1"),
        ("resume", {**PLACE, "group": ""}, "group must be a string of 1 to 1000 characters"),
        ("resume", {**PLACE, "topic": ["t"]}, "topic must be a string of 1"),
        ("skip", {**PLACE, "offset": -2}, "offset must be an integer from 0"),
        ("skip", {**PLACE, "offset": True}, "offset must be an integer from 0"),
        ("seek", PLACE, "seek needs one of offset and timestamp_ms"),
        ("seek", {**PLACE, "offset": 1, "timestamp_ms": 1}, "seek needs one of offset and timestamp_ms"),
        ("scale", {"nodes": 0}, "nodes must be an integer from 1"),
        ("pause", {**PLACE, "durable": "yes"}, "durable must be true or false"),
        ("pause", {"topic": "x" * 250, "partition": 0}, "topic must be a string of 1 to 249 characters"),
    ],
)
def test_a_wrong_command_is_refused_with_the_reason(verb: str, arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text) as refused:
        checked(verb, arguments)
    assert len(str(refused.value)) < 300


def test_what_a_person_types_gets_its_kind() -> None:
    words = {"topic": "7", "partition": "3", "durable": "true"}
    assert VERBS["pause"].parsed(words) == {"topic": "7", "partition": 3, "durable": True}
    assert VERBS["seek"].parsed({"topic": "t", "partition": "0", "offset": "-2"})["offset"] == -2
    for wrong in ({"partition": "x"}, {"partition": "-1"}, {"partition": "9" * 5_000}, {"other": "1"}):
        with pytest.raises(ConfigError):
            VERBS["resume"].parsed({"topic": "t", "partition": "0", **wrong})


def test_the_page_lists_the_verbs_that_a_console_may_send() -> None:
    page = (REPOSITORY / "docs" / "console.md").read_text()
    table = page.partition("| Command | Arguments | Effect |")[2].partition("\n\n")[0]
    rows = {row[0].strip(" `"): row[1] for row in (line.split("|")[1:] for line in table.splitlines()[2:])}
    assert list(rows) == list(REMOTE)
    for verb in REMOTE.values():
        names = {"timestamp_ms": "time"}
        for parameter in verb.parameters:
            assert names.get(parameter.name, parameter.name) in rows[verb.name]


def test_an_app_allows_no_command_all_of_them_or_some() -> None:
    assert allowed(load({}).values) == frozenset()
    assert allowed(load({"console_commands": True}).values) == set(REMOTE)
    assert allowed(load({"console_commands": "pause, resume"}).values) == {"pause", "resume"}
    for wrong in ("puase", "pause,dump"):
        with pytest.raises(ConfigError, match=r"setting 'console_commands': '.*' is none of quiet, stop"):
            allowed(load({"console_commands": wrong}).values)


def test_a_reason_is_a_text_that_is_not_empty_and_not_long() -> None:
    assert checked_text("reason", " it is stuck ") == "it is stuck"
    for wrong in (" ", "x" * 1_001):
        with pytest.raises(ConfigError, match="reason"):
            checked_text("reason", wrong)
