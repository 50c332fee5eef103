"""The catalogue of all metrics, with names, units and labels, from which the recorder and docs/metrics.md are made.

The counters of events come from the events' classes (`awoke.observe.events.catalogue`); the others stand here.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from awoke.observe.events.catalogue import counters
from awoke.observe.events.event import Counter


class Metric(NamedTuple):
    """One metric as Prometheus shows it."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    labels: tuple[str, ...]
    text: str
    """Its meaning, with its unit."""


MESSAGES = Metric(
    "awoke_messages_total", "counter", ("topic", "handler"), "Messages in jobs that have ended, retries included."
)
MESSAGE_BYTES = Metric(
    "awoke_message_bytes_total", "counter", ("topic", "handler"), "Their keys and values together, in bytes."
)
JOBS = Metric(
    "awoke_jobs_total",
    "counter",
    ("topic", "handler", "outcome"),
    "Jobs that have ended: done, failed, or fenced (the partition was taken away meanwhile).",
)
JOB_WAIT = Metric(
    "awoke_job_wait_seconds",
    "histogram",
    ("topic",),
    "From the time when a partition is ready to the time when a worker takes it, in seconds.",
)
JOB_RUN = Metric("awoke_job_run_seconds", "histogram", ("topic", "handler"), "Run time of a job, in seconds.")
LAG = Metric(
    "awoke_lag_messages",
    "gauge",
    ("group", "topic", "partition"),
    "Messages from the first that is not completed to the end of the partition, as the last fetch saw it.",
)
COMMIT_GAP = Metric(
    "awoke_commit_gap_messages",
    "gauge",
    ("group", "topic", "partition"),
    "Messages from the first that is not completed to the last that was begun, where several of a partition run at "
    "once.",
)
DONE_BEYOND = Metric(
    "awoke_done_beyond_messages",
    "gauge",
    ("group", "topic", "partition"),
    "Messages that are completed behind the first that is not, where several of a partition run at once.",
)
COMMIT_GAP_AGE = Metric(
    "awoke_commit_gap_seconds",
    "gauge",
    ("group", "topic", "partition"),
    "The time since the first message that is not completed was begun, in seconds.",
)
ASSIGNED = Metric("awoke_assigned_partitions", "gauge", ("group",), "Partitions that are assigned now.")
STUCK = Metric(
    "awoke_stuck_partitions",
    "gauge",
    ("group", "topic"),
    "Partitions whose messages no longer come until they are resumed.",
)
FAILING = Metric(
    "awoke_failing_messages", "gauge", ("group", "topic"), "Messages that have failed and are tried again."
)
FETCH_QUEUE = Metric(
    "awoke_fetch_queue_limit_bytes",
    "gauge",
    ("group",),
    "The maximum of bytes that are fetched ahead of each assigned partition.",
)
THREADS = Metric(
    "awoke_threads", "gauge", ("owner",), "Threads that are alive, by owner; those without one under an empty name."
)
HANDED_OUT = Metric("awoke_scheduled_total", "counter", ("pool",), "Jobs and hooks given to workers.")
JOB_WAKES = Metric(
    "awoke_job_wakeups_total",
    "counter",
    ("pool",),
    "Times that a waiting worker was woken for a job; per job at most 1.",
)
CLOCK_WAKES = Metric(
    "awoke_clock_wakeups_total", "counter", ("pool",), "Times that a waiting worker was woken to watch the clock."
)
QUEUED = Metric("awoke_producer_queue_messages", "gauge", (), "Messages that wait for their delivery report.")
QUEUED_BYTES = Metric("awoke_producer_queue_bytes", "gauge", (), "Their keys, values and headers together, in bytes.")
BROKERS_CONNECTED = Metric(
    "awoke_connected_brokers",
    "gauge",
    ("client",),
    "Brokers to which a connection is open, by librdkafka's last statistics.",
)
BROKER_QUEUE = Metric(
    "awoke_broker_queue_seconds",
    "gauge",
    ("client", "broker"),
    "From produce to the request that carries the message: mean of the last interval, in seconds.",
)
BROKER_ROUND_TRIP = Metric(
    "awoke_broker_round_trip_seconds",
    "gauge",
    ("client", "broker"),
    "From a request to its answer: mean of the last interval, in seconds.",
)
BROKER_SENT = Metric("awoke_broker_sent_bytes_total", "counter", ("client", "broker"), "Bytes sent to a broker.")
BROKER_RECEIVED = Metric(
    "awoke_broker_received_bytes_total", "counter", ("client", "broker"), "Bytes received from a broker."
)
BROKER_RETRIES = Metric(
    "awoke_broker_retries_total", "counter", ("client", "broker"), "Requests that were sent to a broker again."
)
BROKER_ERRORS = Metric(
    "awoke_broker_errors_total", "counter", ("client", "broker"), "Requests that failed or had no answer in time."
)
CALLS = Metric(
    "awoke_rpc_calls_total",
    "counter",
    ("method", "outcome"),
    "Remote calls that were answered: ok, cached (answered before under the same key), or the code of an error.",
)
CALL_QUEUE = Metric(
    "awoke_rpc_queue_seconds", "histogram", ("method",), "From a remote call to its being received, in seconds."
)
CALL_RUN = Metric("awoke_rpc_run_seconds", "histogram", ("method",), "Run time of a remote call's method, in seconds.")
CALL_REPLY = Metric(
    "awoke_rpc_reply_seconds", "histogram", ("method",), "From a reply to its acknowledgement, in seconds."
)
CALLS_EXPIRED = Metric(
    "awoke_rpc_expired_total", "counter", (), "Remote calls that were skipped because their deadline had passed."
)
CALLS_RUNNING = Metric("awoke_rpc_running_calls", "gauge", (), "Remote calls that are being executed.")
CALLS_WAITING = Metric(
    "awoke_rpc_waiting_calls", "gauge", (), "Remote calls that wait for a thread, a task or their method."
)
CALLER = Metric(
    "awoke_rpc_caller_total",
    "counter",
    ("service", "what"),
    "Events of callers made by app.caller: calls begun and expired; replies, and those that were late, duplicate, "
    "unknown, foreign (other callers'), forged, too_large or undecodable.",
)
CALLER_OPEN = Metric("awoke_rpc_open_calls", "gauge", ("service",), "Calls of such callers that have not ended.")
REGISTRY_HITS = Metric(
    "awoke_registry_cache_hits_total",
    "counter",
    (),
    "Uses of a schema that was loaded from the schema registry before.",
)
REGISTRY_MISSES = Metric(
    "awoke_registry_cache_misses_total", "counter", (), "Schemas that were not in the cache, so that it was asked."
)
REGISTRY_EVICTIONS = Metric(
    "awoke_registry_cache_evictions_total",
    "counter",
    (),
    "Schemas, and what was made of them, that were dropped for others: more than `registry_cache_max` are in use.",
)
REGISTRY_ENTRIES = Metric(
    "awoke_registry_cache_entries", "gauge", (), "Entries of the cache: schemas by id, by GUID, and by subject."
)
REGISTRY_REQUESTS = Metric("awoke_registry_requests_total", "counter", (), "Requests to the schema registry.")
REGISTRY_ERRORS = Metric(
    "awoke_registry_errors_total",
    "counter",
    (),
    "Of them, those without an answer that can be used: no connection, no answer in time, or no access.",
)
REGISTRY_WAIT = Metric(
    "awoke_registry_wait_seconds_total", "counter", (), "Seconds that all these requests together have taken."
)
HEALTHY = Metric("awoke_healthy", "gauge", (), "1 when the process is healthy, else 0; /health has the reasons.")


def of_event(counter: Counter) -> Metric:
    """Returns the metric of an event's counter."""
    return Metric(counter.name, "counter", tuple(counter.labels), counter.text)


COUNTED_EVENTS: tuple[Metric, ...] = tuple(of_event(each) for each in counters())
"""The counters that events increment."""

CATALOGUE: tuple[Metric, ...] = (
    *(value for value in list(globals().values()) if isinstance(value, Metric)),
    *COUNTED_EVENTS,
)
"""All metrics: those above in their order, then those of events."""


def as_markdown() -> str:
    """Returns the catalogue as the table of docs/metrics.md."""
    lines = ["| Metric | Kind | Labels | What it says |", "|---|---|---|---|"]
    for metric in CATALOGUE:
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        lines.append(f"| `{metric.name}` | {metric.kind} | {labels} | {metric.text} |")
    return "\n".join(lines) + "\n"
