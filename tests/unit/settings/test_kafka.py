"""librdkafka's properties for a client: awoke's defaults, the user's own, and what is refused before librdkafka."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from awoke.errors import ConfigError
from awoke.settings import Settings, client_properties, load, number, properties_of
from awoke.settings.kafka import check_addresses, check_readable_files, check_text_of_c, poll_interval_s
from awoke.settings.oauth import OAuthToken


@pytest.mark.parametrize(
    ("text", "found"), [(None, 7), ("", 7), ("5", 5), (" 5 ", 5), ("0", 0), ("-5", 7), ("5.0", 7), ("many", 7)]
)
def test_a_number_is_a_property_or_the_default(text: str | None, found: int) -> None:
    assert number({} if text is None else {"linger.ms": text}, "linger.ms", 7) == found


def test_the_poll_interval_is_librdkafkas_unless_it_is_set() -> None:
    assert (poll_interval_s({}), poll_interval_s({"max.poll.interval.ms": "6500"})) == (300.0, 6.5)


def test_properties_become_text_as_librdkafka_writes_it() -> None:
    given = {"enable.idempotence": True, "socket.keepalive.enable": False, "linger.ms": 5, "a": 0.5, "acks": "all"}
    assert properties_of(given, "argument") == {
        "enable.idempotence": "true",
        "socket.keepalive.enable": "false",
        "linger.ms": "5",
        "a": "0.5",
        "acks": "all",
    }


@pytest.mark.parametrize("value", ["linger.ms=5", 5, ["linger.ms"]])
def test_properties_that_are_no_table_are_refused_with_their_origin(value: Any) -> None:
    with pytest.raises(ConfigError, match=r"'kafka' \(awoke\.toml\): must be a table") as refused:
        properties_of(value, "awoke.toml")
    assert refused.value.property == "kafka"


def test_clients_look_for_added_partitions_every_half_minute_unless_told_otherwise(tmp_path: Path) -> None:
    name = "topic.metadata.refresh.interval.ms"
    assert client_properties(load({}, tmp_path).values)[name] == "30000"
    assert client_properties(load({"kafka": {name: 7_000}}, tmp_path).values)[name] == "7000"


def test_the_users_properties_win_over_awokes_and_those_of_a_client_over_all() -> None:
    settings = Settings(bootstrap_servers="a:1", kafka={"client.id": "mine", "acks": "all"})
    properties = client_properties(settings, acks="1")
    assert (properties["bootstrap.servers"], properties["client.id"], properties["acks"]) == ("a:1", "mine", "1")
    assert client_properties(Settings())["client.id"] == "awoke"


def test_librdkafka_measures_where_metrics_are_served_unless_told_otherwise() -> None:
    name = "statistics.interval.ms"
    assert name not in client_properties(Settings())
    assert client_properties(Settings(metrics_port=0))[name] == "5000"
    assert client_properties(Settings(metrics_port=0, kafka={name: "0"}))[name] == "0"


def test_a_client_has_the_source_of_its_tokens() -> None:
    assert client_properties(Settings()).token_source is None
    source = client_properties(Settings(oauth_token=lambda: OAuthToken("t", 4e9))).token_source
    assert source is not None
    assert source() == ("t", 4_000_000_000_000, "", [])


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        (Settings(kafka={"sasl.password": "canary\0"}), "sasl.password"),
        (Settings(bootstrap_servers="me:canary@host:9092"), "bootstrap.servers"),
        (Settings(kafka={"metadata.broker.list": "me:canary@host"}), "metadata.broker.list"),
        (Settings(kafka={"ssl.ca.location": "/nowhere/ca.pem"}), "ssl.ca.location"),
    ],
    ids=["zero byte", "user", "user of a list", "file"],
)
def test_a_property_that_librdkafka_would_misread_is_refused_without_its_secret(settings: Settings, name: str) -> None:
    with pytest.raises(ConfigError) as refused:
        client_properties(settings)
    assert refused.value.property == name
    assert "canary" not in str(refused.value)


@pytest.mark.parametrize("properties", [{"sasl.password": "canary\0x"}, {"sasl.\0x": "canary"}])
def test_a_zero_byte_is_refused_without_the_value(properties: dict[str, str]) -> None:
    check_text_of_c({"sasl.password": "canary"})
    with pytest.raises(ConfigError, match="must not have a zero byte") as error:
        check_text_of_c(properties)
    assert "canary" not in str(error.value)
    assert str(error.value).isprintable()


@pytest.mark.parametrize("name", ["bootstrap.servers", "metadata.broker.list"])
def test_a_user_in_an_address_is_refused_without_it(name: str) -> None:
    check_addresses({name: "a:1,b:2", "sasl.username": "me@host"})
    with pytest.raises(ConfigError, match=f"property '{name}': has an address with a user") as error:
        check_addresses({name: "a:1,canary@b:2"})
    assert "canary" not in str(error.value)


@pytest.mark.parametrize("address", ["http://kafka:9092", "b:2,https://kafka:9092/path", " tcp://kafka:9092"])
def test_a_url_is_no_address_of_a_broker(address: str) -> None:
    check_addresses({"bootstrap.servers": "PLAINTEXT://a:1,sasl_ssl://b:2,[::1]:9092"})
    with pytest.raises(
        ConfigError, match=r"'\w+://kafka:9092.*' is a URL; a broker's address is HOST:PORT, as in kafka:9092"
    ):
        check_addresses({"bootstrap.servers": address})


def test_a_file_that_can_not_be_read_is_named_with_the_reason(tmp_path: Path) -> None:
    there: dict[str, Any] = {"ssl.ca.location": str(tmp_path), "ssl.certificate.location": "", "a": "/nowhere"}
    check_readable_files({**there, "ssl.crl.location": "probe", "ssl.key.location": 5})
    with pytest.raises(ConfigError, match=r"location': '/nowhere/ca\.pem' can't be read: No such file") as error:
        check_readable_files({"ssl.ca.location": "/nowhere/ca.pem"})
    assert error.value.property == "ssl.ca.location"
