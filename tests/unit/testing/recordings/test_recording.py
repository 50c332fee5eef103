"""A recording in a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from awoke import ConfigError, testing
from awoke.testing.messages import MessageParts
from awoke.testing.recordings.recording import Recorded, Recording, in_order, read_recording, recorded, write_recording

RECORDS = [
    Recorded(0, MessageParts(3, b"v", b"k", [("h", b"\xff"), ("h", None)], 5)),
    Recorded(1, MessageParts(0, None, None, [], None)),
    Recorded(1, MessageParts(7, b"\xff", b"", [], 0)),
]


def test_a_recording_comes_back_from_its_file_byte_for_byte(tmp_path: Path) -> None:
    recording = Recording("orders", RECORDS, ["value:card"])
    write_recording(recording, tmp_path / "orders.rec")
    assert read_recording(tmp_path / "orders.rec") == recording


def test_the_format_is_one_line_for_each_record_behind_a_header(tmp_path: Path) -> None:
    write_recording(Recording("orders", RECORDS[:1]), tmp_path / "a")
    assert (tmp_path / "a").read_text().splitlines() == [
        '{"awoke_recording":1,"topic":"orders","masked":[]}',
        '{"partition":0,"offset":3,"timestamp_ms":5,"key":"k",'
        '"headers":[["h",{"base64":"/w=="}],["h",null]],"value":"v"}',
    ]


def test_records_are_messages_with_their_places() -> None:
    (first, *_, last) = Recording("orders", RECORDS).messages()
    assert (first.topic, first.partition, first.offset, first.value, first.key) == ("orders", 0, 3, b"v", b"k")
    assert first.headers == [("h", b"\xff"), ("h", None)]
    assert (last.partition, last.offset, last.timestamp_ms) == (1, 7, 0)


def test_a_message_is_recorded_with_all_of_its_parts() -> None:
    message = testing.message(b"v", key=b"k", headers={"h": b"x"}, partition=2, offset=4, timestamp_ms=9)
    assert recorded(message) == Recorded(2, MessageParts(4, b"v", b"k", [("h", b"x")], 9))


def test_records_are_in_the_order_of_partition_and_offset() -> None:
    assert in_order(reversed(RECORDS)) == RECORDS


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("{}", "line 2: it is no record: KeyError"),
        ('{"partition":0,"offset":0,"timestamp_ms":0,"key":5,"headers":[],"value":""}', "line 2: it is no record"),
        ('{"partition":0,"offset":0,"timestamp_ms":0,"key":"","headers":[5],"value":""}', "line 2: it is no record"),
    ],
)
def test_a_wrong_record_is_refused_with_its_line(tmp_path: Path, line: str, text: str) -> None:
    path = tmp_path / "a"
    path.write_text(f'{{"awoke_recording":1,"topic":"orders"}}\n{line}\n')
    with pytest.raises(ConfigError, match=text):
        read_recording(path)


def test_a_header_without_a_topic_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_text('{"awoke_recording":1}\n')
    with pytest.raises(ConfigError, match="names no topic"):
        read_recording(tmp_path / "a")
