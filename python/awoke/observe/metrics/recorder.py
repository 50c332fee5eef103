"""Keeps the metrics of one app: counted as jobs end and events come, or read from their owners on request.

It uses prometheus-client with a registry of its own, so that two apps in a process do not mix.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from awoke.observe.events import ClientStatistics, Event
from awoke.observe.metrics import catalogue
from awoke.observe.metrics.catalogue import Metric
from awoke.observe.metrics.otel import Instruments
from awoke.observe.metrics.statistics import BrokerStatistics, brokers_of, merged
from awoke.observe.partitions import PartitionState

BUCKETS_S = (0.0001, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0, 300.0, 3600.0)


class EndedJob(NamedTuple):
    """The measures of a job that has ended."""

    messages: int
    """The messages that it has completed."""
    size_bytes: int
    """The bytes of their keys and values."""
    waited_s: float
    ran_s: float
    outcome: Literal["done", "failed", "fenced"]


class Health(NamedTuple):
    """The health of a process, with the reasons of bad health."""

    is_healthy: bool
    reasons: list[str]
    """One sentence for each problem; empty when the process is healthy."""


class Owned(Protocol):
    """A thread with an owner."""

    @property
    def owner(self) -> str: ...


class GroupSource(Protocol):
    """A consumer group of the app."""

    @property
    def group(self) -> str: ...
    def partitions(self) -> Sequence[PartitionState]: ...
    def stuck(self) -> Sequence[tuple[str, int, str, bool]]: ...
    def failing(self) -> Sequence[tuple[str, int]]: ...
    def fetch_queue_bytes(self) -> int | None: ...


class Sources(Protocol):
    """The owners of values that are read on request."""

    @property
    def joining(self) -> Sequence[GroupSource]:
        """The consumer groups that the app has routes of."""

    def counters(self) -> dict[str, dict[str, int]]: ...
    def threads(self) -> Sequence[Owned]: ...
    def queued(self) -> tuple[int, int]: ...
    def health(self) -> Health: ...
    def calls(self) -> dict[str, int]: ...
    def callers(self) -> dict[str, dict[str, int]]: ...
    def registry(self) -> dict[str, float]: ...


class Recorder:
    """Keeps the metrics of one app. Any thread may call everything here."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._counters: dict[str, Counter] = {}
        self._histograms: dict[str, Histogram] = {}
        self._instruments: Instruments | None = None
        self._brokers: dict[tuple[str, str, str], BrokerStatistics] = {}
        """librdkafka's last statistics, by name and kind of the client, and by broker."""
        for metric in catalogue.CATALOGUE:
            if metric.kind == "histogram":
                self._histograms[metric.name] = Histogram(
                    metric.name, metric.text, metric.labels, registry=self._registry, buckets=BUCKETS_S
                )
            elif metric.kind == "counter" and metric not in READ_WHEN_ASKED:
                self._counters[metric.name] = Counter(metric.name, metric.text, metric.labels, registry=self._registry)

    def attach(self, sources: Sources) -> None:
        """Has the other metrics read from here on request. Call it once."""
        self._registry.register(SourcesCollector(sources, self._brokers))

    def open_instruments(self, attributes: Mapping[str, str]) -> None:
        """Gives all metrics to OpenTelemetry, too, each value with these attributes. Call it before any job.

        Raises:
            ConfigError: OpenTelemetry is not installed.
        """
        self._instruments = Instruments(self._registry, BUCKETS_S, attributes)

    def close(self) -> None:
        """Gives OpenTelemetry no more values. Does not block."""
        if self._instruments is not None:
            self._instruments.close()

    def text(self) -> bytes:
        """Returns all metrics in Prometheus's text format."""
        return generate_latest(self._registry)

    def job_ended(self, topic: str, handler: str, job: EndedJob) -> None:
        """Counts a job that has ended. Does not block."""
        self._count(catalogue.MESSAGES, job.messages, topic, handler)
        self._count(catalogue.MESSAGE_BYTES, job.size_bytes, topic, handler)
        self._count(catalogue.JOBS, 1, topic, handler, job.outcome)
        self._observe(catalogue.JOB_WAIT, job.waited_s, topic)
        self._observe(catalogue.JOB_RUN, job.ran_s, topic, handler)

    def call_ended(self, method: str, outcome: str, queue_s: float, run_s: float) -> None:
        """Counts a remote call that was answered; the method is empty where the service has none of its name."""
        self._count(catalogue.CALLS, 1, method, outcome)
        self._observe(catalogue.CALL_QUEUE, queue_s, method)
        self._observe(catalogue.CALL_RUN, run_s, method)

    def reply_acknowledged(self, method: str, reply_s: float) -> None:
        """Counts a reply that the brokers have acknowledged."""
        self._observe(catalogue.CALL_REPLY, reply_s, method)

    def on_event(self, event: Event) -> None:
        """Counts an event by the counter of its class, and keeps what librdkafka measures. Does not block."""
        if isinstance(event, ClientStatistics):
            for each in brokers_of(event):
                self._brokers[(event.client, each.client, each.broker)] = each
        if event.counter is not None and event.increment > 0:
            self._increment(event.counter.name, event.increment, event.label_values)

    def _count(self, metric: Metric, count: int, *labels: str) -> None:
        self._increment(metric.name, count, labels)

    def _observe(self, metric: Metric, value: float, *labels: str) -> None:
        self._histograms[metric.name].labels(*labels).observe(value)
        if self._instruments is not None:
            self._instruments.record(metric, value, labels)

    def _increment(self, name: str, count: int, labels: tuple[str, ...]) -> None:
        counter = self._counters[name]
        (counter.labels(*labels) if labels else counter).inc(count)


REGISTRY_COUNTERS = {
    catalogue.REGISTRY_HITS: "hits",
    catalogue.REGISTRY_MISSES: "misses",
    catalogue.REGISTRY_EVICTIONS: "evictions",
    catalogue.REGISTRY_REQUESTS: "requests",
    catalogue.REGISTRY_ERRORS: "errors",
    catalogue.REGISTRY_WAIT: "wait_s",
}
"""Counters of the schema registry's client, and their names there."""

READ_WHEN_ASKED = frozenset(
    {
        catalogue.HANDED_OUT,
        catalogue.JOB_WAKES,
        catalogue.CLOCK_WAKES,
        catalogue.BROKER_SENT,
        catalogue.BROKER_RECEIVED,
        catalogue.BROKER_RETRIES,
        catalogue.BROKER_ERRORS,
        catalogue.CALLS_EXPIRED,
        catalogue.CALLER,
        *REGISTRY_COUNTERS,
    }
)
"""Counters that the engine, librdkafka and the client of the schema registry keep."""


class SourcesCollector(Collector):
    """Reads the metrics that the engine, librdkafka and the runtime keep."""

    def __init__(self, sources: Sources, brokers: Mapping[tuple[str, str, str], BrokerStatistics]) -> None:
        self._sources, self._brokers = sources, brokers

    def collect(self) -> Iterable[Family]:
        """Yields the metrics with their present values."""
        yield from self._of_groups()
        owners = [thread.owner for thread in self._sources.threads()]
        yield gauge(catalogue.THREADS, [((owner,), owners.count(owner)) for owner in sorted(set(owners))])
        messages, size_bytes = self._sources.queued()
        yield gauge(catalogue.QUEUED, [((), messages)])
        yield gauge(catalogue.QUEUED_BYTES, [((), size_bytes)])
        yield gauge(catalogue.HEALTHY, [((), int(self._sources.health().is_healthy))])
        counters = self._sources.counters()
        for metric, name in (
            (catalogue.HANDED_OUT, "jobs"),
            (catalogue.JOB_WAKES, "job_wakes"),
            (catalogue.CLOCK_WAKES, "clock_wakes"),
        ):
            yield counter(metric, [((pool,), counts[name]) for pool, counts in counters.items()])
        calls = self._sources.calls()
        yield counter(catalogue.CALLS_EXPIRED, [((), calls["expired"])] if calls else [])
        yield gauge(catalogue.CALLS_RUNNING, [((), calls["running"])] if calls else [])
        yield gauge(catalogue.CALLS_WAITING, [((), calls["waiting"])] if calls else [])
        callers = {service: dict(counts) for service, counts in self._sources.callers().items()}
        yield gauge(catalogue.CALLER_OPEN, [((service,), counts.pop("open")) for service, counts in callers.items()])
        counted = [((service, what), count) for service, counts in callers.items() for what, count in counts.items()]
        yield counter(catalogue.CALLER, counted)
        yield from self._of_registry()
        yield from self._of_brokers()

    def _of_groups(self) -> Iterable[Family]:
        groups = self._sources.joining
        states = [(each.group, each.partitions()) for each in groups]
        placed = [((name, each.topic, str(each.partition)), each) for name, found in states for each in found]
        yield gauge(catalogue.LAG, [(labels, each.lag) for labels, each in placed if each.lag is not None])
        gaps = [(labels, each.commit_gap) for labels, each in placed]
        behind = [(labels, gap) for labels, gap in gaps if gap is not None]
        yield gauge(catalogue.COMMIT_GAP, [(labels, gap.messages) for labels, gap in behind])
        yield gauge(catalogue.DONE_BEYOND, [(labels, gap.done) for labels, gap in behind])
        yield gauge(catalogue.COMMIT_GAP_AGE, [(labels, gap.oldest_s) for labels, gap in behind])
        yield gauge(catalogue.ASSIGNED, [((name,), len(found)) for name, found in states])
        stuck = Tally((each.group, topic) for each in groups for topic, *_ in each.stuck())
        yield gauge(catalogue.STUCK, sorted(stuck.items()))
        failing = Tally((each.group, topic) for each in groups for topic, _ in each.failing())
        yield gauge(catalogue.FAILING, sorted(failing.items()))
        limits = [((each.group,), each.fetch_queue_bytes()) for each in groups]
        yield gauge(catalogue.FETCH_QUEUE, [(labels, limit) for labels, limit in limits if limit is not None])

    def _of_registry(self) -> Iterable[Family]:
        counts = self._sources.registry()
        for metric, name in REGISTRY_COUNTERS.items():
            yield counter(metric, [((), counts[name])] if counts else [])
        yield gauge(catalogue.REGISTRY_ENTRIES, [((), counts["entries"])] if counts else [])

    def _of_brokers(self) -> Iterable[Family]:
        # A copy: a client may report meanwhile. Each group of the app has a consumer.
        brokers = merged(dict(self._brokers).values()).items()
        clients = sorted({client for (client, _), _ in brokers})
        connected = {client: sum(each.is_connected for (of, _), each in brokers if of == client) for client in clients}
        yield gauge(catalogue.BROKERS_CONNECTED, [((client,), count) for client, count in connected.items()])
        yield gauge(catalogue.BROKER_QUEUE, [(labels, each.queue_s) for labels, each in brokers])
        yield gauge(catalogue.BROKER_ROUND_TRIP, [(labels, each.round_trip_s) for labels, each in brokers])
        yield counter(catalogue.BROKER_SENT, [(labels, each.sent_bytes) for labels, each in brokers])
        yield counter(catalogue.BROKER_RECEIVED, [(labels, each.received_bytes) for labels, each in brokers])
        yield counter(catalogue.BROKER_RETRIES, [(labels, each.retries) for labels, each in brokers])
        yield counter(catalogue.BROKER_ERRORS, [(labels, each.errors) for labels, each in brokers])


Samples = Iterable[tuple[tuple[str, ...], float]]
"""Label values and the value."""


def gauge(metric: Metric, samples: Samples) -> GaugeMetricFamily:
    """Returns a gauge with its present values."""
    family = GaugeMetricFamily(metric.name, metric.text, labels=metric.labels)
    for labels, value in samples:
        family.add_metric(labels, value)
    return family


def counter(metric: Metric, samples: Samples) -> CounterMetricFamily:
    """Returns a counter with its present values."""
    family = CounterMetricFamily(metric.name, metric.text, labels=metric.labels)
    for labels, value in samples:
        family.add_metric(labels, value)
    return family
