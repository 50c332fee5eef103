"""Stands for brokers and their clients at the command line: notes what a command asks, and answers from memory."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from typer.testing import CliRunner

import awoke
from awoke.admin import BrokerInfo, ConfigEntry, GroupInfo, GroupListing, OffsetChange, PartitionInfo, TopicInfo
from awoke.cli.main import command_line
from awoke.operate.dead_letters.letters import Letter, letter_of
from awoke.payloads import dead_letter as form
from tests.support.messages import stored_message

FIRST_MS = 1_760_000_000_000
"""When the dead letters of tests failed, unless they say otherwise."""


def stored(offset: int = 0, *, partition: int = 0, value: bytes = b"value", key: bytes = b"k", **changes: str) -> Any:
    """Returns a message of a dead letter topic; changes are those of its origin."""
    fields: dict[str, str] = {
        form.TOPIC: changes.get("topic", "orders"),
        form.PARTITION: "3",
        form.OFFSET: changes.get("origin_offset", "5"),
        form.TIMESTAMP: "",
        form.GROUP: "billing",
        form.ATTEMPTS: "2",
        form.ERROR_TYPE: changes.get("error_type", "ValueError"),
        form.ERROR_TEXT: changes.get("error_text", "no card"),
        form.FAILED_AT: changes.get("failed_at_ms", str(FIRST_MS)),
        form.HANDLER: changes.get("handler", "charge"),
    }
    headers: list[tuple[str, bytes | None]] = [("trace", b"a")]
    headers += [(name, text.encode()) for name, text in fields.items()]
    return stored_message(key, value, headers, partition=partition, offset=offset)


def letter(offset: int = 0, **changes: Any) -> Letter:
    """Returns a dead letter; for changes see `stored`."""
    return letter_of(stored(offset, **changes))


class Done(NamedTuple):
    """A command that has ended."""

    output: str
    exit_code: int


def run(*words: str) -> Done:
    """Runs a command, and returns its output and exit code.

    Raises:
        AwokeError: The command has raised it.
    """
    done = CliRunner().invoke(command_line(words), words, env={"COLUMNS": "200"})
    if isinstance(done.exception, awoke.AwokeError):
        raise done.exception
    return Done(done.output, done.exit_code)


def rows_of(output: str, first: str) -> list[list[str]]:
    """Returns the cells of a list whose first column has this name, from output in columns."""
    lines = output.splitlines()
    begin = next(number for number, line in enumerate(lines) if line == first or line.startswith(f"{first} "))
    rows = []
    for line in lines[begin + 1 :]:
        cells = re.split(r" {2,}", line.strip())
        if len(cells) < 2:
            break
        rows.append(cells)
    return rows


class FakeAdmin:
    """Brokers with topics: by name and partition, the first and the next offset. `asked` has the changes."""

    def __init__(self, **topics: Mapping[int, tuple[int, int]]) -> None:
        self._topics = topics
        self.made: list[dict[str, Any]] = []
        self.asked: list[tuple[Any, ...]] = []
        self.error: BaseException | None = None
        self.refused: dict[str, str] = {}
        """Why topics can't be created."""
        self.at_time: dict[int, int] = {}
        self.configs: list[ConfigEntry] = []
        self.groups: dict[str, GroupInfo] = {}
        self.committed: dict[tuple[str, int], int] = {}
        self.plan: list[OffsetChange] = []

    def __call__(self, bootstrap_servers: str | None = None, **options: Any) -> FakeAdmin:
        """Opens a client, in the place of the class."""
        self.made.append({"bootstrap_servers": bootstrap_servers, **options})
        return self

    def __enter__(self) -> FakeAdmin:
        return self

    def __exit__(self, *_: object) -> None: ...

    def brokers(self, timeout_s: float) -> list[BrokerInfo]:
        if self.error is not None:
            raise self.error
        return [BrokerInfo(1, "a:9092"), BrokerInfo(2, "b:9093")]

    def topics(self) -> list[TopicInfo]:
        return [self.describe_topic(name) for name in self._topics]

    def describe_topic(self, name: str) -> TopicInfo:
        if name not in self._topics:
            raise awoke.UnknownTopic(f"topic {name!r} does not exist", 3, "UNKNOWN_TOPIC_OR_PART")
        return TopicInfo(name, [PartitionInfo(number, 1, [1, 2], [1]) for number in self._topics[name]])

    def describe_configs(self, topic: str) -> dict[str, ConfigEntry]:
        if self.error is not None:
            raise self.error
        return {each.name: each for each in self.configs}

    def create_partitions(self, topic: str, total: int) -> None:
        self.asked.append(("create_partitions", topic, total))

    def alter_configs(self, topic: str, configs: Mapping[str, str | None]) -> None:
        self.asked.append(("alter_configs", topic, dict(configs)))

    def list_groups(self) -> list[GroupListing]:
        return [GroupListing(each.name, each.state, each.kind, is_simple=False) for each in self.groups.values()]

    def describe_group(self, name: str) -> GroupInfo:
        if name not in self.groups:
            raise awoke.UnknownGroup(f"group {name!r} does not exist", 69, "GROUP_ID_NOT_FOUND")
        return self.groups[name]

    def group_offsets(self, group: str) -> dict[tuple[str, int], int]:
        return self.committed

    def delete_group(self, name: str) -> None:
        self.asked.append(("delete_group", name))

    def plan_reset(self, group: str, topics: list[str] | None = None, *, to: Any) -> list[OffsetChange]:
        self.asked.append(("plan", group, topics, to))
        return self.plan

    def reset_offsets(self, plan: list[OffsetChange]) -> None:
        self.asked.append(("reset", plan))

    def start_offsets(self, topic: str) -> dict[int, int]:
        return {number: first for number, (first, _) in self._topics[topic].items()}

    def end_offsets(self, topic: str) -> dict[int, int]:
        self.describe_topic(topic)
        return {number: end for number, (_, end) in self._topics[topic].items()}

    def offsets_at(self, topic: str, time_ms: int) -> dict[int, int]:
        self.asked.append(("offsets_at", topic, time_ms))
        return self.at_time

    def create_topic(self, name: str, **options: Any) -> None:
        if name in self.refused:
            raise awoke.KafkaError(self.refused[name], 36, "TOPIC_ALREADY_EXISTS")
        self.asked.append(("create", name, options))

    def delete_topic(self, name: str) -> None:
        self.asked.append(("delete", name))

    def delete_records(self, topic: str, before: Mapping[int, int]) -> dict[int, int]:
        self.asked.append(("delete_records", topic, dict(before)))
        return dict(before)
