"""A web application under uvicorn and gunicorn: its start, its stop, and a preload before the fork of workers."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import httpx
import pytest

import awoke
from tests.support.clusters import MockCluster, unique
from tests.support.kafka_broker import free_ports
from tests.support.processes import Process

WITHIN_S = 60.0
REQUESTS = 40
LINGERING = "60000"
"""The linger in milliseconds: without the flush at the stop, no message of a request would arrive."""

UVICORN = ("-m", "uvicorn", "tests.scenarios.web_app:api", "--port")
GUNICORN = (
    *("-m", "gunicorn", "tests.scenarios.web_app:api", "-k", "uvicorn_worker.UvicornWorker"),
    *("-w", "2", "--preload", "--no-control-socket", "-b"),
)


class Server(NamedTuple):
    """A program that serves the web application, in the processes that it forks."""

    program: tuple[str, ...]
    workers: int

    def arguments(self, port: int) -> list[str]:
        return [*self.program, f"127.0.0.1:{port}" if self.program[-1] == "-b" else str(port)]


SERVERS = {
    "uvicorn": Server(UVICORN, 1),
    "gunicorn": Server(GUNICORN, 2),
}


@contextmanager
def served(server: Server, port: int, topic: str, brokers: str, **env: str) -> Iterator[Process]:
    known = {"AWOKE_BOOTSTRAP_SERVERS": brokers, "AWOKE_KAFKA_LINGER_MS": LINGERING, "WEB_TOPIC": topic}
    with Process(*server.arguments(port), env={**known, **env}, program=()) as process:
        yield process


def wait_until_started(process: Process, workers: int) -> None:
    process.wait_until(lambda lines: sum("startup complete" in line for line in lines) == workers)


@pytest.mark.parametrize("name", SERVERS)
def test_what_requests_have_sent_is_delivered_when_the_server_stops(mock_cluster: MockCluster, name: str) -> None:
    server, topic, (port,) = SERVERS[name], unique("requests"), free_ports(1)
    mock_cluster.create_topic(topic)
    with served(server, port, topic, mock_cluster.bootstrap_servers) as process:
        wait_until_started(process, server.workers)
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=WITHIN_S) as client:
            pids = {client.post(f"/{number}").json() for number in range(REQUESTS)}
        assert len(pids) <= server.workers
        process.signal(signal.SIGTERM)
        code = process.wait()
    assert code in (0, -signal.SIGTERM), process.output  # uvicorn ends as the signal would have ended it.
    with awoke.Reader(topic, bootstrap_servers=mock_cluster.bootstrap_servers) as reader:
        assert sorted(int(message.value) for message in reader.read_until_end(WITHIN_S)) == list(range(REQUESTS))


def test_a_server_does_not_start_without_brokers() -> None:
    port, nowhere = free_ports(2)
    with served(SERVERS["uvicorn"], port, "none", f"127.0.0.1:{nowhere}", AWOKE_STARTUP_TIMEOUT_S="0.2") as process:
        assert process.wait() == 3
    assert "BrokerUnreachable" in process.output


def test_a_lazy_server_starts_without_brokers() -> None:
    port, nowhere = free_ports(2)
    with served(SERVERS["uvicorn"], port, "none", f"127.0.0.1:{nowhere}", WEB_LAZY="1") as process:
        wait_until_started(process, 1)
        process.signal(signal.SIGTERM)
        assert process.wait() in (0, -signal.SIGTERM)


def test_a_port_that_is_taken_ends_the_server_and_closes_the_app(mock_cluster: MockCluster) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with served(SERVERS["uvicorn"], port, "none", mock_cluster.bootstrap_servers) as process:
            assert process.wait() == 3
    assert "address already in use" in process.output
    assert "Application shutdown complete" in process.output


FORKED = """
import asyncio, os, sys
from tests.scenarios.web_app import api, app

async def start() -> None:
    async with api.router.lifespan_context(api):
        pass

app.producer
child = os.fork()
if child == 0:
    try:
        asyncio.run(start())
    except BaseException as error:
        print(type(error).__name__, flush=True)
    os._exit(0)
os.waitpid(child, 0)
app.close_producer()
"""


def test_a_producer_that_was_made_before_the_fork_ends_the_start(mock_cluster: MockCluster) -> None:
    env = {"AWOKE_BOOTSTRAP_SERVERS": mock_cluster.bootstrap_servers}
    with Process("-W", "ignore", "-c", FORKED, env=env, program=()) as process:
        assert process.wait() == 0
    assert process.output == "ForkedClientError"
