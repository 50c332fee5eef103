"""`awoke broker`: a Kafka broker in memory, for trying awoke without an installation of Kafka.

It speaks Kafka's protocol, except for the requests that create and delete topics. `awoke topics create` therefore asks
the process itself, over a UNIX socket that is named after the broker's address.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from awoke import checks
from awoke.cli.commands import command
from awoke.cli.output import say
from awoke.errors import AwokeError, ConfigError
from awoke.socket_paths import process_of as process_of
from awoke.socket_paths import socket_of as socket_of

if TYPE_CHECKING:
    from awoke.embedded import EmbeddedCluster

logger = logging.getLogger(__name__)

SESSION_TIMEOUT_MS = 6_000
"""The successor of a process that was killed waits for the end of the session; the default would be 45 s."""
PARTITIONS = 4
OWNER = "awoke broker"
"""The beginning of its errors. The embedded broker itself takes every name and number."""


@command
def broker(
    topics: Annotated[list[str], typer.Argument(metavar="TOPIC...", help="Topics to create.")],
    partitions: Annotated[int, typer.Option(min=1, max=10_000, help="Partitions of each topic.")] = PARTITIONS,
) -> None:
    """Run a Kafka broker in memory, for trying, until SIGINT or SIGTERM. Its messages are gone then."""
    from awoke.embedded import EmbeddedCluster
    from awoke.runtime.inbox import Inbox
    from awoke.runtime.signals import HEARD

    for topic in topics:
        checks.topic(OWNER, "topic", topic)
    with contextlib.ExitStack() as stack:
        heard = stack.enter_context(contextlib.closing(Inbox()))
        stack.callback(heard.hear(HEARD))
        cluster = stack.enter_context(EmbeddedCluster())
        for topic in topics:
            cluster.create_topic(topic, partitions)
        stack.enter_context(taking_commands(cluster, partitions))
        say(f"a broker in memory has the topics {', '.join(topics)}; Ctrl-C stops it. In other shells:")
        say(
            f"export AWOKE_BOOTSTRAP_SERVERS={cluster.bootstrap_servers} "
            f"AWOKE_KAFKA_SESSION_TIMEOUT_MS={SESSION_TIMEOUT_MS}"
        )
        heard.get()


@contextlib.contextmanager
def taking_commands(cluster: EmbeddedCluster, partitions: int) -> Iterator[None]:
    """Creates topics for other processes, inside the block."""
    from awoke.swarm.app_socket import AppSocket
    from awoke.swarm.socket_file import SocketFile

    def execute(command: dict[str, Any]) -> dict[str, Any]:
        topic, wanted = command.get("topic"), command.get("partitions")
        if command.get("command") != "create_topic" or not isinstance(topic, str) or not isinstance(wanted, int):
            raise ConfigError("this broker knows the command create_topic, with a topic and partitions", "command")
        checks.topic(OWNER, "topic", topic)
        if wanted == 0:
            raise ConfigError(f"{OWNER}: a topic has at least one partition", "partitions")
        if topic in known:
            return {"failed": f"topic {topic!r} already exists"}
        try:
            cluster.create_topic(topic, partitions if wanted < 0 else wanted)
        except AwokeError as error:
            return {"failed": str(error)}
        return {"done": "create_topic"}

    known = Topics(cluster)
    try:
        served = AppSocket(SocketFile(socket_of(cluster.bootstrap_servers)), execute)
    except ConfigError as error:
        logger.warning("awoke topics create can't reach this broker: %s", error)
        yield
        return
    served.start()
    try:
        yield
    finally:
        served.close()


class Topics:
    """The topics that a broker has."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._cluster = cluster

    def __contains__(self, topic: str) -> bool:
        """Returns whether the broker has a topic. Blocks."""
        import awoke

        with awoke.Admin(self._cluster.bootstrap_servers) as admin:
            return any(each.name == topic for each in admin.topics())
