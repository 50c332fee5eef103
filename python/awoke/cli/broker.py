"""`awoke broker`: Kafka brokers in memory, for trying awoke without an installation of Kafka."""

from __future__ import annotations

import contextlib
from typing import Annotated

import typer

from awoke.cli.commands import Section, command
from awoke.cli.output import say
from awoke.preconditions import checks

SESSION_TIMEOUT_MS = 6_000
"""The successor of a process that was killed waits for the end of the session; the default would be 45 s."""
PARTITIONS, BROKERS = 4, 3


@command(Section.RUN)
def broker(
    topics: Annotated[list[str], typer.Argument(metavar="TOPIC", help="The topics to create.")],
    partitions: Annotated[int, typer.Option(min=1, max=10_000, help="Partitions of each topic.")] = PARTITIONS,
    brokers: Annotated[int, typer.Option(min=1, max=100, help="Brokers to run.")] = BROKERS,
) -> None:
    """Run Kafka brokers in memory, for trying, until SIGINT or SIGTERM. Their messages are gone then."""
    from awoke.runtime.process.embedded import EmbeddedCluster
    from awoke.runtime.process.inbox import Inbox
    from awoke.runtime.process.signals import HEARD

    for topic in topics:
        checks.topic("awoke broker", "topic", topic)
    with contextlib.ExitStack() as stack:
        heard = stack.enter_context(contextlib.closing(Inbox()))
        stack.callback(heard.hear(HEARD))
        cluster = stack.enter_context(EmbeddedCluster(brokers))
        for topic in topics:
            cluster.create_topic(topic, partitions)
        say(f"brokers in memory have the topics {', '.join(topics)}; Ctrl-C stops them. In other shells:")
        say(
            f"export AWOKE_BOOTSTRAP_SERVERS={cluster.bootstrap_servers} "
            f"AWOKE_KAFKA_SESSION_TIMEOUT_MS={SESSION_TIMEOUT_MS}"
        )
        heard.get()
