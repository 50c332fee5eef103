"""The flows for the settings of topics and brokers."""

from __future__ import annotations

from collections.abc import Mapping

from awoke.admin.connection import Connection, Entries, Refusal, check
from awoke.admin.results import ConfigEntry
from awoke.errors import UNKNOWN_TOPIC_CODES, ConfigError, UnknownTopic
from awoke.settings.config_values import ConfigValue, changes_of

TOPIC, BROKER = 2, 4
"""Kinds of resources, as Kafka's protocol numbers them."""
SOURCES = {
    1: "topic",
    2: "dynamic broker",
    3: "dynamic default broker",
    4: "broker",
    5: "default",
    6: "dynamic broker logger",
    8: "group",
}
"""The sources of a setting, as Kafka's protocol numbers them."""
Described = list[tuple[str, Refusal | None, list[tuple[str, str | None, int, bool, bool, bool]]]]


class Configs:
    """The requests about settings of one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def of_topic(self, topic: str, timeout_s: float) -> dict[str, ConfigEntry]:
        return await self._describe(TOPIC, topic, f"describe settings of topic {topic!r}", timeout_s)

    async def of_broker(self, broker_id: int, timeout_s: float) -> dict[str, ConfigEntry]:
        await self._check_broker(broker_id, timeout_s)
        return await self._describe(BROKER, str(broker_id), f"describe settings of broker {broker_id}", timeout_s)

    async def alter_topic(self, topic: str, configs: Mapping[str, ConfigValue | None], timeout_s: float) -> None:
        await self._alter(TOPIC, topic, configs, f"alter settings of topic {topic!r}", timeout_s)

    async def alter_broker(self, broker_id: int, configs: Mapping[str, ConfigValue | None], timeout_s: float) -> None:
        await self._check_broker(broker_id, timeout_s)
        await self._alter(BROKER, str(broker_id), configs, f"alter settings of broker {broker_id}", timeout_s)

    async def _describe(self, kind: int, name: str, what: str, timeout_s: float) -> dict[str, ConfigEntry]:
        found: Described = await self._connection.request("describe_configs", [(kind, name)], timeout_s, what)
        _check(kind, name, [refusal for _, refusal, _ in found], what)
        return {
            name: ConfigEntry(name, value, SOURCES.get(source, "unknown"), *flags)
            for _, _, entries in found
            for name, value, source, *flags in sorted(entries)
        }

    async def _alter(
        self, kind: int, name: str, configs: Mapping[str, ConfigValue | None], what: str, timeout_s: float
    ) -> None:
        changes = changes_of(what, configs)
        if not changes:
            return
        altered: Entries = await self._connection.request("alter_configs", [(kind, name, changes)], timeout_s, what)
        _check(kind, name, [refusal for _, refusal in altered], what)

    async def _check_broker(self, broker_id: int, timeout_s: float) -> None:
        """Checks that there is a broker: librdkafka would wait for one that there is not."""
        brokers, _ = await self._connection.metadata(None, timeout_s)
        ids = [number for number, _ in brokers]
        if broker_id not in ids:
            text = f"there is no broker {broker_id}: the brokers are {', '.join(map(str, ids))}"
            raise ConfigError(text, "broker_id")


def _check(kind: int, name: str, refusals: list[Refusal | None], what: str) -> None:
    for refusal in refusals:
        if refusal is not None and kind == TOPIC and refusal[0] in UNKNOWN_TOPIC_CODES:
            raise UnknownTopic(f"topic {name!r} does not exist", refusal[0], refusal[1])
        check([("", refusal)], what)
