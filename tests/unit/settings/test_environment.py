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
