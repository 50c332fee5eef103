"""Environment variables: settings, librdkafka's properties, misspelt names, and those of other programs."""

from __future__ import annotations

import os
from collections.abc import Mapping

import pytest

from awoke.errors import ConfigError
from awoke.settings import environment

NAMES = ("workers", "group", "metrics_port")


@pytest.fixture(autouse=True)
def empty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Starts without variables of awoke's."""
    for variable in [each for each in os.environ if each.startswith("AWOKE")]:
        monkeypatch.delenv(variable)


def set_all(monkeypatch: pytest.MonkeyPatch, variables: Mapping[str, str]) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


def test_settings_are_read_by_their_names_and_properties_with_dots(monkeypatch: pytest.MonkeyPatch) -> None:
    variables = {"AWOKE_METRICS_PORT": "1", "AWOKE_KAFKA_LINGER_MS": "5", "AWOKE_KAFKA_SASL_USERNAME": "a_b"}
    set_all(monkeypatch, {**variables, "OTHER": "x"})
    assert environment.read(NAMES) == {"metrics_port": "1", "kafka": {"linger.ms": "5", "sasl.username": "a_b"}}
    assert environment.variable_of("metrics_port") == "AWOKE_METRICS_PORT"


def test_an_environment_without_settings_has_none() -> None:
    assert environment.read(NAMES) == {"kafka": {}}
    assert environment.unknown(NAMES) == []


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("AWOKE_WROKERS", "AWOKE_WORKERS"),
        ("AWOKE_WORKER", "AWOKE_WORKERS"),
        ("AWOKE_METRIC_PORT", "AWOKE_METRICS_PORT"),
        ("AWOKE_KAFAK_LINGER_MS", "AWOKE_KAFKA_LINGER_MS"),
        ("AWOKE_KAFKAS_ACKS", "AWOKE_KAFKA_ACKS"),
    ],
)
def test_a_misspelt_variable_is_refused_with_the_one_that_was_meant(
    variable: str, meant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "canary")
    with pytest.raises(ConfigError, match=f"^{variable}: there is no such setting; did you mean {meant}") as refused:
        environment.read(NAMES)
    assert refused.value.property == variable
    assert "canary" not in str(refused.value)


def test_properties_in_one_variable_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWOKE_KAFKA", "linger.ms=5")
    with pytest.raises(ConfigError, match="have a variable each, as in AWOKE_KAFKA_LINGER_MS"):
        environment.read(NAMES)


def test_variables_that_resemble_no_setting_are_unknown_and_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = {"AWOKE_GROUP": "a", "AWOKE_KAFKA_ACKS": "1", "AWOKE_RPC_SECRET": "s"}
    set_all(monkeypatch, {**ours, "AWOKE_DEPLOYED_BY": "x", "AWOKE_ANSIBLE": "y", "AWOKEN": "z"})
    assert environment.read(NAMES) == {"group": "a", "kafka": {"acks": "1"}}
    assert environment.unknown(NAMES) == ["AWOKE_ANSIBLE", "AWOKE_DEPLOYED_BY"]


def links(service: str, port: str = "9092", host: str = "10.96.0.17") -> dict[str, str]:
    """The variables that Kubernetes sets for a service in each pod of its namespace."""
    name = service.upper().replace("-", "_")
    address = f"tcp://{host}:{port}"
    return {
        f"{name}_SERVICE_HOST": host,
        f"{name}_SERVICE_PORT": port,
        f"{name}_SERVICE_PORT_PLAINTEXT": port,
        f"{name}_PORT": address,
        f"{name}_PORT_{port}_TCP": address,
        f"{name}_PORT_{port}_TCP_PROTO": "tcp",
        f"{name}_PORT_{port}_TCP_PORT": port,
        f"{name}_PORT_{port}_TCP_ADDR": host,
    }


@pytest.mark.parametrize("service", ["awoke", "awoke-kafka", "awoke-metrics", "awoke-workers", "awoke-kafak"])
@pytest.mark.parametrize("host", ["10.96.0.17", "[fd00:10:96::11]"])
def test_variables_of_service_links_are_no_settings(service: str, host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    set_all(monkeypatch, links(service, host=host))
    assert environment.read(NAMES) == {"kafka": {}}
    assert environment.unknown(NAMES) == []


def test_variables_of_linked_containers_are_no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    set_all(monkeypatch, links("awoke-kafka"))
    set_all(monkeypatch, {"AWOKE_KAFKA_NAME": "/web/kafka", "AWOKE_KAFKA_ENV_LANG": "C", "AWOKE_KAFKA_ACKS": "1"})
    assert environment.read(NAMES) == {"kafka": {"acks": "1"}}


def test_a_setting_beside_the_service_links_of_its_name_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    set_all(monkeypatch, {**links("awoke-metrics"), "AWOKE_METRICS_PORT": "9404"})
    assert environment.read(NAMES) == {"metrics_port": "9404", "kafka": {}}


def test_an_address_that_is_no_service_link_is_read_and_refused_as_a_port(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWOKE_METRICS_PORT", "tcp://0.0.0.0:9404")
    assert environment.read(NAMES)["metrics_port"] == "tcp://0.0.0.0:9404"


@pytest.mark.parametrize("empty", ["", " ", "\n"])
def test_an_empty_variable_counts_as_unset(empty: str, monkeypatch: pytest.MonkeyPatch) -> None:
    variables = ("AWOKE_WORKERS", "AWOKE_KAFKA_SASL_PASSWORD", "AWOKE_KAFKA", "AWOKE_WROKERS", "AWOKE_DEPLOYED_BY")
    set_all(monkeypatch, dict.fromkeys(variables, empty))
    assert environment.read(NAMES) == {"kafka": {}}
    assert environment.unknown(NAMES) == []


def test_the_line_end_of_a_secret_is_no_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    set_all(monkeypatch, {"AWOKE_KAFKA_SASL_PASSWORD": "s3cret\n", "AWOKE_WORKERS": "8\r\n"})
    assert environment.read(NAMES) == {"workers": "8", "kafka": {"sasl.password": "s3cret"}}


@pytest.mark.parametrize("value", ['"8"', "'8'"])
def test_quotes_that_no_shell_has_removed_are_named(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWOKE_WORKERS", value)
    with pytest.raises(ConfigError, match=r"^AWOKE_WORKERS: .*has quotes.*leave them out"):
        environment.read(NAMES)


@pytest.mark.parametrize("name", ["AWOKE_GROUP", "AWOKE_KAFKA_SASL_PASSWORD"])
def test_a_value_that_is_not_utf_8_is_refused_without_being_shown(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, os.fsdecode(b"gr\xfcn"))
    with pytest.raises(ConfigError, match=f"^{name}: the value is not UTF-8$"):
        environment.read(NAMES)


def test_a_secret_may_have_quotes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWOKE_KAFKA_SASL_PASSWORD", '"s3cret"')
    assert environment.read(NAMES) == {"kafka": {"sasl.password": '"s3cret"'}}
