"""After a fork: what was made before says so, and what is made after works."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import pytest

import awoke
from tests.support.clusters import MockCluster, unique
from tests.support.processes import in_child


def test_a_client_of_the_parent_says_so_in_the_child(mock_cluster: MockCluster) -> None:
    topic = unique("fork")
    mock_cluster.create_topic(topic)
    producer = awoke.Producer(mock_cluster.bootstrap_servers)
    handle = producer.produce(topic, b"parent")
    handle.wait(10)

    def check() -> None:
        uses: list[Callable[[], object]] = [
            lambda: producer.produce(topic, b"child"),
            lambda: producer.flush(1),
            lambda: producer.close(1),
            lambda: handle.wait(1),
            lambda: awoke.wait_all([handle]),
            handle.done,
            handle.exception,
            handle.result,
        ]
        assert "another process" in repr(handle)
        for use in uses:
            with pytest.raises(awoke.ForkedClientError) as refused:
                use()
            assert refused.value.pid == os.getppid()

    assert in_child(check) == 0
    producer.produce(topic, b"parent again").wait(10)
    producer.close(5)


FORKS_FIRST = """
import os, sys
import awoke

app = awoke.App("forks", bootstrap_servers=sys.argv[1])
pid = os.fork()
if pid == 0:
    offset = app.producer.produce(sys.argv[2], b"child").wait(10).offset
    app.close_producer()
    os._exit(0 if offset == 0 else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


def test_a_client_that_is_made_after_the_fork_works(mock_cluster: MockCluster) -> None:
    # In a process of its own, with one thread: a lock of the C library that another thread held at the fork (that of
    # getaddrinfo, for one) would stay locked in the child for ever.
    topic = unique("fork")
    mock_cluster.create_topic(topic)
    command = [sys.executable, "-c", FORKS_FIRST, mock_cluster.bootstrap_servers, topic]
    assert subprocess.run(command, timeout=60, check=False).returncode == 0


def test_a_client_of_the_parent_can_be_dropped_in_the_child(mock_cluster: MockCluster) -> None:
    held = [awoke.Producer(mock_cluster.bootstrap_servers)]
    parent = held[0]
    assert in_child(held.clear) == 0
    parent.close(5)
