"""The flows for brokers, topics and their records."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Mapping
from typing import Literal

from awoke.admin import new_topics
from awoke.admin.connection import ASK_AGAIN_S, LEADER_CODES, Connection, Entries, Offsets, check, check_offsets
from awoke.admin.results import BrokerInfo, PartitionInfo, TopicInfo
from awoke.errors import ConfigError, KafkaError, UnknownTopic, denied_codes, kafka_error
from awoke.preconditions import checks
from awoke.settings.config_values import ConfigValue, config_of

NEW_WITHIN_S = 2.0
"""A topic that was made just now is known to all brokers within this time."""
EARLIEST = -2
LATEST = -1
NO_OFFSET = -1
NEW_LEADER_S = 2.0
"""The time for which a partition's leader is asked again that does not know yet that it leads."""
"""The answer of a broker that has no message at or after a time."""
ELECTION_NOT_NEEDED = 84
ELECTIONS = ("preferred", "unclean")


class AdminTopics:
    """The requests about topics of one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def brokers(self, timeout_s: float) -> list[BrokerInfo]:
        brokers, _ = await self._connection.metadata(None, timeout_s)
        return [BrokerInfo(*broker) for broker in brokers]

    async def all(self, timeout_s: float) -> list[TopicInfo]:
        _, topics = await self._connection.metadata(None, timeout_s)
        return [_topic_info(name, partitions) for name, _, partitions in topics]

    async def describe(self, name: str, timeout_s: float) -> TopicInfo:
        checks.topic("a topic", "name", name)  # Brokers say of one that there can't be that it does not exist.
        _, topics = await self._connection.metadata(name, timeout_s)
        for found, code, partitions in topics:
            if found == name and code == 0:
                return _topic_info(found, partitions)
            if found == name and code in denied_codes():
                text = f"topic {name!r}: not allowed; an ACL must allow DESCRIBE, and READ or WRITE"
                raise kafka_error(text, code, "TOPIC_AUTHORIZATION_FAILED", False)
        raise kafka_error(f"topic {name!r} does not exist", 3, "UNKNOWN_TOPIC_OR_PART", False)

    async def create(
        self, name: str, partitions: int, replicas: int, config: Mapping[str, ConfigValue] | None, timeout_s: float
    ) -> None:
        until_s = time.monotonic() + timeout_s
        topic = (name, partitions, replicas, list(config_of(f"topic {name!r}", config).items()))
        created: Entries = await self._connection.request("create_topics", [topic], timeout_s, f"create topic {name!r}")
        check(created, "create topic")
        with contextlib.suppress(KafkaError):  # It is created even if an ACL does not allow to describe it.
            await self.wait_for(name, until_s - time.monotonic())
        new_topics.tell(name)

    async def find(self, name: str, timeout_s: float, new_within_s: float) -> TopicInfo:
        return await self._find(name, 0, timeout_s, new_within_s)

    async def wait_for(self, name: str, timeout_s: float) -> None:
        await self._find(name, 0, max(timeout_s, ASK_AGAIN_S), timeout_s)

    async def find_all(
        self, are_enough: Callable[[list[TopicInfo]], bool], timeout_s: float, new_within_s: float
    ) -> list[TopicInfo]:
        until_s = time.monotonic() + new_within_s
        # A poll, and a known limit: as in `_find`.
        while True:
            is_last = time.monotonic() >= until_s
            found = await self.all(timeout_s)
            if are_enough(found) or is_last or not await self._connection.again():
                return found

    async def _find(self, name: str, partitions: int, timeout_s: float, within_s: float) -> TopicInfo:
        """Describes a topic once a broker knows of it, and of this number of partitions or the time is up."""
        until_s = time.monotonic() + within_s
        # A poll, and a known limit: Kafka has no request that waits for a topic. A broker learns of a new topic from
        # the controller some time after it was made, and tells its clients only when they ask.
        while True:
            is_last = time.monotonic() >= until_s
            try:
                found = await self.describe(name, timeout_s)
                if is_last or len(found.partitions) >= partitions:
                    return found
            except UnknownTopic:
                if is_last:
                    raise
            if not await self._connection.again():
                until_s = 0.0

    async def delete(self, name: str, timeout_s: float) -> None:
        deleted: Entries = await self._connection.request("delete_topics", [name], timeout_s, f"delete topic {name!r}")
        check(deleted, "delete topic")

    async def create_partitions(self, name: str, total: int, timeout_s: float) -> None:
        until_s = time.monotonic() + timeout_s
        count = len((await self.describe(name, timeout_s)).partitions)
        if total < count:
            text = f"topic {name!r} has {count} partitions: Kafka adds partitions and removes none; total is {total}"
            raise ConfigError(text, "total")
        if total == count:
            return
        what = f"create partitions of {name!r}"
        created: Entries = await self._connection.request("create_partitions", [(name, total)], timeout_s, what)
        check(created, "create partitions of")
        await self._find(name, total, timeout_s, until_s - time.monotonic())

    async def offsets(
        self,
        name: str,
        at: int,
        timeout_s: float,
        kind: str = "list_offsets",
        partitions: Collection[int] | None = None,
    ) -> dict[int, int]:
        """Returns offsets by partition: `EARLIEST`, `LATEST`, or the first at or after a time in ms.

        With the kind `list_stable_offsets`, the latest is the last stable offset. `partitions` None asks for all.
        """
        if partitions is None:
            partitions = [each.partition for each in (await self.describe(name, timeout_s)).partitions]
        elif not partitions:
            return {}
        wanted = [(name, each, at) for each in partitions]
        found = await self._offsets(wanted, f"offsets of {name!r} could not be read", timeout_s, kind)
        return {partition: offset for (_, partition), offset in found.items()}

    async def ends(self, names: Collection[str], timeout_s: float) -> dict[tuple[str, int], int]:
        """Returns the end offsets of those of several topics that exist, by topic and partition, with two requests."""
        topics = [each for each in await self.all(timeout_s) if each.name in names]
        wanted = [(topic.name, each.partition, LATEST) for topic in topics for each in topic.partitions]
        if not wanted:
            return {}
        return await self._offsets(wanted, "end offsets could not be read", timeout_s)

    async def _offsets(
        self, wanted: list[tuple[str, int, int]], what: str, timeout_s: float, kind: str = "list_offsets"
    ) -> dict[tuple[str, int], int]:
        """Returns offsets by topic and partition; `wanted` has topic, partition, and `at` as `offsets` takes it."""
        until_s = time.monotonic() + min(timeout_s, NEW_LEADER_S)
        found: Offsets = await self._connection.request(kind, wanted, timeout_s, what)
        # A poll, and a known limit: no event tells when a broker hears that it leads a partition.
        while lacks_leader(found) and time.monotonic() < until_s and await self._connection.again():
            found = await self._connection.request(kind, wanted, timeout_s, what)
        check_offsets(found, what)
        asked = {(topic, partition): at for topic, partition, at in wanted}
        for name, partition, offset, _ in found:
            # librdkafka drops the error of a leader that did not answer.
            if offset < NO_OFFSET or (asked[name, partition] < 0 and offset < 0):
                raise kafka_error(f"{what}: the leader of {name}[{partition}] did not answer", -185, "_TIMED_OUT", True)
        return {(name, partition): offset for name, partition, offset, _ in found}

    async def offsets_at(self, name: str, time_ms: int, timeout_s: float) -> dict[int, int]:
        if time_ms < 0:
            raise ConfigError(f"time_ms must not be negative, and is {time_ms}", "time_ms")
        ends = await self.offsets(name, LATEST, timeout_s)
        found = await self.offsets(name, time_ms, timeout_s)
        # A partition may have been added between the two requests.
        return {at: offset if offset >= 0 else ends[at] for at, offset in found.items() if at in ends}

    async def delete_records(self, name: str, before: Mapping[int, int], timeout_s: float) -> dict[int, int]:
        for partition, offset in before.items():
            if offset < 0:  # -1 stands for all records.
                raise ConfigError(f"before: offset {offset} of {name}[{partition}] must not be negative", "before")
        wanted = [(name, partition, offset) for partition, offset in sorted(before.items())]
        if not wanted:
            return {}
        what = f"records of {name!r} could not be deleted"
        found: Offsets = await self._connection.request("delete_records", wanted, timeout_s, what)
        check_offsets(found, what)
        return {partition: offset for _, partition, offset, _ in found}

    async def elect_leaders(
        self, partitions: list[tuple[str, int]], kind: Literal["preferred", "unclean"], timeout_s: float
    ) -> dict[tuple[str, int], bool]:
        if kind not in ELECTIONS:
            raise ConfigError(f"kind is 'preferred' or 'unclean', not {kind!r}", "kind")
        if not partitions:
            return {}
        for topic in sorted({topic for topic, _ in partitions}):
            # This also names the present controller: librdkafka would wait for one that has gone.
            await self.describe(topic, timeout_s)
        arguments = (kind == "unclean", partitions)
        elected: Offsets = await self._connection.request("elect_leaders", arguments, timeout_s, "elect leaders")
        needless = {
            (topic, number) for topic, number, _, refusal in elected if refusal and refusal[0] == ELECTION_NOT_NEEDED
        }
        check_offsets([each for each in elected if each[:2] not in needless], "elect leaders")
        return {(topic, number): (topic, number) not in needless for topic, number, _, _ in elected}


def _topic_info(name: str, partitions: list[tuple[int, int, list[int], list[int]]]) -> TopicInfo:
    return TopicInfo(name, [PartitionInfo(*partition) for partition in partitions])


def lacks_leader(offsets: Offsets) -> bool:
    """Tells whether a broker was asked that does not lead its partition."""
    return any(refusal is not None and refusal[0] in LEADER_CODES for *_, refusal in offsets)
