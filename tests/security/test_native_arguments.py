"""Wrong arguments of the native module are errors there, and lent memory is never read after its return."""

from __future__ import annotations

import gc
import os
import socket
import threading
from collections.abc import Iterator

import pytest

import awoke
from awoke import _native
from awoke.testing import running
from tests.support.clusters import MockCluster, unique
from tests.support.waiting import Collected

LIFELINE = (1.0, 1.0, 70)
MESSAGES = 50


@pytest.mark.parametrize("tripwire", [-1, 999_999, 2**31 - 1])
def test_a_lifeline_takes_an_open_pipe_only(tripwire: int) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(ValueError, match="tripwire: descriptor"):
        _native.Lifeline(ours.fileno(), tripwire, *LIFELINE)


def test_a_lifeline_takes_an_open_socket_only() -> None:
    reader, writer = os.pipe()
    with pytest.raises(ValueError, match="socket: descriptor"):
        _native.Lifeline(reader, writer, *LIFELINE)
    os.close(reader)
    os.close(writer)


@pytest.fixture
def topic(mock_cluster: MockCluster) -> str:
    """A topic with messages 0, 1, 2 and so on, each with a header."""
    name = unique("lent")
    mock_cluster.create_topic(name)
    with awoke.Producer(mock_cluster.bootstrap_servers) as producer:
        awoke.wait_all([producer.produce(name, b"%d" % at, headers={"at": b"%d" % at}) for at in range(MESSAGES)])
    return name


def test_what_is_picked_from_a_batch_outlives_its_job(mock_cluster: MockCluster, topic: str) -> None:
    app = awoke.App(unique("app"), bootstrap_servers=mock_cluster.bootstrap_servers)
    kept, empty = Collected[awoke.Batch[bytes]](), Collected[awoke.Batch[bytes]]()

    @app.consumer(topic)
    class Keeper(awoke.Consumer):
        def consume(self, batch: awoke.Batch[bytes]) -> None:
            last = len(batch) - 1
            empty.add(batch.pick([]))
            kept.add(batch.pick([last, 0]).pick([1, 0]))

    with running(app):
        kept.wait_until(lambda batches: any(batch[1].offset == MESSAGES - 1 for batch in batches))
    for name in ("first_offset", "last_offset"):
        with pytest.raises(IndexError, match="an empty batch has no offsets"):
            getattr(empty.items[0], name)
    assert (len(empty.items[0]), empty.items[0].offsets()) == (0, [])
    assert repr(empty.items[0]) == f"<Batch {topic}[0], empty>"
    # The client is closed, and its memory given back.
    for batch in kept.items:
        assert [int(value or b"") for value in batch.raw_values()] == batch.offsets()
        assert [message.headers for message in batch] == [[("at", value)] for value in batch.raw_values()]
        assert [bytes(message.value_buffer or b"") for message in batch] == batch.raw_values()


class Reading:
    """Reads a batch when the garbage collector finds it, as a user's finalizer may."""

    def __init__(self, batch: awoke.Batch[bytes]) -> None:
        self.batch, self.itself = batch, self

    def __del__(self) -> None:
        read(self.batch)


def read(batch: awoke.Batch[bytes]) -> None:
    """Read all of a batch."""
    assert [int(value or b"") for value in batch.raw_values()] == batch.offsets()
    assert [message.headers[0][1] for message in batch] == batch.raw_values()
    batch.keys()


@pytest.fixture
def eager_collector() -> Iterator[None]:
    """Has the garbage collector run at nearly every new object."""
    before = gc.get_threshold()
    gc.set_threshold(1, 1, 1)
    yield
    gc.set_threshold(*before)


@pytest.mark.usefixtures("eager_collector")
def test_threads_and_finalizers_read_a_batch_while_its_job_ends(mock_cluster: MockCluster, topic: str) -> None:
    app = awoke.App(unique("app"), bootstrap_servers=mock_cluster.bootstrap_servers)
    done, threads = Collected[int](), list[threading.Thread]()

    def read_often(batch: awoke.Batch[bytes]) -> None:
        for _ in range(10):
            Reading(batch)
            read(batch)

    @app.consumer(topic, batch=awoke.Batching(max_messages=5))
    class Reader(awoke.Consumer):
        def consume(self, batch: awoke.Batch[bytes]) -> None:
            threads.append(threading.Thread(target=read_often, args=(batch,)))
            threads[-1].start()
            done.add(len(batch))

    with running(app):
        done.wait_until(lambda counts: sum(counts) == MESSAGES, 60)
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
