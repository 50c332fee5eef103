"""The commands of a console, and the check of their arguments."""

from __future__ import annotations

from typing import Any

import pytest

from awoke.operate.commands.verbs import checked, checked_text
from awoke.rpc.errors import InvalidArgument

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
        ("quiet", {"nodes": 3}, "quiet has no argument 'nodes'"),
        ("skip", {**PLACE, "offset": -2}, "offset must be a whole number from 0"),
        ("skip", {**PLACE, "offset": True}, "offset must be a whole number from 0"),
        ("seek", PLACE, "seek needs an offset or a time"),
        ("seek", {**PLACE, "offset": 1, "timestamp_ms": 1}, "seek needs an offset or a time"),
        ("scale", {"nodes": 0}, "nodes must be a whole number from 1"),
        ("pause", {**PLACE, "durable": "yes"}, "durable must be true or false"),
        ("pause", {"topic": "x" * 250, "partition": 0}, "topic must be a text of 1 to 249 characters"),
    ],
)
def test_a_wrong_command_is_refused_with_the_reason(verb: str, arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidArgument, match=text):
        checked(verb, arguments)


def test_a_reason_is_a_text_that_is_not_empty_and_not_long() -> None:
    assert checked_text("reason", " it is stuck ") == "it is stuck"
    for wrong in (" ", "x" * 1_001):
        with pytest.raises(InvalidArgument, match="reason"):
            checked_text("reason", wrong)
