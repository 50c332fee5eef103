"""Web applications that send and call, for the tests of what they have from awoke."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

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
