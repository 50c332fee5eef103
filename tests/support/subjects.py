"""Ways to read a topic with awoke, which a scenario puts beside one another before the same fault."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import NamedTuple

import awoke
from awoke.testing import running
from tests.support import judge
from tests.support.clusters import unique
from tests.support.waiting import Collected

KINDS = ("plain", "lanes", "exactly_once", "reader")
KAFKA: dict[str, str | int] = {
    "session.timeout.ms": 10_000,
    "reconnect.backoff.max.ms": 500,
    "topic.metadata.refresh.interval.ms": 500,
    "topic.metadata.propagation.max.ms": 1_000,
    "transaction.timeout.ms": 15_000,
}


class Subject(NamedTuple):
    """One way to read a topic, and what came of it."""

    kind: str
    topic: str
    output: str
    """Where the exactly-once route copies to; empty for the others."""
    group: str
    """The reader has none."""
    handled: Collected[bytes]
    """The values, in the order in which user code saw them."""
    rewinds: Collected[awoke.Event]
    """The events `partition.rewound`."""

    def has_handled(self, values: set[bytes]) -> bool:
        """Tells whether user code has seen all of these."""
        return values <= set(self.handled.items)

    def is_done(self, servers: str, values: set[bytes]) -> bool:
        """Tells whether user code has seen all of these and the group has committed the end."""
        return self.has_handled(values) and (not self.group or judge.is_at_end(servers, self.group, self.topic))


def new_subject(kind: str, topic: str, output: str = "") -> Subject:
    """Make one that has read nothing."""
    group = "" if kind == "reader" else unique(f"{kind}-group")
    return Subject(kind, topic, output, group, Collected(), Collected())


@contextlib.contextmanager
def reading(subject: Subject, servers: str) -> Iterator[None]:
    """Read the topic beside the `with` block."""
    if subject.kind == "reader":
        with _reader(subject, servers):
            yield
        return
    app = _app(subject, servers)
    app.events.subscribe("partition.rewound", subject.rewinds.add)
    with running(app):
        yield


def _app(subject: Subject, servers: str) -> awoke.App:
    app = awoke.App(
        subject.group,
        bootstrap_servers=servers,
        kafka=KAFKA,
        workers=2,
        commit_interval_s=0.1,
        shutdown_timeout_s=10.0,
    )

    def handle(message: awoke.Message[bytes]) -> None:
        subject.handled.add(message.value)

    def copy(message: awoke.Message[bytes]) -> bytes:
        subject.handled.add(message.value)
        return message.value

    if subject.kind == "plain":
        app.on(subject.topic)(handle)
    elif subject.kind == "lanes":
        app.on(subject.topic, concurrency=awoke.by_key(8))(handle)
    else:
        app.on(subject.topic, output=subject.output, exactly_once=True)(copy)
    return app


@contextlib.contextmanager
def _reader(subject: Subject, servers: str) -> Iterator[None]:
    with awoke.Reader(subject.topic, bootstrap_servers=servers, kafka=KAFKA) as reader:
        thread = threading.Thread(target=_read, args=(reader, subject), name="reader-subject")
        thread.start()
        try:
            yield
        finally:
            reader.close()
            thread.join()


def _read(reader: awoke.Reader, subject: Subject) -> None:
    with contextlib.suppress(awoke.ClosedError):
        for message in reader:
            subject.handled.add(message.value or b"")
