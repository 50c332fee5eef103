"""Commands and answers as lines of JSON, and their fields."""

from __future__ import annotations

from typing import Any

import pytest

import awoke
from awoke.operate.commands import lines as command_lines


def test_a_command_and_an_answer_are_one_line() -> None:
    assert command_lines.decoded(b'{"command": "status"}\n') == {"command": "status"}
    assert command_lines.encoded({"failed": "no\nway"}) == b'{"failed":"no\\nway"}\n'


@pytest.mark.parametrize("request_", [b"", b"[]", b"1", b"\xff", b"{"])
def test_a_request_that_is_no_object_is_refused(request_: bytes) -> None:
    with pytest.raises(awoke.ConfigError, match="no JSON object"):
        command_lines.decoded(request_)


def test_the_fields_of_a_place_are_read() -> None:
    command = {"topic": "t", "partition": 3, "offset": 42}
    assert command_lines.place_of(command) == ("t", 3)
    assert command_lines.offset_of(command) == 42


@pytest.mark.parametrize(
    "command",
    [
        {"partition": 0},
        {"topic": "", "partition": 0},
        {"topic": "t" * (command_lines.TOPIC_MAX + 1), "partition": 0},
        {"topic": "t"},
        {"topic": "t", "partition": -1},
        {"topic": "t", "partition": True},
        {"topic": "t", "partition": command_lines.PARTITION_MAX + 1},
    ],
)
def test_a_wrong_place_is_refused(command: dict[str, Any]) -> None:
    with pytest.raises(awoke.ConfigError, match="is no"):
        command_lines.place_of(command)


def test_control_characters_of_other_programs_are_escaped() -> None:
    assert command_lines.json_of({"name": "a\u009bb"}) == b'{"name":"a\\u009bb"}'
