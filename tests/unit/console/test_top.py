"""The state of `awoke top`: tables, keys and the commands that they complete."""

from __future__ import annotations

import msgspec

from awoke.console.top import Top, TopCommand
from awoke.console.views import AppView, Failing, NodeView, Partition, Reason, Report
from awoke.operate.commands.views import MAJOR


def view() -> AppView:
    return failing_view("k", "bad\x1b[2J")


def failing_view(key: str, error: str | None = None) -> AppView:
    """The state of an app with two partitions whose messages fail; all texts are those of the message."""
    at = [
        Partition(
            group="eu",
            topic="orders",
            partition=number,
            position=number,
            end_offset=9,
            failing=[
                Failing(offset=5, key_hash=key, attempts=3, error=error or key, since_ms=1, next_ms=9_000),
            ],
        )
        for number in range(2)
    ]
    report = Report(
        major=MAJOR,
        minor=0,
        node="host.1",
        app="shop",
        host="host",
        pid=1,
        started_at_ms=1,
        at_ms=1,
        sequence=1,
        state="running",
        groups=["eu"],
        partitions=at,
    )
    node = NodeView(
        node="host.1", at_ms=1, is_newer=False, is_silent=False, document=msgspec.Raw(msgspec.json.encode(report))
    )
    reason = Reason(
        kind="failing message",
        severity=50,
        text=f"it fails: {error or key}",
        advice="skip it",
        node="host.1",
        topic="orders",
        partition=1,
    )
    return AppView(app="shop", at_ms=1_000, nodes=[node], groups=[], errors=[], reasons=[reason])


def pressed(*keys: str) -> tuple[Top, TopCommand | None]:
    top, command = Top(view()), None
    for key in keys:
        command = top.press(key)
    return top, command


def test_control_characters_of_messages_are_made_visible() -> None:
    top, _ = pressed("4")
    assert [each.cells[-1] for each in top.rows()] == ["bad\\x1b[2J"] * 2


def test_a_row_is_looked_into_until_escape() -> None:
    top, _ = pressed("2", "enter", "down", "enter")
    assert (top.table, [each.subject.partition for each in top.rows()]) == ("lanes", [1])
    top.press("escape")
    assert len(top.rows()) == 2


def test_a_reason_is_looked_into() -> None:
    top, _ = pressed("enter")
    assert [each.subject[2:] for each in top.rows()] == [("orders", 1, 5)]


def test_rows_are_sorted_and_filtered() -> None:
    top, _ = pressed("3", "s", "s", "s", "r")
    assert [each.subject.partition for each in top.rows()] == [1, 0]
    for key in ("/", "x", "backspace", *"orders 1", "enter"):
        top.press(key)
    assert [each.subject.partition for each in top.rows()] == [1]


def test_durations_have_units_and_are_sorted_as_numbers() -> None:
    top, _ = pressed("4")
    assert {each.cells[5] for each in top.rows()} == {"again in 8 s"}
    (old,) = view().nodes
    nodes = [msgspec.structs.replace(old, node=f"host.{at}", at_ms=1_000_000 - at) for at in (119_000, 5_000, 9_999)]
    top, _ = pressed("2", "s", "s", "s")
    top.view = msgspec.structs.replace(view(), at_ms=1_000_000, nodes=nodes)
    assert [each.cells[2] for each in top.rows()] == ["5 s", "10 s", "2 min"]


def test_a_command_needs_a_row_and_a_reason() -> None:
    _, command = pressed("4", "x", "enter", *"it is bad", "enter")
    arguments = {"topic": "orders", "partition": 0, "offset": 5, "group": "eu"}
    assert command == TopCommand("host.1", "skip", "it is bad", arguments)
    top, command = pressed("2", "x", "y", "enter")
    assert command is None
    assert top.typing is None


def test_a_command_is_left_by_escape() -> None:
    top, command = pressed("3", "p", *"no", "escape", "enter")
    assert (command, top.pending, top.typing) == (None, None, None)


def test_q_ends_it() -> None:
    assert pressed("q")[0].is_over
