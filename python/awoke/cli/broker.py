"""`awoke broker`: a Kafka broker in memory, for trying awoke without an installation of Kafka."""

from __future__ import annotations

import contextlib
from typing import Annotated

import typer

from awoke.cli.output import say
from awoke.errors import ConfigError

SESSION_TIMEOUT_MS = 6_000
"""Embedded brokers make a process that starts again wait as long as the session; the default would be 45 s."""


def broker(
    topics: Annotated[list[str], typer.Argument(metavar="TOPIC...", help="Topics to create.")],
    partitions: Annotated[int, typer.Option(min=1, max=10_000, help="Partitions of each topic.")] = 4,
) -> None:
    """Run a Kafka broker in memory, for trying, until SIGINT or SIGTERM. Its messages are gone then."""
    from awoke.runtime.inbox import Inbox
    from awoke.runtime.signals import HEARD
    from awoke.testing import EmbeddedCluster

    if not all(topics):
        raise ConfigError("a topic needs a name", "topics")
    with contextlib.ExitStack() as stack:
        heard = stack.enter_context(contextlib.closing(Inbox()))
        stack.callback(heard.hear(HEARD))
        cluster = stack.enter_context(EmbeddedCluster())
        for topic in topics:
            cluster.create_topic(topic, partitions)
        say(f"a broker in memory has the topics {', '.join(topics)}; Ctrl-C stops it. In other shells:")
        say(
            f"export AWOKE_BOOTSTRAP_SERVERS={cluster.bootstrap_servers} AWOKE_KAFKA_SESSION_TIMEOUT_MS={SESSION_TIMEOUT_MS}"
        )
        heard.get()
