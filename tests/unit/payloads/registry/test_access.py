"""Ways in: the header of each, tokens that are kept, renewed or refused, certificates, and no secret shown."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import trustme
from cryptography.hazmat.primitives import serialization

from awoke.errors import ConfigError
from awoke.payloads.registry import BasicAuth, BearerToken, OAuth, RegistryUnauthorized, RegistryUnavailable, Tls
from awoke.payloads.registry.access import Auth, RegistryLogin
from awoke.payloads.registry.exchange import HttpAnswer, HttpRequest, Unanswered
from awoke.waiting.drive import drive
from tests.support.waiting import WITHIN_S, Collected

URL = "http://login/token"
OAUTH = OAuth(URL, "shop", "canary-secret", "registry")


class Clock:
    """A clock that the test moves."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


class Endpoint:
    """A token endpoint with a new token for each request, or with a fixed answer."""

    def __init__(self, answer: HttpAnswer | Unanswered | None = None, expires_in: Any = 300) -> None:
        self.requests: list[HttpRequest] = []
        self._answer, self._expires_in = answer, expires_in
        self.go, self.asked = threading.Event(), threading.Event()
        self.go.set()

    async def __call__(self, request: HttpRequest) -> HttpAnswer:
        self.requests.append(request)
        self.asked.set()
        assert self.go.wait(WITHIN_S)
        if isinstance(self._answer, Unanswered):
            raise self._answer
        given = {"access_token": f"token-{len(self.requests)}", "token_type": "Bearer"}
        if self._expires_in is not None:
            given["expires_in"] = self._expires_in
        return self._answer or HttpAnswer(200, json.dumps(given).encode())


def header(auth: Auth | None) -> str | None:
    return drive(RegistryLogin(auth, Endpoint()).header())


def test_basic_and_bearer_make_their_headers() -> None:
    assert header(None) is None
    assert header(BasicAuth("ada", "pä:ss")) == f"Basic {base64.b64encode('ada:pä:ss'.encode()).decode()}"
    assert header(BearerToken("abc.def")) == "Bearer abc.def"


def test_the_function_of_a_token_is_called_for_each_request_on_its_thread() -> None:
    threads: list[threading.Thread] = []

    def token() -> str:
        threads.append(threading.current_thread())
        return f"token-{len(threads)}"

    login = RegistryLogin(BearerToken(token), Endpoint())
    assert [drive(login.header()), drive(login.header())] == ["Bearer token-1", "Bearer token-2"]
    assert threads == [threading.current_thread()] * 2


def test_on_a_loop_the_function_of_a_token_blocks_another_thread() -> None:
    threads: list[threading.Thread] = []

    def token() -> str:
        threads.append(threading.current_thread())
        return "abc"

    assert asyncio.run(RegistryLogin(BearerToken(token), Endpoint()).header()) == "Bearer abc"
    assert threads[0] is not threading.current_thread()


def test_an_error_of_the_function_is_the_cause() -> None:
    error = ValueError("canary")

    def fail() -> str:
        raise error

    with pytest.raises(RegistryUnauthorized, match="raised ValueError") as refused:
        header(BearerToken(fail))
    assert refused.value.__cause__ is error
    assert "canary" not in str(refused.value)


@pytest.mark.parametrize("token", ["", "canary 1", "canary\r\nX: 1", "canäry", None, b"canary"])
def test_a_token_that_no_header_can_carry_is_refused(token: Any) -> None:
    with pytest.raises(RegistryUnauthorized) as refused:
        header(BearerToken(lambda: token))
    with pytest.raises(ConfigError) as wrong:
        BearerToken(token)
    assert "can" not in (str(refused.value) + str(wrong.value)).replace("can carry", "")


def test_a_user_with_a_colon_is_refused() -> None:
    with pytest.raises(ConfigError, match="colon"):
        BasicAuth("a:b", "c")


@pytest.mark.parametrize("url", ["login", "http://ada:canary@login/token"])
def test_a_wrong_address_of_the_token_endpoint_is_refused(url: str) -> None:
    with pytest.raises(ConfigError) as refused:
        OAuth(url, "shop", "canary")
    assert "canary" not in str(refused.value)


def test_oauth_asks_with_the_clients_id_and_secret_and_the_scope() -> None:
    endpoint = Endpoint()
    assert drive(RegistryLogin(OAuth(URL, "shop 1", "s:e", "a b"), endpoint).header()) == "Bearer token-1"
    (request,) = endpoint.requests
    assert (request.method, request.url) == ("POST", URL)
    assert request.content == b"grant_type=client_credentials&scope=a+b"
    assert request.headers["authorization"] == f"Basic {base64.b64encode(b'shop+1:s%3Ae').decode()}"
    assert request.headers["content-type"] == "application/x-www-form-urlencoded"


@pytest.mark.parametrize(("expires_in", "kept_s"), [(300, 270.0), ("300", 270.0), (40, 20.0), (10, 5.0), (None, 270.0)])
def test_a_token_is_kept_until_30_s_before_its_end(expires_in: Any, kept_s: float) -> None:
    clock, endpoint = Clock(), Endpoint(expires_in=expires_in)
    login = RegistryLogin(OAUTH, endpoint, clock)
    assert drive(login.header()) == "Bearer token-1"
    clock.now_s += kept_s - 0.001
    assert drive(login.header()) == "Bearer token-1"
    clock.now_s += 0.001
    assert drive(login.header()) == "Bearer token-2"
    assert len(endpoint.requests) == 2


def test_threads_that_need_a_token_at_the_same_time_ask_once() -> None:
    endpoint = Endpoint()
    endpoint.go.clear()
    login, entered = RegistryLogin(OAUTH, endpoint), Collected[int]()

    def ask() -> str | None:
        entered.add(1)
        return drive(login.header())

    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(ask) for _ in range(8)]
        entered.wait_for(8)
        assert endpoint.asked.wait(WITHIN_S)
        endpoint.go.set()
        assert {each.result(WITHIN_S) for each in asked} == {"Bearer token-1"}
    assert len(endpoint.requests) == 1


def test_a_token_that_the_registry_refused_is_replaced() -> None:
    login = RegistryLogin(OAUTH, Endpoint())
    first = drive(login.header())
    assert first is not None
    login.refused(first)
    assert drive(login.header()) == "Bearer token-2"
    login.refused(first)  # The answer to an older request.
    assert drive(login.header()) == "Bearer token-2"


@pytest.mark.parametrize(
    ("status", "content", "text"),
    [
        (401, b'{"error": "invalid_client", "error_description": "canary-secret?"}', r"invalid_client \[secret\]\?"),
        (400, b'{"error": "invalid_scope"}', "invalid_scope"),
        (404, b"<html>", "404"),
        (200, b"<html>", "none that can be used"),
        (200, b'{"token": "canary-secret"}', "none that can be used"),
        (200, b'{"access_token": "canary-secret\\n"}', "none that can be used"),
        (200, b'{"access_token": "canary-secret", "expires_in": "soon"}', "none that can be used"),
    ],
)
def test_a_token_that_can_not_be_had_is_unauthorized(status: int, content: bytes, text: str) -> None:
    with pytest.raises(RegistryUnauthorized, match=f"no token: .*{text}") as refused:
        drive(RegistryLogin(OAUTH, Endpoint(HttpAnswer(status, content))).header())
    assert "canary" not in str(refused.value)
    assert (refused.value.url, refused.value.status) == (URL, status)


@pytest.mark.parametrize("answer", [Unanswered("refused"), HttpAnswer(503, b""), HttpAnswer(429, b"{}")])
def test_a_token_endpoint_that_is_away_is_asked_again(answer: HttpAnswer | Unanswered) -> None:
    endpoint = Endpoint(answer)
    login = RegistryLogin(OAUTH, endpoint)
    for _ in range(2):
        with pytest.raises(RegistryUnavailable, match=URL):
            drive(login.header())
    assert len(endpoint.requests) == 2


def test_no_secret_is_shown() -> None:
    shown = [
        BasicAuth("canary", "canary"),
        BearerToken("canary"),
        BearerToken(lambda: "canary"),
        OAuth(URL, "shop", "canary", "registry"),
        Tls("ca.pem", "client.pem", "client.key", "canary"),
    ]
    texts = [f"{each!r}{each}{each.__rich_repr__()}" for each in shown]
    assert "canary" not in "".join(texts)
    assert repr(shown[3]) == (
        "OAuth(token_url='http://login/token', client_id='shop', client_secret='[secret]', scope='registry')"
    )
    assert repr(shown[4]).startswith("Tls(ca='ca.pem', certificate='client.pem', key='client.key', key_password=")


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def test_a_key_without_its_certificate_is_refused() -> None:
    with pytest.raises(ConfigError, match="no certificate"):
        Tls(key="client.key")


def test_the_authorities_are_those_of_the_file(authority: trustme.CA, tmp_path: Path) -> None:
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    context = Tls(ca=str(tmp_path / "ca.pem")).context()
    assert len(context.get_ca_certs()) == 1
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert Tls(ca=str(tmp_path)).context().verify_mode == ssl.CERT_REQUIRED
    assert Tls().context().verify_mode == ssl.CERT_REQUIRED


def test_files_that_can_not_be_used_are_named(authority: trustme.CA, tmp_path: Path) -> None:
    broken, certificate, encrypted = (tmp_path / name for name in ("broken.pem", "client.pem", "client.key"))
    broken.write_text("no certificate")
    leaf = authority.issue_cert("client@example.com")
    certificate.write_bytes(leaf.cert_chain_pems[0].bytes())
    key = serialization.load_pem_private_key(leaf.private_key_pem.bytes(), password=None)
    encryption = serialization.BestAvailableEncryption(b"canary")
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8)
    encrypted.write_bytes(key.private_bytes(*form, encryption))

    for name in ("/nowhere.pem", str(broken)):
        with pytest.raises(ConfigError, match=f"ca '{name}' can't be used"):
            Tls(ca=name).context()
    for password in (None, "canary but wrong"):
        with pytest.raises(ConfigError, match=r"certificate '.*client.pem' with key '.*client.key'") as refused:
            Tls(certificate=str(certificate), key=str(encrypted), key_password=password).context()
        assert "canary" not in str(refused.value)
    Tls(certificate=str(certificate), key=str(encrypted), key_password="canary").context()
