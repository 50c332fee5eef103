"""Web applications that send and call, for the tests of what they have from awoke."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.testclient import TestClient

import awoke
from awoke.fastapi import CallsMiddleware, Producer, lifespan
from tests.support.clusters import MockCluster, unique


def new_app(cluster: MockCluster, **settings: Any) -> awoke.App:
    return awoke.App(unique("web"), bootstrap_servers=cluster.bootstrap_servers, **settings)


def sending(app: awoke.App, topic: str, **options: Any) -> FastAPI:
    """A web application that sends a message for each request, by an `async def` and by a `def`."""
    api = FastAPI(lifespan=lifespan(app, **options))
    api.add_middleware(CallsMiddleware)

    @api.post("/async/{value}")
    async def send(value: str, producer: Producer) -> int:
        return (await producer.produce(topic, value)).offset

    @api.post("/def/{value}")
    def send_blocking(value: str, producer: Producer) -> int:
        return producer.produce(topic, value).wait().offset

    return api


@contextlib.contextmanager
def served(api: Starlette, *, raises: bool = True) -> Iterator[TestClient]:
    """Starts a web application, and gives a client of it. Ends with the last of its threads.

    An exception of an endpoint is raised in the client, or else is a response.
    """
    try:
        with TestClient(api, raise_server_exceptions=raises) as client:
            yield client
    finally:
        for thread in threading.enumerate():
            if thread.name == "AnyIO worker thread":  # It was told to end, and is not joined.
                thread.join(30)
