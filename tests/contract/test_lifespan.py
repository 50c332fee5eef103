"""The lifespan of an app in a web application: its start, its stop, and what ends the start."""

from __future__ import annotations

from typing import Annotated

import pytest
from fastapi import FastAPI

import awoke
from awoke import rpc
from awoke.fastapi import CallsMiddleware, Producer, caller, lifespan
from tests.support.clusters import MockCluster, unique
from tests.support.kafka_broker import free_ports
from tests.support.waiting import Collected
from tests.support.web import new_app, sending, served


def test_messages_without_a_waiter_are_delivered_when_the_web_application_stops(mock_cluster: MockCluster) -> None:
    topic, app = unique("late"), new_app(mock_cluster, kafka={"linger.ms": 60_000})
    mock_cluster.create_topic(topic)
    api = FastAPI(lifespan=lifespan(app))

    @api.post("/")
    async def send(producer: Producer) -> None:
        producer.produce(topic, b"order")

    with served(api) as client:
        client.post("/")
        assert app.queued()[0] == 1
    with awoke.Admin(mock_cluster.bootstrap_servers) as admin:
        assert admin.end_offsets(topic) == {0: 1}


def test_a_web_application_may_start_again(mock_cluster: MockCluster) -> None:
    """Each time in another event loop, with another producer."""
    topic = unique("again")
    mock_cluster.create_topic(topic)
    api = sending(new_app(mock_cluster), topic)
    for offset in range(2):
        with served(api) as client:
            assert client.post("/async/order").json() == offset


def test_brokers_that_are_away_end_the_start() -> None:
    (port,) = free_ports(1)
    app = awoke.App("web", bootstrap_servers=f"127.0.0.1:{port}", startup_timeout_s=0.2)
    with pytest.raises(awoke.BrokerUnreachable), served(FastAPI(lifespan=lifespan(app))):
        pass
    assert app.queued() == (0, 0)


def test_a_service_that_is_missing_ends_the_start_and_leaves_nothing_open(mock_cluster: MockCluster) -> None:
    app = new_app(mock_cluster)
    with pytest.raises(awoke.UnknownTopic), served(FastAPI(lifespan=lifespan(app, callers=["missing"]))):
        pass
    assert app.callers() == {}


def test_a_lazy_web_application_starts_without_brokers() -> None:
    (port,) = free_ports(1)
    app = awoke.App("web", bootstrap_servers=f"127.0.0.1:{port}", startup_timeout_s=0.2, shutdown_timeout_s=0.2)
    api = FastAPI(lifespan=lifespan(app, connect=False))
    api.add_middleware(CallsMiddleware)

    @api.get("/price")
    async def price(shop: Annotated[rpc.Caller, caller("shop")]) -> float:
        return float(await shop.acall("quote"))

    with served(api) as client:
        answer = client.get("/price")
    assert (answer.status_code, answer.json()) == (
        503,
        {"detail": "Service Unavailable", "code": "BrokerUnreachable"},
    )


def test_two_web_applications_do_not_share_an_app(mock_cluster: MockCluster) -> None:
    app = new_app(mock_cluster)
    with served(FastAPI(lifespan=lifespan(app))):
        with (
            pytest.raises(awoke.ConfigError, match="another web application"),
            served(FastAPI(lifespan=lifespan(app))),
        ):
            pass
        assert app.producer.produce(unique("own"), b"", partition=0) is not None


@pytest.mark.parametrize("consume", [False, True])
def test_messages_are_consumed_only_if_asked_for(mock_cluster: MockCluster, consume: bool) -> None:
    topic, seen = unique("consumed"), Collected[bytes]()
    mock_cluster.create_topic(topic)
    app = new_app(mock_cluster)
    app.on(topic)(lambda message: seen.add(message.value))
    with served(sending(app, topic, consume=consume)) as client:
        assert client.post("/async/order").json() == 0
        if consume:
            seen.wait_for(1)
    assert len(seen.items) == consume
