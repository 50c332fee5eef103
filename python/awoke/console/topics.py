"""The topics of the console: their names and settings, and how a process creates them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from awoke.admin import Admin
from awoke.errors import BrokerUnreachable, KafkaError, OperationTimeout

REPORTS_CONFIG = {"cleanup.policy": "compact,delete", "retention.ms": "86400000", "segment.ms": "3600000"}
"""A process that was killed leaves its last report behind for a day."""
ERRORS_CONFIG = {"cleanup.policy": "delete", "retention.ms": "604800000"}
ILLEGAL = re.compile(r"[^A-Za-z0-9._-]")


AUDIT_CONFIG = {"cleanup.policy": "delete", "retention.ms": "7776000000"}
"""Commands are kept for 90 days."""
PAUSES_CONFIG = {"cleanup.policy": "compact"}


class ConsoleTopics(NamedTuple):
    """The topics of an app."""

    reports: str
    errors: str
    audit: str
    """The commands and how they ended."""
    pauses: str
    """The durable pauses, by group and partition."""

    @property
    def configs(self) -> dict[str, dict[str, str]]:
        """The settings of those topics that each process writes to."""
        return {self.reports: REPORTS_CONFIG, self.errors: ERRORS_CONFIG}

    @property
    def command_configs(self) -> dict[str, dict[str, str]]:
        """The settings of those topics that processes need which take commands."""
        return {self.audit: AUDIT_CONFIG, self.pauses: PAUSES_CONFIG}

    @classmethod
    def of(cls, app: str) -> ConsoleTopics:
        """Returns the topics of the app with this name. A character that Kafka refuses becomes `_`."""
        service = service_of(app)
        return cls(*(f"{service}.{each}" for each in cls._fields))


def service_of(app: str) -> str:
    """Returns the name of the service that takes the commands of an app."""
    return f"__awoke-{ILLEGAL.sub('_', app)}"


def ensure(admin: Admin, configs: Mapping[str, Mapping[str, str]], timeout_s: float) -> None:
    """Creates the topics that do not exist, with one partition. Blocks up to `timeout_s` for each request.

    Raises:
        KafkaError: one is not there and can't be created.
    """
    for topic, config in configs.items():
        try:
            # Not looked up before: `close` ends this request, and a lookup would delay a stop without brokers.
            admin.create_topic(topic, partitions=1, config=config, timeout_s=timeout_s)
        except KafkaError as error:
            if error.code_name == "TOPIC_ALREADY_EXISTS":
                continue
            if isinstance(error, BrokerUnreachable) or not _exists(admin, topic, timeout_s):
                raise


def _exists(admin: Admin, topic: str, timeout_s: float) -> bool:
    """Tells whether a topic is there: a process that may create none may still write to it."""
    try:
        admin.describe_topic(topic, timeout_s)
    except (KafkaError, OperationTimeout):
        return False
    return True
