"""No secret is printed, logged or raised: a canary stands in each setting that may hold one, and no output has it."""

from __future__ import annotations

import io
import json
import logging
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from rich.pretty import pretty_repr

import awoke
from awoke import _native
from awoke.cli import doctor, failures, options
from awoke.errors import AwokeError
from awoke.observe import logs
from awoke.observe.events import Events
from awoke.observe.events.catalogue import CATALOGUE
from awoke.observe.events.pump import deliver
from awoke.rpc.caller.connection import Opening, ServiceAddress
from awoke.rpc.responder import methods
from awoke.settings import Settings, load
from awoke.swarm.options import SwarmOptions
from awoke.testing import running
from awoke.text.secrets import HIDDEN, is_secret, shown_value, without_userinfo
from tests.contract.test_consume import new_app
from tests.support.clusters import MockCluster, unique
from tests.support.processes import Process
from tests.support.waiting import Collected

CANARY = "canary-4711"

SENSITIVE = (
    "ssl.key.location",
    "ssl.key.password",
    "ssl.key.pem",
    "ssl_key",
    "ssl.ca.pem",
    "ssl.keystore.password",
    "sasl.username",
    "sasl.password",
    "sasl.oauthbearer.config",
    "sasl.oauthbearer.client.secret",
    "sasl.oauthbearer.assertion.private.key.file",
    "sasl.oauthbearer.assertion.private.key.passphrase",
    "sasl.oauthbearer.assertion.private.key.pem",
)
"""librdkafka 2.12.1 marks these as `_RK_SENSITIVE`."""
NAMED = (
    "ssl.certificate.pem",
    "ssl.keystore.location",
    "sasl.kerberos.keytab",
    "sasl.oauthbearer.client.credentials.client.secret",
)
MISSPELT = (
    "sasl.pasword",
    "sasl.passwrd",
    "sasl_password",
    "ssl.key.pasword",
    "sasl.oauthbearer.client.secrt",
    "sasl.usernam",
)
OPEN = (
    "bootstrap.servers",
    "security.protocol",
    "sasl.mechanism",
    "socket.timeout.ms",
    "session.timeout.ms",
    "compression.type",
    "partition.assignment.strategy",
    "broker.address.family",
    "sasl.oauthbearer.token.endpoint.url",
    "ssl.ca.location",
    "ssl.certificate.location",
)
ADDRESSES = (
    f"http://user:{CANARY}@host/path",
    f"https://{CANARY}@host",
    f"http://user:pa/{CANARY}@host:80/",
    f"SASL_SSL://user:{CANARY}@host:9092/bootstrap: Connect failed",
    f"user:{CANARY}@host:9092/bootstrap: Failed to resolve 'user:{CANARY}@host:9092': Name or service not known",
    f"user:{CANARY}@[::1]:9092: timed out",
)


@pytest.mark.parametrize("name", [*SENSITIVE, *NAMED, *MISSPELT])
def test_a_secret_is_known_by_its_name(name: str) -> None:
    assert is_secret(name)
    assert is_secret(name.upper())


def test_what_is_no_secret_is_shown() -> None:
    assert [name for name in OPEN if is_secret(name)] == []
    fields = {*Settings.__struct_fields__, *SwarmOptions.__struct_fields__, *methods.Options.__struct_fields__}
    secret = {"secret", "oauth_token", "console_secret"}
    secret |= {"registry_key", "registry_key_password", "registry_password", "registry_token", "registry_headers"}
    assert {name for name in fields if is_secret(name)} == secret
    assert all(is_secret(name) for name in (*SENSITIVE, *NAMED) if _native.is_secret(name))


@pytest.mark.parametrize("text", ADDRESSES)
def test_addresses_lose_user_and_password(text: str) -> None:
    cut = without_userinfo(text)
    assert CANARY not in cut
    assert f"{HIDDEN}@" in cut
    assert "host" in cut or "[::1]:9092" in cut


LONG = "x" * 50_000 + ":" * 50_000 + "@"


@pytest.mark.parametrize("text", ["a@b", "mail to you@host.org: done", "http://host:8080/a@b", "12:30 @ noon", LONG])
def test_other_text_stays_as_it_is(text: str) -> None:
    assert without_userinfo(text) == text


def planted() -> dict[str, Any]:
    return dict.fromkeys((*SENSITIVE, *NAMED, *MISSPELT), CANARY)


def objects() -> list[Any]:
    """Everything that holds settings, with a canary in each."""
    kafka = planted() | {"sasl.oauthbearer.token.endpoint.url": ADDRESSES[0]}
    settings = Settings(bootstrap_servers=f"user:{CANARY}@host:9092,user:{CANARY}@other:9092", kafka=kafka)
    address = ServiceAddress("calls", "replies", "group", "me", 1, 1, 1, CANARY.encode())
    return [
        settings,
        SwarmOptions(target="shop:app", nodes=1, socket="s", kafka=kafka, bootstrap_servers=f"user:{CANARY}@host:9092"),
        methods.Options(secret=CANARY.encode()),
        address,
        Opening("shop", settings, address, None, False, 1),
        awoke.App("shop", kafka=kafka),
        load({"kafka": kafka}),
        load({"kafka": kafka}).explain(),
    ]


@pytest.mark.parametrize("held", objects(), ids=lambda held: type(held).__name__)
def test_no_repr_shows_a_secret(held: Any) -> None:
    assert CANARY not in repr(held) + str(held) + f"{held}" + pretty_repr(held)


def test_settings_with_secrets_are_still_what_they_were() -> None:
    settings = Settings(kafka={"sasl.password": CANARY})
    assert settings.kafka["sasl.password"] == CANARY
    assert settings == Settings(kafka={"sasl.password": CANARY})
    assert repr(Settings(workers=3)).startswith("Settings(bootstrap_servers='127.0.0.1:9092', group=None,")


def told(failing: Callable[[], object]) -> str:
    """All that can be printed of an error."""
    with pytest.raises(AwokeError) as raised:
        failing()
    error = raised.value
    return f"{error} {error!r} {error.args} {''.join(traceback.format_exception(error))}"


@pytest.mark.parametrize("name", [*SENSITIVE, *NAMED, *MISSPELT])
def test_an_error_of_a_property_does_not_quote_it(name: str) -> None:
    assert CANARY not in told_or_made({name: CANARY, "security.protocol": "sasl_ssl"})
    assert CANARY not in told_or_made({name: f"\x00{CANARY}"})


def told_or_made(kafka: dict[str, Any]) -> str:
    """Returns the output about a client with these properties, which librdkafka may accept."""
    try:
        awoke.Producer("127.0.0.1:1", kafka=kafka).close(0)
    except AwokeError as error:
        return f"{error} {error!r} {''.join(traceback.format_exception(error))}"
    return ""


@pytest.mark.parametrize("address", ADDRESSES[:3])
def test_an_error_does_not_quote_a_user(address: str) -> None:
    assert CANARY not in told(lambda: load({"workers": address}))
    assert CANARY not in told(lambda: load({"metrics_host": "x", "metrics_port": address}))
    assert CANARY not in repr(awoke.ConfigError(f"setting {address!r}", "x"))
    assert CANARY not in told_or_made({"security.protocol": address})


def test_a_misspelt_secret_in_the_environment_is_not_quoted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for variable in ("AWOKE_SASL_PASWORD", "AWOKE_KAFAK_SASL_PASSWORD", "AWOKE_KAFKA", "AWOKE_RPC_SECRT"):
        with monkeypatch.context() as patch:
            patch.setenv(variable, CANARY)
            try:
                said = f"{load()!r} {load().explain()}"
            except AwokeError as error:
                said = f"{error!r} {error}"
        assert CANARY not in said
    (tmp_path / "awoke.toml").write_text(f'sasl_password = "{CANARY}"\n')
    assert CANARY not in told(load)
    (tmp_path / "awoke.toml").write_text(f"[kafka]\nsasl.password = {CANARY}\n")
    assert CANARY not in told(load)


def test_options_of_the_command_line_are_not_quoted() -> None:
    for word in (CANARY, f"={CANARY}", f"sasl.password:{CANARY}"):
        assert CANARY not in told(lambda word=word: options.pairs([word], "--kafka"))  # type: ignore[misc]


def test_doctor_shows_no_secret(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("AWOKE_RPC_SECRET", CANARY)
    monkeypatch.setenv("AWOKE_KAFKA_SASL_PASWORD", CANARY)
    kafka = [f"{name}={CANARY}" for name in (*SENSITIVE, *NAMED)]
    with pytest.raises(AwokeError) as raised:  # It is no property of librdkafka's.
        doctor.doctor(bootstrap_servers=f"user:{CANARY}@127.0.0.1:1", kafka=kafka, timeout_s=0.1)
    failures.show(raised.value)
    said = capsys.readouterr()
    assert HIDDEN in said.out
    assert "sasl.pasword" in said.out
    assert CANARY not in said.out + said.err


def test_logs_and_everything_that_an_app_shows_have_no_secret(
    mock_cluster: MockCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = io.StringIO()
    handlers = [logging.StreamHandler(written), logging.StreamHandler(written), logging.StreamHandler(written)]
    handlers[0].setFormatter(logs.ConsoleFormatter(logs.FORMAT))
    handlers[1].setFormatter(logs.JsonFormatter())
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", handlers)  # The last one is a formatter of the user's own.
    level, name = root.level, unique("in")
    root.setLevel(logging.DEBUG)
    mock_cluster.create_topic(name)
    secrets = dict.fromkeys(("sasl.username", "sasl.password", "ssl.key.password", "ssl.keystore.password"), CANARY)
    app = new_app(mock_cluster, metrics_port=0, kafka={**secrets, "debug": "all"})
    app.on(name)(lambda message: None)
    try:
        with running(app) as runner:
            shown: list[Any] = [
                runner.health(),
                runner.status(),
                runner.metrics_text().decode(),
                repr(runner),
                repr(app),
            ]
            shown += [repr(app.producer), repr(runner.threads()), repr(runner.settings)]
    finally:
        root.setLevel(level)
    assert "debug" in written.getvalue().lower()
    assert CANARY not in written.getvalue() + json.dumps(shown, default=str)


class Box:
    """As the engine's box of events, with what librdkafka says of a broker whose address has a user."""

    def drain(self) -> list[tuple[str, str, dict[str, Any]]]:
        found: list[tuple[str, str, dict[str, Any]]] = [
            ("me", "client.statistics", {"json": json.dumps({"brokers": {text: {} for text in ADDRESSES}})})
        ]
        for text in ADDRESSES:
            found.append(("me", "client.log", {"level": 3, "facility": "FAIL", "text": f"[thrd:{text}]: {text}"}))
            found.append(
                ("me", "client.error", {"code": -195, "code_name": "_TRANSPORT", "text": text, "is_fatal": False})
            )
        return found


def test_what_a_client_says_has_no_user_of_its_address(caplog: pytest.LogCaptureFixture) -> None:
    events, heard, box = Events(), Collected[awoke.Event](), Box()
    events.subscribe("*", heard.add)
    with caplog.at_level(logging.DEBUG):
        deliver(cast(Any, box), events)
        for _, name, fields in box.drain():
            Events().emit(CATALOGUE[name](client="me", **fields))
    assert len(heard.items) == 1 + 2 * len(ADDRESSES)
    assert f"{HIDDEN}@host" in caplog.text
    assert CANARY not in caplog.text + str(heard.items)


@pytest.mark.parametrize("name", ["bootstrap.servers", "metadata.broker.list"])
def test_an_address_with_a_user_is_refused(name: str) -> None:
    for address in (f"user:{CANARY}@host", f"http://{CANARY}@host:9092", f"host:9092,user:{CANARY}@other"):
        said = told(lambda address=address: awoke.Producer(kafka={name: address}))  # type: ignore[misc]
        assert "sasl.username" in said
        assert CANARY not in said


@pytest.mark.parametrize("options", [(), ("--nodes", "1")], ids=["process", "swarm"])
def test_a_run_with_wrong_secrets_shows_none(mock_cluster: MockCluster, options: tuple[str, ...]) -> None:
    names = ("SSL_KEY_PEM", "SSL_KEY_PASSWORD", "SASL_PASSWORD", "SASL_USERNAME", "SASL_PASWORD")
    env = {f"AWOKE_KAFKA_{name}": CANARY for name in names} | {"AWOKE_LOG_LEVEL": "debug"}
    env["AWOKE_KAFKA_SECURITY_PROTOCOL"] = "ssl"
    at = ("--bootstrap-servers", mock_cluster.bootstrap_servers)
    with Process("run", "examples.hello:app", *at, *options, env=env) as process:
        assert process.wait(60) == 78, process.output
        assert "error" in process.output.lower()
        assert CANARY not in process.output


def test_a_secret_within_another_setting_is_not_echoed() -> None:
    values = (
        f"https://registry/?api_key={CANARY}&x=1",
        f"https://registry/path?{CANARY}",
        f"https://user:pa:{CANARY}@registry/",
        f'org.apache.Login required username="u" password="{CANARY}";',
        f"host:9092;password={CANARY}",
        f"token: {CANARY}",
    )
    for value in values:
        shown = [shown_value("registry_url", value), shown_value("registry_url", (value, value))]
        shown += [shown_value("kafka", {"client.id": [value]}), shown_value("client.id", value.encode())]
        assert CANARY not in str(shown), value
    assert shown_value("kafka", {"sasl.jaas.config": CANARY}) == {"sasl.jaas.config": HIDDEN}
    assert shown_value("registry_url", "https://registry:8081/path") == "https://registry:8081/path"
    assert shown_value("x", ("a", 1)) == ("a", 1)
    with pytest.raises(awoke.ConfigError) as caught:
        load({"metrics_port": f"https://u:{CANARY}@host/?key={CANARY}"})
    assert CANARY not in str(caught.value)
