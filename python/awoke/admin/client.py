"""The clients for administration: `Admin` blocks, `AsyncAdmin` is awaited. Both have the methods of one source."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Literal, Self

from awoke.admin.acls import Acls
from awoke.admin.configs import Configs
from awoke.admin.connection import AdminOptions, Connection
from awoke.admin.groups import Groups
from awoke.admin.resets import Resets
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
from awoke.admin.topics import EARLIEST, LATEST, NEW_WITHIN_S, AdminTopics
from awoke.settings import KafkaValue, Settings
from awoke.settings.config_values import ConfigValue
from awoke.settings.oauth import TokenFunction
from awoke.waiting.drive import blocking, elsewhere

TIMEOUT_S = 10.0


class AdminClient:
    """The part that both clients share: the connection, and the flows on it."""

    def __init__(
        self,
        bootstrap_servers: str | None = None,
        *,
        kafka: Mapping[str, KafkaValue] | None = None,
        oauth_token: TokenFunction | None = None,
        settings: Settings | None = None,
    ) -> None:
        self._connection = Connection(AdminOptions(bootstrap_servers, kafka, oauth_token, settings))
        self._topics = AdminTopics(self._connection)
        self._configs = Configs(self._connection)
        self._groups = Groups(self._connection)
        self._resets = Resets(self._topics, self._groups)
        self._acls = Acls(self._connection)


class AsyncAdmin(AdminClient):
    """Reads and changes topics, settings, groups, offsets, records and ACLs, awaited on one event loop.

    A context manager, to be entered by `async with`: leaving it closes. A call waits up to its `timeout_s` for each
    request that it makes.

    Raises, from every call:
        BrokerUnreachable: no broker answered in time; names their addresses.
        AuthenticationFailed, TlsFailed: no broker lets the client in; says why, without waiting for the time.
        AuthorizationFailed: an ACL does not allow it.
        KafkaError: a broker refused; see `code_name`.
    """

    async def brokers(self, timeout_s: float = TIMEOUT_S) -> list[BrokerInfo]:
        """Returns all brokers, by id."""
        return await self._topics.brokers(timeout_s)

    async def topics(self, timeout_s: float = TIMEOUT_S) -> list[TopicInfo]:
        """Returns all topics, by name."""
        return await self._topics.all(timeout_s)

    async def describe_topic(self, name: str, timeout_s: float = TIMEOUT_S) -> TopicInfo:
        """Returns one topic.

        Raises:
            UnknownTopic: There is none of this name. AuthorizationFailed: An ACL does not allow to describe it.
        """
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
        """Creates a topic; -1 takes the brokers' defaults. Waits, within `timeout_s`, until a broker knows of it.

        Raises:
            KafkaError: `TOPIC_ALREADY_EXISTS`, or another error of the brokers.
            ConfigError: A setting has no name, or no value.
        """
        await self._topics.create(name, partitions, replicas, config, timeout_s)

    async def find_topic(
        self, name: str, timeout_s: float = TIMEOUT_S, new_within_s: float = NEW_WITHIN_S
    ) -> TopicInfo:
        """Describes a topic that may be new: brokers that do not know it are asked again for `new_within_s` seconds.

        `close` on another thread ends the wait.

        Raises:
            UnknownTopic: No broker knew the topic in time.
            AuthorizationFailed: An ACL does not allow DESCRIBE.
        """
        return await self._topics.find(name, timeout_s, new_within_s)

    async def find_topics(
        self,
        are_enough: Callable[[list[TopicInfo]], bool],
        timeout_s: float = TIMEOUT_S,
        new_within_s: float = NEW_WITHIN_S,
    ) -> list[TopicInfo]:
        """Returns all topics, some of which may be new: a broker is asked again until `are_enough` says so of them.

        After `new_within_s` seconds it returns those that there are. `close` on another thread ends the wait.
        """
        return await self._topics.find_all(are_enough, timeout_s, new_within_s)

    async def wait_for_topic(self, name: str, timeout_s: float = TIMEOUT_S) -> None:
        """Waits until a broker knows of a topic.

        Raises:
            UnknownTopic: none did within `timeout_s`.
        """
        await self._topics.wait_for(name, timeout_s)

    async def delete_topic(self, name: str, timeout_s: float = TIMEOUT_S) -> None:
        """Deletes a topic.

        Raises:
            UnknownTopic: there is none of this name.
        """
        await self._topics.delete(name, timeout_s)

    async def create_partitions(self, topic: str, total: int, timeout_s: float = TIMEOUT_S) -> None:
        """Adds partitions up to a total, and waits until a broker knows of them.

        Does nothing if the topic has this number already. Keys go to other partitions from then on.

        Raises:
            ConfigError: The topic has more partitions: Kafka removes none. UnknownTopic: There is no such topic.
        """
        await self._topics.create_partitions(topic, total, timeout_s)

    async def describe_configs(self, topic: str, timeout_s: float = TIMEOUT_S) -> dict[str, ConfigEntry]:
        """Returns all settings of a topic by name, with the source of each. A sensitive value is None.

        Raises:
            UnknownTopic: There is no such topic.
        """
        return await self._configs.of_topic(topic, timeout_s)

    async def describe_broker_configs(self, broker_id: int, timeout_s: float = TIMEOUT_S) -> dict[str, ConfigEntry]:
        """Returns all settings of a broker by name, with the source of each. A sensitive value is None.

        Raises:
            ConfigError: There is no such broker.
        """
        return await self._configs.of_broker(broker_id, timeout_s)

    async def alter_configs(
        self, topic: str, configs: Mapping[str, ConfigValue | None], timeout_s: float = TIMEOUT_S
    ) -> None:
        """Changes some settings of a topic and leaves the others. None takes a setting back to its default.

        A broker may describe the old values for a moment: it learns of the change from the controller.

        Raises:
            KafkaError: `INVALID_CONFIG`: there is no such setting, or its value is wrong; nothing was changed.
            UnknownTopic: There is no such topic.
            ConfigError: A setting has no name.
        """
        await self._configs.alter_topic(topic, configs, timeout_s)

    async def alter_broker_configs(
        self, broker_id: int, configs: Mapping[str, ConfigValue | None], timeout_s: float = TIMEOUT_S
    ) -> None:
        """Changes some dynamic settings of a broker. None takes a setting back to that of its file, or its default.

        Raises:
            KafkaError: The setting is unknown, read-only, or its value is wrong; nothing was changed.
            ConfigError: There is no such broker.
        """
        await self._configs.alter_broker(broker_id, configs, timeout_s)

    async def list_groups(self, timeout_s: float = TIMEOUT_S) -> list[GroupListing]:
        """Returns all groups by name, those without members too.

        Raises:
            KafkaError: A broker did not list its groups.
        """
        return await self._groups.all(timeout_s)

    async def describe_group(self, name: str, timeout_s: float = TIMEOUT_S) -> GroupInfo:
        """Returns one group with its members and their partitions.

        Raises:
            UnknownGroup: There is none of this name.
        """
        return await self._groups.describe(name, timeout_s)

    async def delete_group(self, name: str, timeout_s: float = TIMEOUT_S) -> None:
        """Deletes a group with its committed offsets.

        Raises:
            GroupNotEmpty: It has members. UnknownGroup: There is none of this name.
        """
        await self._groups.delete(name, timeout_s)

    async def group_offsets(self, group: str, timeout_s: float = TIMEOUT_S) -> dict[tuple[str, int], int]:
        """Returns the committed offsets of a group, by topic and partition; of an unknown group none."""
        return await self._groups.offsets(group, timeout_s)

    async def alter_group_offsets(
        self, group: str, offsets: Mapping[tuple[str, int], int], timeout_s: float = TIMEOUT_S
    ) -> None:
        """Commits offsets in the place of a group, by topic and partition. Makes the group if there is none.

        It takes any offset: `plan_reset` keeps within the log.

        Raises:
            GroupNotEmpty: The group has members. UnknownTopic: There is no such topic or partition; the offsets of
                others may be committed.
            ConfigError: An offset is negative.
        """
        await self._groups.alter_offsets(group, offsets, timeout_s)

    async def delete_group_offsets(
        self, group: str, partitions: Collection[tuple[str, int]], timeout_s: float = TIMEOUT_S
    ) -> None:
        """Deletes committed offsets of a group, by topic and partition.

        Raises:
            GroupNotEmpty: Members of the group read the topic. UnknownGroup: There is no such group.
        """
        await self._groups.delete_offsets(group, partitions, timeout_s)

    async def plan_reset(
        self, group: str, topics: Collection[str] | None = None, *, to: ResetTo, timeout_s: float = TIMEOUT_S
    ) -> list[OffsetChange]:
        """Returns the changes that move a group's committed offsets, and makes none. See `reset_offsets`.

        It covers all partitions of the topics; without topics, of those that the group has offsets of. A target outside
        of the log becomes the nearest offset in it, and its change is marked `is_clamped`. A `Shift` leaves out
        partitions without a committed offset.

        Raises:
            ConfigError: `to` is no target, or a time without a time zone. UnknownTopic: There is no such topic.
            UnknownGroup: No topics are given, and the group has no offsets.
        """
        return await self._resets.plan(group, topics, to, timeout_s)

    async def reset_offsets(self, plan: Sequence[OffsetChange], timeout_s: float = TIMEOUT_S) -> None:
        """Commits the offsets of a plan. The group must have no members.

        Raises:
            GroupNotEmpty: It has members; names some. Nothing was changed.
        """
        await self._resets.reset(plan, timeout_s)

    async def start_offsets(
        self, topic: str, timeout_s: float = TIMEOUT_S, *, partitions: Collection[int] | None = None
    ) -> dict[int, int]:
        """Returns the first offset that is not deleted, by partition; of these alone where some are named."""
        return await self._topics.offsets(topic, EARLIEST, timeout_s, partitions=partitions)

    async def end_offsets(
        self, topic: str, timeout_s: float = TIMEOUT_S, *, partitions: Collection[int] | None = None
    ) -> dict[int, int]:
        """Returns the offset after the last message, by partition; of these alone where some are named."""
        return await self._topics.offsets(topic, LATEST, timeout_s, partitions=partitions)

    async def stable_offsets(
        self, topic: str, timeout_s: float = TIMEOUT_S, *, partitions: Collection[int] | None = None
    ) -> dict[int, int]:
        """Returns the last stable offset, by partition: an open transaction holds back what lies beyond it.

        Readers of committed messages read up to it. Without an open transaction it is the end.
        """
        return await self._topics.offsets(topic, LATEST, timeout_s, "list_stable_offsets", partitions)

    async def offsets_at(self, topic: str, time_ms: int, timeout_s: float = TIMEOUT_S) -> dict[int, int]:
        """Returns the first offset at or after a time (ms since 1970), by partition; the end where there is none.

        Raises:
            ConfigError: the time is before 1970; UnknownTopic, KafkaError.
        """
        return await self._topics.offsets_at(topic, time_ms, timeout_s)

    async def delete_records(
        self, topic: str, before: Mapping[int, int], timeout_s: float = TIMEOUT_S
    ) -> dict[int, int]:
        """Deletes the records of a topic that lie before these offsets, by partition. They are gone for good.

        Returns the first offset that is still there, by partition.

        Raises:
            ConfigError: an offset is negative. KafkaError: a partition's records could not be deleted; those of others
                may be gone.
        """
        return await self._topics.delete_records(topic, before, timeout_s)

    async def elect_leaders(
        self,
        partitions: Iterable[tuple[str, int]],
        kind: Literal["preferred", "unclean"] = "preferred",
        timeout_s: float = TIMEOUT_S,
    ) -> dict[tuple[str, int], bool]:
        """Elects leaders for partitions; returns, by partition, whether an election was needed.

        `unclean` lets a replica lead that has not all messages: those that it lacks are lost.

        Raises:
            UnknownTopic: There is no such topic or partition. KafkaError: `PREFERRED_LEADER_NOT_AVAILABLE`, or
                `ELIGIBLE_LEADERS_NOT_AVAILABLE`.
        """
        return await self._topics.elect_leaders(list(partitions), kind, timeout_s)

    async def create_acls(self, acls: Iterable[Acl], timeout_s: float = TIMEOUT_S) -> None:
        """Adds ACLs; those that exist already are left as they are.

        Raises:
            ConfigError: An ACL has an unknown word. KafkaError: `SECURITY_DISABLED`: the brokers have no authorizer.
        """
        await self._acls.create(acls, timeout_s)

    async def describe_acls(self, selected: AclFilter = EVERY_ACL, timeout_s: float = TIMEOUT_S) -> list[Acl]:
        """Returns the selected ACLs; without a filter, all of them.

        Raises:
            KafkaError: `SECURITY_DISABLED`: the brokers have no authorizer.
        """
        return await self._acls.describe(selected, timeout_s)

    async def delete_acls(self, selected: Iterable[Acl | AclFilter], timeout_s: float = TIMEOUT_S) -> list[Acl]:
        """Deletes ACLs, and all that filters select. Returns those that are gone.

        Raises:
            KafkaError: `SECURITY_DISABLED`: the brokers have no authorizer.
        """
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


class Admin(AdminClient):
    """Reads and changes topics, settings, groups, offsets, records and ACLs. Any thread; every call blocks.

    Its methods are those of `AsyncAdmin`. A context manager: leaving it closes. A call waits up to its `timeout_s` for
    each request that it makes.

    Raises, from every call:
        BrokerUnreachable: no broker answered in time; names their addresses.
        AuthenticationFailed, TlsFailed: no broker lets the client in; says why, without waiting for the time.
        AuthorizationFailed: an ACL does not allow it.
        KafkaError: a broker refused; see `code_name`.
    """

    brokers = blocking(AsyncAdmin.brokers)
    topics = blocking(AsyncAdmin.topics)
    describe_topic = blocking(AsyncAdmin.describe_topic)
    create_topic = blocking(AsyncAdmin.create_topic)
    find_topic = blocking(AsyncAdmin.find_topic)
    find_topics = blocking(AsyncAdmin.find_topics)
    wait_for_topic = blocking(AsyncAdmin.wait_for_topic)
    delete_topic = blocking(AsyncAdmin.delete_topic)
    create_partitions = blocking(AsyncAdmin.create_partitions)
    describe_configs = blocking(AsyncAdmin.describe_configs)
    describe_broker_configs = blocking(AsyncAdmin.describe_broker_configs)
    alter_configs = blocking(AsyncAdmin.alter_configs)
    alter_broker_configs = blocking(AsyncAdmin.alter_broker_configs)
    list_groups = blocking(AsyncAdmin.list_groups)
    describe_group = blocking(AsyncAdmin.describe_group)
    delete_group = blocking(AsyncAdmin.delete_group)
    group_offsets = blocking(AsyncAdmin.group_offsets)
    alter_group_offsets = blocking(AsyncAdmin.alter_group_offsets)
    delete_group_offsets = blocking(AsyncAdmin.delete_group_offsets)
    plan_reset = blocking(AsyncAdmin.plan_reset)
    reset_offsets = blocking(AsyncAdmin.reset_offsets)
    start_offsets = blocking(AsyncAdmin.start_offsets)
    end_offsets = blocking(AsyncAdmin.end_offsets)
    stable_offsets = blocking(AsyncAdmin.stable_offsets)
    offsets_at = blocking(AsyncAdmin.offsets_at)
    delete_records = blocking(AsyncAdmin.delete_records)
    elect_leaders = blocking(AsyncAdmin.elect_leaders)
    create_acls = blocking(AsyncAdmin.create_acls)
    describe_acls = blocking(AsyncAdmin.describe_acls)
    delete_acls = blocking(AsyncAdmin.delete_acls)

    def close(self) -> None:
        """Ends the client, and every wait for a topic. Closing again does nothing. Usable from any thread."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def topic_flows(admin: AdminClient) -> AdminTopics:
    """Returns the flows about topics that an admin client runs, for parts of awoke that need several at once."""
    return admin._topics
