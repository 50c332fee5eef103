"""A recording: records of a topic in a file, byte for byte. `docs/testing.md` describes the format."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from awoke._native import Message, make_batch
from awoke.testing.messages import MessageParts, parts_of
from awoke.testing.recordings.lines import read_lines, write_lines, wrong_line
from awoke.text.json_bytes import bytes_of_json, json_of_bytes

KIND, VERSION = "awoke_recording", 1


class Recorded(NamedTuple):
    """One record, and the partition that it is from."""

    partition: int
    parts: MessageParts

    def document(self) -> dict[str, Any]:
        """Returns it as it stands in a file."""
        offset, value, key, headers, timestamp_ms = self.parts
        return {
            "partition": self.partition,
            "offset": offset,
            "timestamp_ms": timestamp_ms,
            "key": json_of_bytes(key),
            "headers": [[name, json_of_bytes(each)] for name, each in headers],
            "value": json_of_bytes(value),
        }


class Recording(NamedTuple):
    """The records of one topic, by partition and offset."""

    topic: str
    records: Sequence[Recorded]
    masked: Sequence[str] = ()
    """The parts whose content was replaced, as the options of `awoke record` name them."""

    def messages(self) -> list[Message[Any, Any]]:
        """Returns the records as messages, with their offsets and times."""
        return [make_batch((self.topic, partition), [parts])[0] for partition, parts in self.records]


def recorded(message: Message[Any, Any]) -> Recorded:
    """Returns a message as a record of a recording."""
    return Recorded(message.partition, parts_of(message))


def write_recording(recording: Recording, path: Path, *, replaces: bool = False) -> None:
    """Writes a recording into a file that only its owner may read.

    Raises:
        ConfigError: the file is there already, and is not to be replaced; or it can't be written.
    """
    header = {KIND: VERSION, "topic": recording.topic, "masked": list(recording.masked)}
    write_lines(path, [header, *(each.document() for each in recording.records)], replaces=replaces)


def read_recording(path: Path) -> Recording:
    """Reads a recording.

    Raises:
        ConfigError: the file can't be read, or is no recording; names the line.
    """
    lines = read_lines(path, KIND, VERSION)
    _, header = next(lines)
    topic, masked = header.get("topic"), header.get("masked", [])
    if not isinstance(topic, str) or not isinstance(masked, list):
        raise wrong_line(path, 1, "the header names no topic")
    records = []
    for number, document in lines:
        try:
            records.append(_record(document))
        except (KeyError, TypeError, ValueError) as error:
            raise wrong_line(path, number, f"it is no record: {type(error).__name__}: {error}") from None
    return Recording(topic, in_order(records), [str(each) for each in masked])


def in_order(records: Iterable[Recorded]) -> list[Recorded]:
    """Returns records by partition and offset."""
    return sorted(records, key=lambda each: (each.partition, each.parts.offset))


def _record(document: dict[str, Any]) -> Recorded:
    headers = [(str(name), bytes_of_json(each)) for name, each in document["headers"]]
    timestamp_ms = document["timestamp_ms"]
    parts = MessageParts(
        int(document["offset"]),
        bytes_of_json(document["value"]),
        bytes_of_json(document["key"]),
        headers,
        None if timestamp_ms is None else int(timestamp_ms),
    )
    return Recorded(int(document["partition"]), parts)
