"""TLS and SASL against a real broker: right settings work, and a wrong one is soon an error that names its cause."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import awoke
from tests.support import judge
from tests.support.entrances import Client, doctor, try_all
from tests.support.secure_broker import PASSWORD, WRONG_PASSWORD, SecureBroker

Settings = Callable[[SecureBroker], Client]

RIGHT: dict[str, Settings] = {
    "PLAIN": lambda broker: Client(broker.at("SASL"), broker.sasl("PLAIN")),
    "SCRAM-SHA-256": lambda broker: Client(broker.at("SASL"), broker.sasl("SCRAM-SHA-256")),
    "SCRAM-SHA-512": lambda broker: Client(broker.at("SASL"), broker.sasl("SCRAM-SHA-512")),
    "OAUTHBEARER unsecured": lambda broker: Client(broker.at("SASL"), broker.unsecured()),
    "TLS": lambda broker: Client(broker.at("TLS"), broker.tls()),
    "mTLS": lambda broker: Client(broker.at("MTLS"), broker.mtls()),
}

WRONG: dict[str, tuple[Settings, type[awoke.KafkaError], str]] = {
    "password of PLAIN": (
        lambda broker: Client(broker.at("SASL"), broker.sasl("PLAIN", WRONG_PASSWORD)),
        awoke.AuthenticationFailed,
        "Invalid username or password",
    ),
    "password of SCRAM": (
        lambda broker: Client(broker.at("SASL"), broker.sasl("SCRAM-SHA-256", WRONG_PASSWORD)),
        awoke.AuthenticationFailed,
        "invalid credentials",
    ),
    "mechanism": (
        lambda broker: Client(broker.at("REAUTH"), broker.sasl("PLAIN")),
        awoke.AuthenticationFailed,
        "supported mechanisms: OAUTHBEARER",
    ),
    "SASL to a listener without": (
        lambda broker: Client(broker.at("TLS"), broker.sasl("PLAIN")),
        awoke.AuthenticationFailed,
        "security.protocol without SASL",
    ),
    "no SASL to a listener with": (
        lambda broker: Client(broker.at("SASL"), broker.tls()),
        awoke.AuthenticationFailed,
        "does the listener expect SASL?",
    ),
    "certificate has expired": (
        lambda broker: Client(broker.at("EXPIRED"), broker.tls()),
        awoke.TlsFailed,
        "has expired",
    ),
    "host": (lambda broker: Client(broker.at("WRONGHOST"), broker.tls()), awoke.TlsFailed, "is for another host"),
    "authority": (
        lambda broker: Client(broker.at("TLS"), broker.tls(ssl_ca_location=str(broker.certificates.unknown_authority))),
        awoke.TlsFailed,
        "unknown authority",
    ),
    "no client certificate": (
        lambda broker: Client(broker.at("MTLS"), broker.tls()),
        awoke.TlsFailed,
        "expects a client certificate",
    ),
    "client certificate of a stranger": (
        lambda broker: Client(
            broker.at("MTLS"),
            broker.mtls(
                ssl_certificate_location=str(broker.certificates.unknown_client),
                ssl_key_location=str(broker.certificates.unknown_client),
            ),
        ),
        awoke.TlsFailed,
        "expects a client certificate that it trusts",
    ),
    "plain client of a TLS listener": (
        lambda broker: Client(broker.at("TLS"), {"broker.address.family": "v4"}),
        awoke.TlsFailed,
        "is it a listener with TLS?",
    ),
    "TLS client of a plain listener": (
        lambda broker: Client(broker.plain, broker.tls()),
        awoke.TlsFailed,
        "is it a listener without TLS?",
    ),
}


@pytest.fixture
def topic(secure_broker: SecureBroker) -> str:
    return secure_broker.create_topic()


@pytest.mark.parametrize("name", RIGHT)
def test_right_settings_work_everywhere(secure_broker: SecureBroker, topic: str, name: str) -> None:
    client = RIGHT[name](secure_broker)
    errors = try_all(client, topic)
    assert errors == dict.fromkeys(errors)
    assert set(judge.values_of(secure_broker.plain, topic, "read_committed")) == {b"value"}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_setting_is_soon_an_error_with_its_cause(secure_broker: SecureBroker, topic: str, name: str) -> None:
    # Whatever waits for the brokers does so for 10 s at most: after that the error would be another one.
    make, kind, words = WRONG[name]
    client = make(secure_broker)
    errors = try_all(client, topic)
    for entrance, error in errors.items():
        cause = error.__cause__ if isinstance(error, awoke.DeliveryFailed) else error
        assert isinstance(cause, kind), f"{entrance}: {error!r}"
        assert words in str(error), f"{entrance}: {error}"
        assert_no_secret(f"{error!r} {error}")


@pytest.mark.parametrize("name", ["password of PLAIN", "authority"])
def test_doctor_names_the_cause(secure_broker: SecureBroker, name: str) -> None:
    make, _, words = WRONG[name]
    done = doctor(make(secure_broker))
    assert done.returncode == 1
    assert words in done.stdout
    assert "does a broker listen there" not in done.stdout
    assert_no_secret(done.stdout + done.stderr)


def test_doctor_says_that_nothing_listens() -> None:
    done = doctor(Client("127.0.0.1:1", {}), "--timeout-s", "0.5")
    assert done.returncode == 1
    assert "does a broker listen there" in done.stdout


def test_one_wrong_bootstrap_broker_of_two_does_no_harm(secure_broker: SecureBroker, topic: str) -> None:
    client = Client(f"{secure_broker.at('EXPIRED')},{secure_broker.at('TLS')}", secure_broker.tls())
    errors = try_all(client, topic)
    assert errors == dict.fromkeys(errors)


def assert_no_secret(text: str) -> None:
    assert PASSWORD not in text
    assert WRONG_PASSWORD not in text
