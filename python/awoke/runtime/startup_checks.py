"""Looks up the topics that an app reads and writes, before it joins its group."""

from __future__ import annotations

from awoke.admin import Admin
from awoke.errors import UnknownTopic
from awoke.rpc import topics as rpc_topics
from awoke.rpc.protocol import Topics
from awoke.runtime.context import RunnableApp
from awoke.settings import Settings


def check_topics(app: RunnableApp, settings: Settings) -> int:
    """Looks up the app's topics, and creates those of its methods; returns the partitions of all that it reads. Blocks.

    Raises:
        UnknownTopic: its text names the command that creates it; BrokerUnreachable.
    """
    total = 0
    if app.rpc.methods:
        partitions = app.rpc.settings.partitions
        rpc_topics.ensure(settings, Topics.of(app.rpc.service), partitions)
        total += partitions
    wanted = set(app.routes) | {topic for route in app.routes.values() for topic in route.topics_out}
    with Admin(settings=settings) as admin:
        for topic in sorted(wanted):
            try:
                described = admin.find_topic(topic, settings.startup_timeout_s)
                total += len(described.partitions) if topic in app.routes else 0
            except UnknownTopic as error:
                text = (
                    f"topic {topic!r} does not exist on {settings.bootstrap_servers}; "
                    f"create it: awoke topics create {topic}"
                )
                raise UnknownTopic(text, error.code, error.code_name) from None
    return total
