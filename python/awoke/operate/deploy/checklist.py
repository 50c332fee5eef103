"""The checks before production (`awoke doctor --production`): of the settings, of the routes, of the topics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol

from awoke.admin import ConfigEntry, TopicInfo
from awoke.declare.routing import Route
from awoke.errors import UnknownTopic
from awoke.settings import RunSettings, Settings

REPLICAS_LEAST = 3
MIN_IN_SYNC_LEAST = 2
LOOPBACK = ("127.", "localhost", "[::1]")


class Check(NamedTuple):
    """One line of the checklist."""

    is_met: bool
    subject: str
    advice: str
    """The remedy if it is not met."""


class Topics(Protocol):
    """Knows the topics of a cluster; `awoke.Admin` does."""

    def describe_topic(self, name: str) -> TopicInfo: ...
    def describe_configs(self, topic: str) -> Mapping[str, ConfigEntry]: ...


def of_settings(settings: Settings, run: RunSettings) -> Iterator[Check]:
    """Yields the checks of settings."""
    servers = [each.strip() for each in settings.bootstrap_servers.split(",")]
    kafka = settings.kafka
    yield Check(
        len(servers) > 1 and not any(each.startswith(LOOPBACK) for each in servers),
        "several brokers to begin with",
        "set bootstrap_servers to two or more: with one, no process starts while it is away",
    )
    protocol = kafka.get("security.protocol", "plaintext").lower()
    yield Check(
        protocol in ("ssl", "sasl_ssl"),
        "connections are encrypted",
        "set security.protocol to ssl or sasl_ssl, see docs/security.md",
    )
    yield Check(
        kafka.get("acks", kafka.get("request.required.acks", "all")) in ("all", "-1"),
        "acks=all",
        "leave acks out: with fewer, an election loses messages that were acknowledged",
    )
    yield Check(
        settings.metrics_port is not None or settings.metrics_otel,
        "metrics",
        "set metrics_port, or metrics_otel",
    )
    yield Check(
        settings.metrics_port is not None,
        "health and readiness",
        "set metrics_port: the probes ask there",
    )
    yield Check(run.log_format == "json", "logs are JSON", "set log_format to json (AWOKE_LOG_FORMAT)")
    yield Check(
        run.nodes is None or run.memory_limit is not None,
        "nodes have a memory limit",
        "set memory_limit: a node that leaks is then replaced before the kernel kills it",
    )
    yield Check(
        settings.registry_register != "always",
        "schemas are registered by a release, and not by processes",
        "set registry_register to never, and register schemas in CI (awoke schema check)",
    )


def of_routes(routes: Iterable[Route]) -> Iterator[Check]:
    """Yields the checks of routes."""
    for route in routes:
        name = f"route {route.topic} ({route.name})"
        yield Check(
            route.dead_letter is not None or route.retry.on_exhausted != "stop",
            f"{name}: a message that can't be processed does not end the app",
            "give it dead_letter=…, or Retry(on_exhausted='skip' or 'pause')",
        )
        yield Check(
            route.dead_letter is None or route.retry.attempts is not None,
            f"{name}: a failing message reaches the dead letter topic",
            "give it Retry(attempts=…): without, it is tried for ever, and those behind it wait",
        )
        yield Check(
            route.max_processing_s is not None,
            f"{name}: a handler that hangs is found",
            "give it max_processing_s=…: health then names the message and its stack",
        )


def topics_of(routes: Iterable[Route]) -> list[str]:
    """Returns the topics that routes read and write, each once; those of patterns are not known."""
    found = [topic for route in routes for topic in (route.topic, *route.topics_out)]
    return list(dict.fromkeys(str(each) for each in found))


def of_topics(names: Iterable[str], cluster: Topics) -> Iterator[Check]:
    """Yields the checks of topics. Blocks while it asks the brokers.

    Raises what the client raises, except UnknownTopic.
    """
    for name in names:
        try:
            partitions = cluster.describe_topic(name).partitions
        except UnknownTopic:
            yield Check(False, f"topic {name} exists", f"awoke topics create {name}")
            continue
        replicas = min((len(each.replicas) for each in partitions), default=0)
        yield Check(
            replicas >= REPLICAS_LEAST,
            f"topic {name} has {REPLICAS_LEAST} replicas",
            f"it has {replicas}: while their broker is away, it can't be read",
        )
        entry = cluster.describe_configs(name).get("min.insync.replicas")
        least = int((entry and entry.value) or 1)
        yield Check(
            least >= MIN_IN_SYNC_LEAST,
            f"topic {name} has min.insync.replicas={MIN_IN_SYNC_LEAST}",
            f"it is {least}: awoke topics alter {name}; an acknowledged message may be on one disk only",
        )
