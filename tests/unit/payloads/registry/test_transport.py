"""The transports over real connections: headers, answers, failures, several addresses, TLS and closing."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Unpack

import pytest
import trustme

from awoke.errors import ClosedError, ConfigError
from awoke.payloads.registry import (
    BasicAuth,
    BearerToken,
    OAuth,
    RegistryOptions,
    RegistryRefused,
    RegistryUnauthorized,
    RegistryUnavailable,
    SchemaNotFound,
    Tls,
    exchange,
)
from awoke.payloads.registry.transport import MEDIA_TYPE, BlockingTransport, LoopTransport, addresses_of
from awoke.waiting.drive import drive
from tests.support.registry_stub import RegistryStub, Reply, unused_port
from tests.support.waiting import WITHIN_S

Send = Callable[..., Any]


def send_blocking(url: str, *requests: tuple[Any, ...], **options: Unpack[RegistryOptions]) -> list[Any]:
    """Sends requests over one blocking transport and returns the answers."""
    transport = BlockingTransport(url, options)
    try:
        return [drive(transport.send(*each)) for each in requests]
    finally:
        transport.close()


def send_on_loop(url: str, *requests: tuple[Any, ...], **options: Unpack[RegistryOptions]) -> list[Any]:
    """Sends requests over one transport of an event loop and returns the answers."""

    async def run() -> list[Any]:
        transport = LoopTransport(url, options)
        try:
            return [await transport.send(*each) for each in requests]
        finally:
            await transport.close()

    return asyncio.run(run())


@pytest.fixture(params=[send_blocking, send_on_loop], ids=["blocking", "loop"])
def send(request: pytest.FixtureRequest) -> Send:
    """Both transports, one after the other."""
    found: Send = request.param
    return found


GET = ("GET", "/subjects")


def test_a_request_has_its_headers_and_its_body(send: Send, stub: RegistryStub) -> None:
    stub.answer("GET", "/subjects", Reply(document=["a"]))
    stub.answer("POST", "/apis/subjects/a%2Fb%20c", Reply(document={"id": 7}))
    assert send(stub.url, GET, headers={"X-Tenant": "one", "Accept": "text/html"}) == [["a"]]
    assert send(f"{stub.url}/apis/", ("POST", "/subjects/a%2Fb%20c", {"schema": "ä"})) == [{"id": 7}]
    get, post = stub.requests.items
    assert (get.headers["accept"], get.headers["x-tenant"]) == (MEDIA_TYPE, "one")
    assert "content-type" not in get.headers
    assert "authorization" not in get.headers
    assert (post.path, post.document) == ("/apis/subjects/a%2Fb%20c", {"schema": "ä"})
    assert post.headers["content-type"] == post.headers["accept"] == MEDIA_TYPE


def test_an_answer_that_is_an_error_is_raised_with_its_place(send: Send, stub: RegistryStub) -> None:
    stub.answer("GET", "/schemas/ids/7", Reply(404, {"error_code": 40403, "message": "Schema 7 not found"}))
    with pytest.raises(SchemaNotFound, match=f"GET {stub.url}/schemas/ids/7 answered 404 .40403.: Schema 7") as refused:
        send(stub.url, ("GET", "/schemas/ids/7"))
    assert refused.value.url == f"{stub.url}/schemas/ids/7"


@pytest.mark.parametrize("content", [b"", b"<html>", b"\xff"])
def test_an_answer_that_is_no_json_is_refused(send: Send, stub: RegistryStub, content: bytes) -> None:
    stub.answer("GET", "/subjects", Reply(200, content))
    with pytest.raises(RegistryRefused, match="answered 200"):
        send(stub.url, GET)


def test_a_redirection_is_not_followed(send: Send, stub: RegistryStub) -> None:
    stub.answer("GET", "/subjects", Reply(302, b"", {"Location": "http://ada:canary@elsewhere/subjects"}))
    with pytest.raises(RegistryRefused, match=r"redirects to http://\[secret\]@elsewhere/subjects, which") as refused:
        send(stub.url, GET, auth=BasicAuth("ada", "canary"))
    assert "canary" not in str(refused.value)
    assert stub.asked() == ["GET /subjects"]


def test_an_answer_that_is_too_large_is_refused(send: Send, stub: RegistryStub, monkeypatch: Any) -> None:
    monkeypatch.setattr(exchange, "ANSWER_BYTES_MAX", 10)
    stub.answer("GET", "/subjects", Reply(document=["a" * 100]))
    with pytest.raises(RegistryRefused, match="more than 10 bytes"):
        send(stub.url, GET)


def test_a_refused_connection_is_unavailable(send: Send) -> None:
    url = f"http://127.0.0.1:{unused_port()}"
    with pytest.raises(RegistryUnavailable, match=f"does not answer: GET {url}/subjects: .+; check") as failed:
        send(url, GET)
    assert (failed.value.url, failed.value.status, failed.value.code) == (f"{url}/subjects", None, None)


def test_no_answer_in_time_is_unavailable(send: Send, stub: RegistryStub) -> None:
    stub.hang("GET", "/subjects")
    with pytest.raises(RegistryUnavailable, match=r"no answer within 0\.1 s"):
        send(stub.url, GET, timeout_s=0.1)


@contextlib.contextmanager
def dripping(head: bytes, drop: bytes, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Gives the address of a server that answers without an end: a drop at a time, until the client is gone."""

    def drip(connection: socket.socket) -> None:
        connection.recv(10_000)
        connection.sendall(head)
        connection.settimeout(0.01)
        while True:
            with contextlib.suppress(TimeoutError):
                if not connection.recv(1):
                    return
            connection.sendall(drop)

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with contextlib.suppress(OSError), contextlib.ExitStack() as opened:
                    opened.enter_context(connection)
                    drip(connection if tls is None else opened.enter_context(tls.wrap_socket(connection, True)))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"{'http' if tls is None else 'https'}://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\nx: ", b"HTTP/1.1 200 OK\r\nContent-Length: 999999\r\n\r\n"])
@pytest.mark.parametrize("is_tls", [False, True])
def test_an_answer_that_comes_byte_by_byte_ends_in_time(send: Send, pki: Pki, head: bytes, is_tls: bool) -> None:
    with (
        dripping(head, b"x", pki.context if is_tls else None) as url,
        pytest.raises(RegistryUnavailable, match=r"no (complete )?answer within 0\.3 s"),
    ):
        send(url, GET, timeout_s=0.3, **({"tls": Tls(ca=pki.ca)} if is_tls else {}))


def test_a_connection_is_used_again_and_cut_if_its_second_answer_is_late(stub: RegistryStub) -> None:
    stub.answer("GET", "/subjects", Reply(document=[]))
    stub.hang("GET", "/x")
    transport = BlockingTransport(stub.url, {"timeout_s": 3.0})
    assert [drive(transport.send(*GET)) for _ in range(2)] == [[], []]
    with pytest.raises(RegistryUnavailable, match=r"within 3 s"):
        drive(transport.send("GET", "/x"))
    assert drive(transport.send(*GET)) == []
    transport.close()


def test_a_blocking_request_is_interrupted_by_the_close(stub: RegistryStub) -> None:
    stub.hang("GET", "/subjects")
    transport = BlockingTransport(stub.url, {"timeout_s": WITHIN_S})
    with ThreadPoolExecutor(1) as pool:
        request = pool.submit(lambda: drive(transport.send(*GET)))
        stub.requests.wait_for(1)
        transport.close()
        with pytest.raises(ClosedError):
            request.result(WITHIN_S)


def test_a_connection_that_ends_early_is_unavailable(send: Send, stub: RegistryStub) -> None:
    stub.answer("GET", "/subjects", Reply(200, b"[]", {"Content-Length": "100", "Connection": "close"}))
    with pytest.raises(RegistryUnavailable):
        send(stub.url, GET)


def test_the_next_address_is_used_when_the_first_is_down(
    send: Send, stub: RegistryStub, caplog: pytest.LogCaptureFixture
) -> None:
    stub.answer("GET", "/subjects", Reply(document=[]))
    down = f"http://127.0.0.1:{unused_port()}"
    with caplog.at_level(logging.WARNING, "awoke"):
        assert send(f"{down}, {stub.url}", GET, GET, ("GET", "/subjects")) == [[]] * 3
    assert [each.getMessage() for each in caplog.records] == [
        f"schema registry {down} does not answer; using {stub.url}"
    ]


def test_the_address_that_answered_stays_first(stub: RegistryStub) -> None:
    stub.answer("GET", "/subjects", Reply(document=[]))
    transport = BlockingTransport(f"http://127.0.0.1:{unused_port()},{stub.url}", {})
    drive(transport.send(*GET))
    assert transport.url_of("/x") == f"{stub.url}/x"
    with RegistryStub() as other:
        other.answer("GET", "/subjects", Reply(document=["other"]))
        both = BlockingTransport(f"{other.url},{stub.url}", {})
        assert drive(both.send(*GET)) == ["other"]
        both.close()
    transport.close()


def test_all_addresses_are_named_when_none_answers(send: Send) -> None:
    urls = [f"http://127.0.0.1:{unused_port()}" for _ in range(2)]
    with pytest.raises(RegistryUnavailable, match=f"GET {urls[0]}/subjects: .*; {urls[1]}/subjects: "):
        send(",".join(urls), GET)


def test_an_error_of_one_address_is_not_asked_of_another(send: Send, stub: RegistryStub) -> None:
    stub.answer("GET", "/subjects", Reply(503))
    with pytest.raises(RegistryUnavailable, match="answered 503"):
        send(f"{stub.url},http://127.0.0.1:{unused_port()}", GET)


def test_a_deletion_that_may_have_arrived_is_not_sent_again(send: Send, stub: RegistryStub) -> None:
    stub.hang("DELETE", "/subjects/a")
    stub.hang("GET", "/subjects")
    with RegistryStub() as other:
        for method, path in (("DELETE", "/subjects/a"), GET):
            other.answer(method, path, Reply(document=[1]))
        urls = f"{stub.url},{other.url}"
        with pytest.raises(RegistryUnavailable):
            send(urls, ("DELETE", "/subjects/a"), timeout_s=0.3)
        assert send(urls, GET, timeout_s=0.3) == [[1]]
        assert other.asked() == ["GET /subjects"]
        down = f"http://127.0.0.1:{unused_port()}"
        assert send(f"{down},{other.url}", ("DELETE", "/subjects/a")) == [[1]]


@pytest.mark.parametrize(
    ("auth", "header"), [(BasicAuth("ada", "pw"), "Basic YWRhOnB3"), (BearerToken("abc"), "Bearer abc")]
)
def test_the_login_is_sent(send: Send, stub: RegistryStub, auth: Any, header: str) -> None:
    stub.answer("GET", "/subjects", Reply(document=[]))
    send(stub.url, GET, auth=auth)
    assert stub.requests.items[0].headers["authorization"] == header


def test_a_user_in_the_address_is_the_login_and_is_not_shown(send: Send, stub: RegistryStub) -> None:
    url = stub.url.replace("//", "//ada:p%77@")
    stub.answer("GET", "/subjects", Reply(document=[]))
    stub.answer("GET", "/x", Reply(401, {"error_code": 401, "message": "you sent Basic YWRhOnB3"}))
    send(url, GET)
    assert stub.requests.items[0].headers["authorization"] == "Basic YWRhOnB3"
    with pytest.raises(RegistryUnauthorized, match=r"you sent Basic \[secret\]") as refused:
        send(url, ("GET", "/x"))
    assert refused.value.url == f"{stub.url}/x"
    with pytest.raises(ConfigError, match="a user in the address, and the option 'auth'"):
        send(url, auth=BasicAuth("ada", "pw"))


def test_a_header_of_the_options_that_an_answer_repeats_is_hidden(send: Send, stub: RegistryStub) -> None:
    stub.answer("GET", "/subjects", Reply(403, {"message": "key canary-key is wrong"}))
    with pytest.raises(RegistryUnauthorized, match=r"key \[secret\] is wrong"):
        send(stub.url, GET, headers={"X-Api-Key": "canary-key"})


def test_oauth_gets_a_token_once_for_many_requests(send: Send, stub: RegistryStub) -> None:
    stub.answer("POST", "/token", Reply(document={"access_token": "token-1", "expires_in": 300}))
    stub.answer("GET", "/subjects", Reply(document=[]))
    auth = OAuth(f"{stub.url}/token", "shop", "secret")
    send(stub.url, GET, GET, auth=auth)
    assert stub.asked() == ["POST /token", "GET /subjects", "GET /subjects"]
    assert [each.headers["authorization"] for each in stub.requests.items[1:]] == ["Bearer token-1"] * 2


def test_a_refused_token_is_unauthorized_and_is_replaced(stub: RegistryStub) -> None:
    stub.answer("POST", "/token", *(Reply(document={"access_token": f"canary-{number}"}) for number in (1, 2)))
    revoked = Reply(401, {"error_code": 40101, "message": "canary-1 was revoked"})
    stub.answer("GET", "/subjects", revoked, Reply(200, []))
    transport = BlockingTransport(stub.url, {"auth": OAuth(f"{stub.url}/token", "shop", "secret")})
    with pytest.raises(RegistryUnauthorized, match="401") as refused:
        drive(transport.send(*GET))
    assert "[secret] was revoked" in str(refused.value)
    assert drive(transport.send(*GET)) == []
    assert stub.requests.items[-1].headers["authorization"] == "Bearer canary-2"
    transport.close()


def test_a_login_that_the_token_endpoint_refuses_is_unauthorized(send: Send, stub: RegistryStub) -> None:
    stub.answer("POST", "/token", Reply(401, {"error": "invalid_client"}))
    with pytest.raises(RegistryUnauthorized, match=f"no token: .*POST {stub.url}/token answered 401: invalid_client"):
        send(stub.url, GET, auth=OAuth(f"{stub.url}/token", "shop", "secret"))
    assert stub.asked() == ["POST /token"]


def test_a_token_endpoint_that_is_down_is_unavailable(send: Send, stub: RegistryStub) -> None:
    url = f"http://127.0.0.1:{unused_port()}/token"
    with pytest.raises(RegistryUnavailable, match=f"the token endpoint does not answer: POST {url}"):
        send(stub.url, GET, auth=OAuth(url, "shop", "secret"))


class Pki:
    """An authority with a server's and a client's certificate, as files."""

    def __init__(self, folder: Path) -> None:
        authority = trustme.CA()
        self.ca, self.client = str(folder / "ca.pem"), str(folder / "client.pem")
        authority.cert_pem.write_to_path(self.ca)
        authority.issue_cert("client@example.com").private_key_and_cert_chain_pem.write_to_path(self.client)
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        authority.issue_cert("127.0.0.1").configure_cert(self.context)
        authority.configure_trust(self.context)


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    return Pki(tmp_path)


def test_a_server_is_trusted_by_its_authority_only(send: Send, pki: Pki) -> None:
    with RegistryStub(pki.context) as stub:
        stub.answer("GET", "/subjects", Reply(document=["a"]))
        assert send(stub.url, GET, tls=Tls(ca=pki.ca)) == [["a"]]
        with pytest.raises(RegistryUnavailable, match="CERTIFICATE_VERIFY_FAILED"):
            send(stub.url, GET)
        with pytest.raises(RegistryUnavailable, match="CERTIFICATE_VERIFY_FAILED"):
            send(stub.url.replace("127.0.0.1", "localhost"), GET, tls=Tls(ca=pki.ca))


def test_a_server_may_ask_for_the_clients_certificate(send: Send, pki: Pki) -> None:
    pki.context.verify_mode = ssl.CERT_REQUIRED
    with RegistryStub(pki.context) as stub:
        stub.answer("GET", "/subjects", Reply(document=["a"]))
        assert send(stub.url, GET, tls=Tls(pki.ca, pki.client)) == [["a"]]
        with pytest.raises(RegistryUnavailable):
            send(stub.url, GET, tls=Tls(pki.ca))


def test_a_closed_transport_says_so(stub: RegistryStub) -> None:
    blocking = BlockingTransport(stub.url, {})
    blocking.close()
    blocking.close()
    with pytest.raises(ClosedError, match="is closed; make a new one"):
        drive(blocking.send(*GET))

    async def run() -> None:
        transport = LoopTransport(stub.url, {})
        await transport.close()
        await transport.close()
        with pytest.raises(ClosedError):
            await transport.send(*GET)

    asyncio.run(run())
    assert stub.asked() == []


def test_a_request_that_is_interrupted_by_the_close_says_so(stub: RegistryStub) -> None:
    async def run() -> None:
        transport = LoopTransport(stub.url, {"timeout_s": 30.0})
        request = asyncio.create_task(transport.send(*GET))
        await asyncio.to_thread(stub.requests.wait_for, 1)
        await transport.close()
        with pytest.raises(ClosedError):
            await request

    stub.hang("GET", "/subjects")
    asyncio.run(run())


def test_one_transport_works_on_one_loop_after_the_other(stub: RegistryStub) -> None:
    stub.answer("GET", "/subjects", Reply(document=[], headers={"Connection": "close"}))
    transport = LoopTransport(stub.url, {})
    assert asyncio.run(transport.send(*GET)) == []
    assert asyncio.run(transport.send(*GET)) == []
    asyncio.run(transport.close())


@pytest.mark.parametrize("urls", ["", " , ", None, "http://a,host", "http://a:1@b,http://c:2@d"])
def test_wrong_addresses_are_refused(urls: Any) -> None:
    with pytest.raises(ConfigError) as refused:
        addresses_of(urls)
    assert refused.value.property == "url"


def test_addresses_may_share_a_user() -> None:
    found = addresses_of("http://ada:pw@a, http://ada:pw@b,http://c")
    assert [each.url for each in found] == ["http://a", "http://b", "http://c"]


def test_without_httpx2_the_error_says_what_to_install() -> None:
    program = """
import sys
sys.modules["httpx2"] = None
import awoke
try:
    awoke.registry.SchemaRegistry("http://127.0.0.1:1")
except awoke.ConfigError as error:
    print(error.property, error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "registry a schema registry needs httpx2: pip install 'awoke[registry]'\n"
