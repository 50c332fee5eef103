"""The dependencies of FastAPI on an app: its producer and its callers."""

from __future__ import annotations

import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.testclient import TestClient

import awoke
from awoke.fastapi import CallsMiddleware, Producer, lifespan
from tests.support.clusters import MockCluster, unique
from tests.support.web import new_app, sending, served


def test_requests_send_through_the_producer_of_the_app(mock_cluster: MockCluster) -> None:
    topic = unique("sent")
    mock_cluster.create_topic(topic)
    with served(sending(new_app(mock_cluster), topic)) as client:
        assert [client.post(f"/{kind}/order").json() for kind in ("async", "def")] == [0, 1]


def test_a_request_without_the_lifespan_says_what_is_missing() -> None:
    api = FastAPI()
    api.add_middleware(CallsMiddleware)

    @api.get("/")
    async def send(producer: Producer) -> None: ...

    @api.get("/plain")
    async def plain() -> str:
        return "served"

    client = TestClient(api)
    assert client.get("/plain").json() == "served"
    with pytest.raises(awoke.ConfigError, match=r"lifespan=awoke\.fastapi\.lifespan"):
        client.get("/")


def test_a_mounted_application_has_the_dependencies_too(mock_cluster: MockCluster) -> None:
    topic = unique("mounted")
    mock_cluster.create_topic(topic)
    outer = Starlette(lifespan=lifespan(new_app(mock_cluster)))
    outer.mount("/inner", sending(new_app(mock_cluster), topic))
    with served(outer) as client:
        assert client.post("/inner/async/order").json() == 0
