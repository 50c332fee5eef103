"""The client for administration that is awaited."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Literal, Self

from awoke.admin.client import TIMEOUT_S, Client
from awoke.admin.results import (
    EVERY_ACL,
    Acl,
    AclFilter,
    BrokerInfo,
    ConfigEntry,
    GroupInfo,
    GroupListing,
    OffsetChange,
    ResetTo,
    TopicInfo,
)
from awoke.admin.topics import EARLIEST, LATEST, NEW_WITHIN_S
from awoke.settings.config_values import ConfigValue
from awoke.waiting.drive import elsewhere


class AsyncAdmin(Client):
    """A client for one event loop: each method is that of `Admin`, awaited.

    A context manager, to be entered by `async with`: leaving it closes. Raises as `Admin`.
    """

    async def brokers(self, timeout_s: float = TIMEOUT_S) -> list[BrokerInfo]:
        """Returns all brokers, by id. See `Admin.brokers`."""
        return await self._topics.brokers(timeout_s)

    async def topics(self, timeout_s: float = TIMEOUT_S) -> list[TopicInfo]:
        """Returns all topics, by name. See `Admin.topics`."""
        return await self._topics.all(timeout_s)

    async def describe_topic(self, name: str, timeout_s: float = TIMEOUT_S) -> TopicInfo:
        """Returns one topic. See `Admin.describe_topic`."""
        return await self._topics.describe(name, timeout_s)

    async def create_topic(
        self,
        name: str,
        *,
        partitions: int = -1,
        replicas: int = -1,
        config: Mapping[str, ConfigValue] | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        """Creates a topic. See `Admin.create_topic`."""
        await self._topics.create(name, partitions, replicas, config, timeout_s)

    async def find_topic(
        self, name: str, timeout_s: float = TIMEOUT_S, new_within_s: float = NEW_WITHIN_S
    ) -> TopicInfo:
        """Describes a topic that may be new. See `Admin.find_topic`."""
        return await self._topics.find(name, timeout_s, new_within_s)

    async def wait_for_topic(self, name: str, timeout_s: float = TIMEOUT_S) -> None:
        """Waits until a broker knows of a topic. See `Admin.wait_for_topic`."""
        await self._topics.wait_for(name, timeout_s)

    async def delete_topic(self, name: str, timeout_s: float = TIMEOUT_S) -> None:
        """Deletes a topic. See `Admin.delete_topic`."""
        await self._topics.delete(name, timeout_s)

    async def create_partitions(self, topic: str, total: int, timeout_s: float = TIMEOUT_S) -> None:
        """Adds partitions up to a total, and waits until a broker knows of them. See `Admin.create_partitions`."""
        await self._topics.create_partitions(topic, total, timeout_s)

    async def describe_configs(self, topic: str, timeout_s: float = TIMEOUT_S) -> dict[str, ConfigEntry]:
        """Returns all settings of a topic by name, with the source of each. See `Admin.describe_configs`."""
        return await self._configs.of_topic(topic, timeout_s)

    async def describe_broker_configs(self, broker_id: int, timeout_s: float = TIMEOUT_S) -> dict[str, ConfigEntry]:
        """Returns all settings of a broker by name, with the source of each. See `Admin.describe_broker_configs`."""
        return await self._configs.of_broker(broker_id, timeout_s)

    async def alter_configs(
        self, topic: str, configs: Mapping[str, ConfigValue | None], timeout_s: float = TIMEOUT_S
    ) -> None:
        """Changes some settings of a topic and leaves the others. See `Admin.alter_configs`."""
        await self._configs.alter_topic(topic, configs, timeout_s)

    async def alter_broker_configs(
        self, broker_id: int, configs: Mapping[str, ConfigValue | None], timeout_s: float = TIMEOUT_S
    ) -> None:
        """Changes some dynamic settings of a broker. See `Admin.alter_broker_configs`."""
        await self._configs.alter_broker(broker_id, configs, timeout_s)

    async def list_groups(self, timeout_s: float = TIMEOUT_S) -> list[GroupListing]:
        """Returns all groups by name, those without members too. See `Admin.list_groups`."""
        return await self._groups.all(timeout_s)

    async def describe_group(self, name: str, timeout_s: float = TIMEOUT_S) -> GroupInfo:
        """Returns one group with its members and their partitions. See `Admin.describe_group`."""
        return await self._groups.describe(name, timeout_s)

    async def delete_group(self, name: str, timeout_s: float = TIMEOUT_S) -> None:
        """Deletes a group with its committed offsets. See `Admin.delete_group`."""
        await self._groups.delete(name, timeout_s)

    async def group_offsets(self, group: str, timeout_s: float = TIMEOUT_S) -> dict[tuple[str, int], int]:
        """Returns the committed offsets of a group, by topic and partition. See `Admin.group_offsets`."""
        return await self._groups.offsets(group, timeout_s)

    async def alter_group_offsets(
        self, group: str, offsets: Mapping[tuple[str, int], int], timeout_s: float = TIMEOUT_S
    ) -> None:
        """Commits offsets in the place of a group, by topic and partition. See `Admin.alter_group_offsets`."""
        await self._groups.alter_offsets(group, offsets, timeout_s)

    async def delete_group_offsets(
        self, group: str, partitions: Collection[tuple[str, int]], timeout_s: float = TIMEOUT_S
    ) -> None:
        """Deletes committed offsets of a group, by topic and partition. See `Admin.delete_group_offsets`."""
        await self._groups.delete_offsets(group, partitions, timeout_s)

    async def plan_reset(
        self, group: str, topics: Collection[str] | None = None, *, to: ResetTo, timeout_s: float = TIMEOUT_S
    ) -> list[OffsetChange]:
        """Returns the changes that move a group's committed offsets, and makes none. See `Admin.plan_reset`."""
        return await self._resets.plan(group, topics, to, timeout_s)

    async def reset_offsets(self, plan: Sequence[OffsetChange], timeout_s: float = TIMEOUT_S) -> None:
        """Commits the offsets of a plan. See `Admin.reset_offsets`."""
        await self._resets.reset(plan, timeout_s)

    async def start_offsets(
        self, topic: str, timeout_s: float = TIMEOUT_S, *, partitions: Collection[int] | None = None
    ) -> dict[int, int]:
        """Returns the first offset that is not deleted, by partition. See `Admin.start_offsets`."""
        return await self._topics.offsets(topic, EARLIEST, timeout_s, partitions=partitions)

    async def end_offsets(
        self, topic: str, timeout_s: float = TIMEOUT_S, *, partitions: Collection[int] | None = None
    ) -> dict[int, int]:
        """Returns the offset after the last message, by partition. See `Admin.end_offsets`."""
        return await self._topics.offsets(topic, LATEST, timeout_s, partitions=partitions)

    async def stable_offsets(
        self, topic: str, timeout_s: float = TIMEOUT_S, *, partitions: Collection[int] | None = None
    ) -> dict[int, int]:
        """Returns the last stable offset, by partition. See `Admin.stable_offsets`."""
        return await self._topics.offsets(topic, LATEST, timeout_s, "list_stable_offsets", partitions)

    async def offsets_at(self, topic: str, time_ms: int, timeout_s: float = TIMEOUT_S) -> dict[int, int]:
        """Returns the first offset at or after a time (ms since 1970), by partition. See `Admin.offsets_at`."""
        return await self._topics.offsets_at(topic, time_ms, timeout_s)

    async def delete_records(
        self, topic: str, before: Mapping[int, int], timeout_s: float = TIMEOUT_S
    ) -> dict[int, int]:
        """Deletes the records of a topic that lie before these offsets, by partition. See `Admin.delete_records`."""
        return await self._topics.delete_records(topic, before, timeout_s)

    async def elect_leaders(
        self,
        partitions: Iterable[tuple[str, int]],
        kind: Literal["preferred", "unclean"] = "preferred",
        timeout_s: float = TIMEOUT_S,
    ) -> dict[tuple[str, int], bool]:
        """Has partitions elect their leaders. See `Admin.elect_leaders`."""
        return await self._topics.elect_leaders(list(partitions), kind, timeout_s)

    async def create_acls(self, acls: Iterable[Acl], timeout_s: float = TIMEOUT_S) -> None:
        """Adds ACLs. See `Admin.create_acls`."""
        await self._acls.create(acls, timeout_s)

    async def describe_acls(self, selected: AclFilter = EVERY_ACL, timeout_s: float = TIMEOUT_S) -> list[Acl]:
        """Returns the selected ACLs. See `Admin.describe_acls`."""
        return await self._acls.describe(selected, timeout_s)

    async def delete_acls(self, selected: Iterable[Acl | AclFilter], timeout_s: float = TIMEOUT_S) -> list[Acl]:
        """Deletes ACLs, and all that filters select. See `Admin.delete_acls`."""
        return await self._acls.delete(selected, timeout_s)

    async def close(self) -> None:
        """Ends the client, and every wait for a topic. Closing again does nothing."""
        await elsewhere(self._connection.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
