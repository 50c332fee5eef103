"""A token function logs clients in by SASL OAUTHBEARER, is called again in time, and its failure is a clear error."""

from __future__ import annotations

import contextlib
import json
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

import awoke
from awoke.settings import load
from tests.support.entrances import WITHIN_S, Client, try_all
from tests.support.secure_broker import SecureBroker, unsigned_token
from tests.support.waiting import Collected, became
from tests.unit.test_documentation import BLOCK

CANARY = "canary-token-91c2"
OAUTH = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}


def client_of(broker: SecureBroker, oauth_token: Any, listener: str = "SASL") -> Client:
    return Client(broker.at(listener), broker.sasl("OAUTHBEARER"), oauth_token)


def give_token() -> awoke.OAuthToken:
    return unsigned_token(3_600)


async def give_token_later() -> awoke.OAuthToken:
    return unsigned_token(3_600)


@pytest.mark.parametrize("function", [give_token, give_token_later])
def test_a_function_logs_every_client_in(secure_broker: SecureBroker, function: Any) -> None:
    errors = try_all(client_of(secure_broker, function), secure_broker.create_topic())
    assert errors == dict.fromkeys(errors)


def test_the_function_runs_on_a_thread_of_its_own(secure_broker: SecureBroker) -> None:
    called_on = Collected[str]()

    def give() -> awoke.OAuthToken:
        called_on.add(threading.current_thread().name)
        return give_token()

    with awoke.Admin(**client_of(secure_broker, give).arguments) as admin:
        admin.brokers()
    assert called_on.items == ["awoke-token"]


def test_a_function_that_fails_is_an_error_of_every_client(secure_broker: SecureBroker) -> None:
    def fail() -> awoke.OAuthToken:
        raise ValueError("the endpoint says no")

    for entrance, error in try_all(client_of(secure_broker, fail), "any").items():
        cause = error.__cause__ if isinstance(error, awoke.DeliveryFailed) else error
        assert isinstance(cause, awoke.AuthenticationFailed), f"{entrance}: {error!r}"
        assert "ValueError: the endpoint says no" in str(error)


UNUSABLE = {
    "expired": (lambda: awoke.OAuthToken(CANARY, 1.0), "has expired"),
    "not visible": (lambda: awoke.OAuthToken(CANARY + "\x01", 4e9), "does not accept the token"),
    "wrong extension": (lambda: awoke.OAuthToken(CANARY, 4e9, "", {"auth": CANARY}), "does not accept the token"),
    "no token": (lambda: None, "TypeError"),
    "unknown to the broker": (lambda: awoke.OAuthToken(CANARY, 4e9), "the broker refuses the login"),
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_a_token_that_is_of_no_use_is_an_error_that_does_not_show_it(secure_broker: SecureBroker, name: str) -> None:
    function, words = UNUSABLE[name]
    client = client_of(secure_broker, function)
    with awoke.Admin(**client.arguments) as admin, pytest.raises(awoke.AuthenticationFailed, match=words) as failed:
        admin.brokers()
    assert CANARY not in str(failed.value)


def test_a_function_that_failed_is_asked_again(secure_broker: SecureBroker) -> None:
    topic = secure_broker.create_topic()
    calls = Collected[int]()

    def give() -> awoke.OAuthToken:
        calls.add(1)
        if len(calls.items) == 1:
            raise ValueError("not yet")
        return give_token()

    with awoke.Producer(**client_of(secure_broker, give).arguments) as producer:
        with pytest.raises(awoke.DeliveryFailed, match="not yet"):
            producer.produce(topic, b"first").wait(WITHIN_S)
        calls.wait_for(2)  # librdkafka asks again 10 s after a failure.

        def is_let_in() -> bool:
            with contextlib.suppress(awoke.DeliveryFailed):
                return producer.produce(topic, b"second").wait(WITHIN_S).offset == 0
            return False

        assert became(is_let_in, WITHIN_S)


def test_a_session_goes_on_over_the_expiry_of_its_tokens(secure_broker: SecureBroker) -> None:
    topic = secure_broker.create_topic()
    calls, events = Collected[int](), awoke.Events()
    troubles = Collected[awoke.Event]()
    events.subscribe("client.error", troubles.add)
    events.subscribe("client.log", lambda event: troubles.add(event) if event.fields["facility"] == "FAIL" else None)

    def give() -> awoke.OAuthToken:
        calls.add(1)
        # For the client it soon expires. For the broker it does not: that the session ends is the listener's setting.
        return unsigned_token(3_600)._replace(expires_at_s=time.time() + 2)

    sent = 0
    client = client_of(secure_broker, give, "REAUTH")
    with awoke.Producer(**client.arguments, events=events) as producer:
        while len(calls.items) < 4:
            assert producer.produce(topic, b"value").wait(WITHIN_S).offset == sent
            sent += 1
    assert troubles.items == []


def test_a_message_that_times_out_names_the_refusal_that_came_later(secure_broker: SecureBroker) -> None:
    topic = secure_broker.create_topic()
    calls, refusals = Collected[int](), Collected[awoke.Event]()
    events = awoke.Events()
    events.subscribe("client.error", lambda event: refusals.add(event) if event.fields["code"] == -169 else None)

    def give() -> awoke.OAuthToken:
        calls.add(1)
        is_first = len(calls.items) == 1
        value = give_token().value if is_first else CANARY
        return awoke.OAuthToken(value, time.time() + (1 if is_first else 3_600))

    client = client_of(secure_broker, give, "REAUTH")
    kafka = {**client.kafka, "delivery.timeout.ms": "3000", "linger.ms": "0"}
    with awoke.Producer(client.servers, kafka=kafka, oauth_token=give, events=events) as producer:
        assert producer.produce(topic, b"first").wait(WITHIN_S).offset == 0
        refusals.wait_for(1)  # The session's end makes the client log in anew, with a token that is of no use.
        with pytest.raises(awoke.DeliveryFailed, match="the broker refuses the login") as failed:
            producer.produce(topic, b"second").wait(WITHIN_S)
    assert isinstance(failed.value.__cause__, awoke.AuthenticationFailed)
    assert CANARY not in str(failed.value)


def test_the_function_of_the_guide_asks_for_client_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    guide = Path(__file__).resolve().parents[2] / "docs" / "security.md"
    (code,) = [each for each, _ in BLOCK.findall(guide.read_text()) if "client_credentials" in each]
    names: dict[str, Any] = {"__name__": "guide"}
    exec(compile(code, str(guide), "exec"), names)
    monkeypatch.setenv("OIDC_CLIENT_ID", "shop")
    monkeypatch.setenv("OIDC_CLIENT_SECRET", "secret")
    with HTTPServer(("127.0.0.1", 0), TokenEndpoint) as server:
        monkeypatch.setenv("OIDC_TOKEN_URL", f"http://127.0.0.1:{server.server_port}/token")
        answering = threading.Thread(target=server.handle_request)
        answering.start()
        token = names["fetch_token"]()
        answering.join()
    assert token.value == "client_credentials of shop"
    assert token.expires_at_s > time.time()


class TokenEndpoint(BaseHTTPRequestHandler):
    """Answers one request for a token."""

    def do_POST(self) -> None:
        form = urllib.parse.parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        token = f"{form['grant_type'][0]} of {form['client_id'][0]}"
        answer = json.dumps({"access_token": token, "expires_in": 300}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


def test_settings_without_sense_are_refused() -> None:
    with pytest.raises(awoke.ConfigError, match="oauth_token="):
        awoke.Producer(kafka=OAUTH)
    with pytest.raises(awoke.ConfigError, match=r"needs sasl\.mechanism=OAUTHBEARER"):
        awoke.Producer(oauth_token=give_token)
    with pytest.raises(awoke.ConfigError, match=r"docs/security\.md"):
        awoke.Producer(kafka={**OAUTH, "sasl.oauthbearer.method": "oidc"}, oauth_token=give_token)
    with pytest.raises(awoke.ConfigError, match="is a function"):
        awoke.App("shop", oauth_token="token").load_settings()


def test_only_code_can_give_the_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWOKE_OAUTH_TOKEN", "os:getcwd")
    assert load().values.oauth_token is None
    (tmp_path / "awoke.toml").write_text('oauth_token = "os:getcwd"\n')
    with pytest.raises(awoke.ConfigError, match="only be given in code"):
        load(directory=tmp_path)


def test_a_token_does_not_show() -> None:
    assert CANARY not in repr(awoke.OAuthToken(CANARY, 1.0))
