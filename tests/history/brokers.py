"""Three brokers, each behind a proxy that can cut the members' connections; producer and judge go past the proxies."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

from tests.support.kafka_broker import free_ports
from tests.support.kafka_cluster import ThreeBrokers
from tests.support.kafka_proxy import KafkaProxy

SESSION_MS = "6000"
GROUP_PROPERTIES = {
    "group.consumer.session.timeout.ms": SESSION_MS,
    "group.consumer.min.session.timeout.ms": SESSION_MS,
    "group.consumer.heartbeat.interval.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "1000",
}
"""Of the protocol of KIP-848, whose times the broker decides."""


class ProxiedBrokers(ThreeBrokers):
    """Members begin at `proxied_servers`. A context manager."""

    def __init__(self, *, has_internal_topics_on_1: bool) -> None:
        super().__init__(has_internal_topics_on_1=has_internal_topics_on_1)
        ports = free_ports(6)
        self._behind = dict(zip((1, 2, 3), ports[:3], strict=True))
        """The listener of each broker that its proxy connects to."""
        self.proxies = {each: KafkaProxy(ports[2 + each], self._behind[each]) for each in (1, 2, 3)}

    @property
    def proxied_servers(self) -> str:
        """Where the members begin."""
        return ",".join(f"127.0.0.1:{proxy.port}" for proxy in self.proxies.values())

    def _write_properties(self, broker_id: int, port: int, controller: int, voters: str) -> Path:
        file = super()._write_properties(broker_id, port, controller, voters)
        settings = dict(line.split("=", 1) for line in file.read_text().splitlines())
        settings |= GROUP_PROPERTIES
        settings["listeners"] += f",PROXIED://127.0.0.1:{self._behind[broker_id]}"
        settings["advertised.listeners"] += f",PROXIED://127.0.0.1:{self.proxies[broker_id].port}"
        settings["listener.security.protocol.map"] += ",PROXIED:PLAINTEXT"
        settings["inter.broker.listener.name"] = "PLAINTEXT"
        file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        return file

    def __enter__(self) -> ProxiedBrokers:
        for proxy in self.proxies.values():
            proxy.__enter__()
        super().__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for proxy in self.proxies.values():
            proxy.__exit__(kind, error, trace)
        super().__exit__(kind, error, trace)
