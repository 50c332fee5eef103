"""The brokers of one test."""

from __future__ import annotations

from awoke.app import App
from awoke.embedded import EmbeddedCluster
from awoke.rpc.protocol import Topics
from awoke.runtime.context import RunnableApp


def topics_of(app: App | RunnableApp) -> dict[str, int]:
    """Returns the topics that an app reads, writes and declares, with their partitions. Those of patterns are not
    known."""
    routes = app.all_routes
    names = [*app.read_topics, *(topic for route in routes for topic in route.topics_out), *app.topics]
    partitions = {name: _partitions(app, name) for name in names}
    for route in routes:
        if route.partitions and route.topic in partitions:
            partitions[route.topic] = max(partitions[route.topic], max(route.partitions) + 1)
    if app.rpc.methods:
        rpc = Topics.of(app.rpc.service)
        partitions |= dict.fromkeys([rpc.calls, rpc.replies], app.rpc.settings.partitions)
    return partitions


def _partitions(app: App | RunnableApp, topic: str) -> int:
    declared = app.topics.get(topic)
    return (declared and declared.partitions) or 1


class TestCluster:
    """Embedded brokers of one test: topics are created as apps need them."""

    __test__ = False
    """Says that this is no class of tests."""

    def __init__(self, brokers: int = 1) -> None:
        self.embedded = EmbeddedCluster(brokers)

    @property
    def bootstrap_servers(self) -> str:
        """Where the brokers listen."""
        return self.embedded.bootstrap_servers

    def create_topic(self, name: str, partitions: int | None = None) -> None:
        """Create a topic; one of this test that exists stays as it is. Blocks.

        `None` takes the partitions that the topic declares, or 1.
        """
        self.embedded.create_topic(name, partitions)

    def create_topics_of(self, app: App) -> None:
        """Create the topics that an app reads, writes and declares. Blocks."""
        for name, partitions in topics_of(app).items():
            self.create_topic(name, partitions)

    def close(self) -> None:
        """Stop the brokers."""
        self.embedded.close()
