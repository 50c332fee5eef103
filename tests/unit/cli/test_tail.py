"""`awoke tail`: where it starts and stops, and how a message is printed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

import awoke
from awoke.cli import tail
from tests.support.messages import StoredMessage
from tests.unit.cli.fakes import run

MESSAGES: list[Any] = [
    StoredMessage(b"k\t1", b"one\n", [("trace", b"a"), ("trace", None)], topic="orders"),
    StoredMessage(None, None, [], topic="orders", offset=8, timestamp_ms=None),
    StoredMessage(b"", b"\xff\\", [("\u2028", b"\x9b")], topic="orders", offset=9),
]


class FakeReader:
    """A reader whose topic has the messages above; without an end, the operator interrupts it."""

    made: list[tuple[str, dict[str, Any]]] = []

    def __init__(self, topic: str, **options: Any) -> None:
        self.made.append((topic, options))

    def __enter__(self) -> FakeReader:
        return self

    def __exit__(self, *_: object) -> None: ...

    def __iter__(self) -> Iterator[Any]:
        yield from MESSAGES
        raise KeyboardInterrupt

    def read_until_end(self) -> Iterator[Any]:
        return iter(MESSAGES)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    """The readers that a command makes, with their options."""
    monkeypatch.setattr(awoke, "Reader", FakeReader)
    monkeypatch.setattr(FakeReader, "made", [])
    return FakeReader.made


@pytest.mark.parametrize(
    ("options", "start"),
    [
        ([], "latest"),
        (["--until-end"], "earliest"),
        (["--start", "earliest"], "earliest"),
        (["--start", "42", "--until-end"], 42),
        (["--last", "5", "--start", "42"], -5),
        (["--start", "2026-01-31T12:00Z"], datetime(2026, 1, 31, 12, tzinfo=UTC)),
        (["--start", "soon"], "soon"),
    ],
)
def test_reading_begins_where_the_options_say(
    options: list[str], start: Any, made: list[tuple[str, dict[str, Any]]]
) -> None:
    run("tail", "orders", *options, "-b", "a:1", "--kafka", "acks=1")
    assert made == [("orders", {"bootstrap_servers": "a:1", "start": start, "kafka": {"acks": "1"}})]


def test_a_time_without_a_zone_is_in_the_zone_of_the_machine() -> None:
    assert tail.place("2026-01-31T12:00") == datetime(2026, 1, 31, 12).astimezone()


@pytest.mark.parametrize(
    ("options", "lines"), [(["--count", "0"], 0), (["--count", "2"], 2), (["--count", "9"], 3), ([], 3)]
)
@pytest.mark.parametrize("until_end", [[], ["--until-end"]], ids=["without end", "until the end"])
def test_reading_stops_after_the_count_at_the_end_or_by_an_interrupt(
    options: list[str], lines: int, until_end: list[str], made: list[tuple[str, dict[str, Any]]]
) -> None:
    done = run("tail", "orders", *options, *until_end)
    assert (done.exit_code, len(done.output.splitlines())) == (0, lines)


def test_a_value_is_one_line_with_its_key_before_it_if_that_is_wanted(made: list[Any]) -> None:
    assert run("tail", "orders", "--until-end").output == "one\\n\n\n\\xff\\\\\n"
    assert run("tail", "orders", "--until-end", "--keys").output == "k\\t1\tone\\n\n\t\n\t\\xff\\\\\n"


def test_bytes_are_printed_unchanged_for_other_programs() -> None:
    assert [tail.raw_of(each, False) for each in MESSAGES] == [b"one\n", b"", b"\xff\\"]
    assert [tail.raw_of(each, True) for each in MESSAGES] == [b"k\t1\tone\n", b"\t", b"\t\xff\\"]


def test_a_document_has_all_parts_of_a_message(made: list[Any]) -> None:
    lines = run("tail", "orders", "--until-end", "--json").output.splitlines()
    assert all(line.isprintable() for line in lines)
    first, second, third = map(json.loads, lines)
    assert first == {
        "topic": "orders",
        "partition": 0,
        "offset": 7,
        "timestamp_ms": 1_760_000_000_000,
        "key": "k\t1",
        "headers": [["trace", "a"], ["trace", None]],
        "value": "one\n",
    }
    assert (second["key"], second["value"], second["timestamp_ms"]) == (None, None, None)
    assert (third["key"], third["value"], third["headers"]) == ("", "\\xff\\", [["\u2028", "\\x9b"]])


def test_bytes_are_not_for_json(made: list[Any]) -> None:
    done = run("tail", "orders", "--raw", "--json")
    assert (done.exit_code, made) == (2, [])
    assert "--raw" in done.output
