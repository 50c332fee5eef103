"""The middleware of requests: errors of calls as HTTP statuses, deadlines and traces."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any

import httpx
import pytest
from fastapi import BackgroundTasks, FastAPI, WebSocket, WebSocketDisconnect
from fastapi.responses import StreamingResponse
from starlette.testclient import TestClient

import awoke
from awoke import rpc
from awoke.fastapi import CallsMiddleware, caller, lifespan
from awoke.testing import running
from tests.support.clusters import MockCluster, read_all, unique
from tests.support.web import new_app, sending, served

WITHIN_S = 30.0
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TIMEOUT_HEADER = "x-envoy-expected-rq-timeout-ms"
SERVICE = "shop-of-web"
ShopCaller = Annotated[rpc.Caller, caller(SERVICE)]


class Refused(rpc.FailedPrecondition):
    code = "sold_out"


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
        def trace() -> str:
            return (rpc.current_call().headers.get("traceparent") or b"").decode()

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
    with served(shop.web(new_app(mock_cluster)), raises=False) as client:
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
    with served(api) as client:
        assert client.get("/async/left", headers={TIMEOUT_HEADER: "1"}).json() <= 2
        assert client.get("/async/left", headers={"x-time": "1000"}).json() <= 1
        assert 1 < client.get("/async/left", headers={"x-time": "100000"}).json() <= 2


def test_what_goes_on_after_a_response_has_begun_has_no_deadline(shop: Shop, mock_cluster: MockCluster) -> None:
    """A stream and a background task; and a WebSocket, which is no request that has to be quick."""
    api = FastAPI(lifespan=lifespan(new_app(mock_cluster), callers={shop.service.name: {}}))
    api.add_middleware(CallsMiddleware, timeout_s=1)
    left = dict[str, float]()

    @api.get("/stream")
    async def stream(shop: ShopCaller, background: BackgroundTasks) -> StreamingResponse:
        left["request"] = await shop.acall("left")

        async def parts() -> AsyncIterator[str]:
            yield "begun "
            left["stream"] = await shop.acall("left")
            yield "over"

        async def later() -> None:
            left["background"] = await shop.acall("left")

        background.add_task(later)
        return StreamingResponse(parts(), background=background)

    @api.websocket("/socket")
    async def socket(websocket: WebSocket) -> None:
        await websocket.accept()
        left["socket"] = await websocket.app.state.shop.acall("left")
        await websocket.close()

    @api.get("/keep")
    async def keep(shop: ShopCaller) -> None:
        api.state.shop = shop

    with served(api) as client:
        client.get("/keep")
        assert client.get("/stream").text == "begun over"
        with client.websocket_connect("/socket") as connected, pytest.raises(WebSocketDisconnect):
            connected.receive_text()
    assert left["request"] <= 1
    assert {name for name, left_s in left.items() if left_s > 1} == {"stream", "background", "socket"}


def test_messages_and_calls_continue_the_trace_of_their_request(mock_cluster: MockCluster) -> None:
    topic, app = unique("traced"), new_app(mock_cluster, tracing=True)
    mock_cluster.create_topic(topic)
    with served(sending(app, topic)) as client:
        client.post("/async/1", headers={"traceparent": f"00-{TRACE}-{PARENT}-01"})
        client.post("/def/2", headers={"traceparent": f"00-{TRACE}-{PARENT}-01"})
        client.post("/async/3")
    headers = [dict(message.headers).get("traceparent", b"") for message in read_all(mock_cluster, topic)]
    assert [TRACE.encode() in (each or b"") for each in headers] == [True, True, False]


@pytest.mark.parametrize("kind", ["async", "def"])
def test_the_service_gets_the_trace_of_the_request(shop: Shop, mock_cluster: MockCluster, kind: str) -> None:
    with served(shop.web(new_app(mock_cluster, tracing=True))) as client:
        found = client.get(f"/{kind}/trace", headers={"traceparent": f"00-{TRACE}-{PARENT}-01"}).json()
    assert TRACE in found


async def test_a_response_that_has_begun_stays_as_it_is() -> None:
    async def stream(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise rpc.NotFound("too late")

    transport = httpx.ASGITransport(CallsMiddleware(stream))
    async with httpx.AsyncClient(transport=transport, base_url="http://web") as client:
        with pytest.raises(rpc.NotFound):
            await client.get("/")
