"""An app inside FastAPI: its lifespan, its dependencies, and the errors, deadlines and traces of requests."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Annotated, Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.testclient import TestClient

import awoke
import awoke.fastapi
from awoke import rpc
from awoke.fastapi import CallsMiddleware, Producer, caller, lifespan
from awoke.testing import running
from tests.support.clusters import MockCluster, unique
from tests.support.kafka_broker import free_ports
from tests.support.waiting import Collected

WITHIN_S = 30.0
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TIMEOUT_HEADER = "x-envoy-expected-rq-timeout-ms"


SERVICE = "shop-of-web"
ShopCaller = Annotated[rpc.Caller, caller(SERVICE)]


class Refused(rpc.FailedPrecondition):
    code = "sold_out"


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


def test_requests_send_through_the_producer_of_the_app(mock_cluster: MockCluster) -> None:
    topic = unique("sent")
    mock_cluster.create_topic(topic)
    with TestClient(sending(new_app(mock_cluster), topic)) as client:
        assert [client.post(f"/{kind}/order").json() for kind in ("async", "def")] == [0, 1]


def test_messages_without_a_waiter_are_delivered_when_the_web_application_stops(mock_cluster: MockCluster) -> None:
    topic, app = unique("late"), new_app(mock_cluster, kafka={"linger.ms": 60_000})
    mock_cluster.create_topic(topic)
    api = FastAPI(lifespan=lifespan(app))

    @api.post("/")
    async def send(producer: Producer) -> None:
        producer.produce(topic, b"order")

    with TestClient(api) as client:
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
        with TestClient(api) as client:
            assert client.post("/async/order").json() == offset


def test_brokers_that_are_away_end_the_start() -> None:
    (port,) = free_ports(1)
    app = awoke.App("web", bootstrap_servers=f"127.0.0.1:{port}", startup_timeout_s=0.2)
    with pytest.raises(awoke.BrokerUnreachable), TestClient(FastAPI(lifespan=lifespan(app))):
        pass
    assert app.queued() == (0, 0)


def test_a_service_that_is_missing_ends_the_start_and_leaves_nothing_open(mock_cluster: MockCluster) -> None:
    app = new_app(mock_cluster)
    with pytest.raises(awoke.UnknownTopic), TestClient(FastAPI(lifespan=lifespan(app, callers=["missing"]))):
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

    with TestClient(api) as client:
        answer = client.get("/price")
    assert (answer.status_code, answer.json()) == (
        503,
        {"detail": "Service Unavailable", "code": "BrokerUnreachable"},
    )


def test_two_web_applications_do_not_share_an_app(mock_cluster: MockCluster) -> None:
    app = new_app(mock_cluster)
    with TestClient(FastAPI(lifespan=lifespan(app))):
        with (
            pytest.raises(awoke.ConfigError, match="another web application"),
            TestClient(FastAPI(lifespan=lifespan(app))),
        ):
            pass
        assert app.producer.produce(unique("own"), b"", partition=0) is not None


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
    with TestClient(outer) as client:
        assert client.post("/inner/async/order").json() == 0


@pytest.mark.parametrize("consume", [False, True])
def test_messages_are_consumed_only_if_asked_for(mock_cluster: MockCluster, consume: bool) -> None:
    topic, seen = unique("consumed"), Collected[bytes]()
    mock_cluster.create_topic(topic)
    app = new_app(mock_cluster)
    app.on(topic)(lambda message: seen.add(message.value))
    with TestClient(sending(app, topic, consume=consume)) as client:
        assert client.post("/async/order").json() == 0
        if consume:
            seen.wait_for(1)
    assert len(seen.items) == consume


# Calls.


def arguments_of(sku: str | None) -> dict[str, Any]:
    return {} if sku is None else {"sku": sku}


class Shop:
    """A service, a web application that calls it, and a client of that."""

    def __init__(self, cluster: MockCluster) -> None:
        self.service = awoke.App(SERVICE, bootstrap_servers=cluster.bootstrap_servers)
        self.held = threading.Event()

        @self.service.rpc.method
        def quote(sku: str) -> float:
            if sku == "none":
                raise rpc.NotFound("there is no such thing", details={"sku": sku})
            if sku == "busy":
                raise rpc.ResourceExhausted("too much to do", retry_after_s=1.5)
            if sku == "sold":
                raise Refused("nothing is left")
            return 9.5

        @self.service.rpc.method
        def left() -> float:
            return rpc.current_call().remaining_s

        @self.service.rpc.method
        def hold() -> None:
            self.held.wait(WITHIN_S)

    def web(self, app: awoke.App, **options: Any) -> FastAPI:
        api = FastAPI(lifespan=lifespan(app, callers={self.service.name: {"errors": [Refused]}}))
        api.add_middleware(CallsMiddleware, **options)

        @api.get("/async/{method}")
        async def call(method: str, shop: ShopCaller, sku: str | None = None) -> Any:
            return await shop.acall(method, **arguments_of(sku))

        @api.get("/def/{method}")
        def call_blocking(method: str, shop: ShopCaller, sku: str | None = None) -> Any:
            return shop.call(method, **arguments_of(sku))

        @api.get("/fails")
        async def fails() -> None:
            raise awoke.ConfigError("a fault of the program", "nothing")

        return api


@pytest.fixture(scope="module")
def shop(mock_cluster: MockCluster) -> Iterator[Shop]:
    shop = Shop(mock_cluster)
    with running(shop.service):
        yield shop


@pytest.fixture
def client(shop: Shop, mock_cluster: MockCluster) -> Iterator[TestClient]:
    with TestClient(shop.web(new_app(mock_cluster)), raise_server_exceptions=False) as client:
        yield client


@pytest.mark.parametrize("kind", ["async", "def"])
def test_an_error_of_a_call_becomes_its_status(client: TestClient, kind: str) -> None:
    assert client.get(f"/{kind}/quote?sku=A1").json() == 9.5
    missing = client.get(f"/{kind}/quote?sku=none")
    assert missing.status_code == 404
    assert missing.json() == {"detail": "there is no such thing", "code": "not_found", "details": {"sku": "none"}}
    busy = client.get(f"/{kind}/quote?sku=busy")
    assert (busy.status_code, busy.headers["retry-after"]) == (429, "2")
    assert client.get(f"/{kind}/quote?sku=sold").json()["code"] == "sold_out"
    assert client.get(f"/{kind}/missing").status_code == 501


def test_a_fault_of_the_program_stays_one(client: TestClient) -> None:
    answer = client.get("/fails")
    assert (answer.status_code, answer.text) == (500, "Internal Server Error")


@pytest.mark.parametrize("kind", ["async", "def"])
def test_a_call_has_no_more_time_than_its_request(client: TestClient, kind: str) -> None:
    assert client.get(f"/{kind}/left", headers={TIMEOUT_HEADER: "2500"}).json() <= 2.5
    assert client.get(f"/{kind}/left").json() > 2.5
    late = client.get(f"/{kind}/quote?sku=A1", headers={TIMEOUT_HEADER: "0"})
    assert (late.status_code, late.json()["code"]) == (504, "deadline_exceeded")


@pytest.mark.parametrize("value", ["soon", "-1", "nan", "inf", "", "1e999"])
def test_a_time_that_is_no_number_is_ignored(client: TestClient, value: str) -> None:
    assert client.get("/async/left", headers={TIMEOUT_HEADER: value}).json() > 2.5


def test_the_time_of_requests_has_a_limit_and_a_header_of_its_own(shop: Shop, mock_cluster: MockCluster) -> None:
    api = shop.web(new_app(mock_cluster), timeout_header="X-Time", timeout_s=2)
    with TestClient(api) as client:
        assert client.get("/async/left", headers={TIMEOUT_HEADER: "1"}).json() <= 2
        assert client.get("/async/left", headers={"x-time": "1000"}).json() <= 1
        assert 1 < client.get("/async/left", headers={"x-time": "100000"}).json() <= 2


def test_messages_and_calls_continue_the_trace_of_their_request(mock_cluster: MockCluster) -> None:
    topic, app = unique("traced"), new_app(mock_cluster, tracing=True)
    mock_cluster.create_topic(topic)
    with TestClient(sending(app, topic)) as client:
        client.post("/async/1", headers={"traceparent": f"00-{TRACE}-{PARENT}-01"})
        client.post("/def/2", headers={"traceparent": f"00-{TRACE}-{PARENT}-01"})
        client.post("/async/3")
    with awoke.Reader(topic, bootstrap_servers=mock_cluster.bootstrap_servers) as reader:
        headers = [dict(message.headers).get("traceparent", b"") for message in reader.read_until_end(WITHIN_S)]
    assert [TRACE.encode() in (each or b"") for each in headers] == [True, True, False]


async def test_a_response_that_has_begun_stays_as_it_is() -> None:
    async def stream(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise rpc.NotFound("too late")

    transport = httpx.ASGITransport(CallsMiddleware(stream))
    async with httpx.AsyncClient(transport=transport, base_url="http://web") as client:
        with pytest.raises(rpc.NotFound):
            await client.get("/")
