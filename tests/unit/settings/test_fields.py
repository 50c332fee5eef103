"""The fields of the settings: the values that they refuse, and those that reach the engine."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from awoke.errors import ConfigError
from awoke.settings import EngineSettings, RunSettings, Settings
from awoke.settings.fields import ALL_NAMES
from tests.support.python_syntax import REPOSITORY


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("workers", 0),
        ("async_jobs_max", 0),
        ("transaction_records_max", -1),
        ("fetch_memory_mb", 0),
        ("fetch_batch_max_mb", 0),
        ("metrics_port", -1),
        ("metrics_port", 65_536),
        ("instance_id", " "),
        ("bootstrap_servers", ""),
        ("oauth_token", "token"),
    ],
)
def test_a_setting_of_an_app_that_makes_no_sense_is_refused_by_its_name(name: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=f"setting '{name}': ") as refused:
        Settings(**{name: value})
    assert refused.value.property == name


@pytest.mark.parametrize(
    ("name", "value"), [("log_level", "loud"), ("nodes", 0), ("restarts_max", -1), ("hang_after_s", -0.1)]
)
def test_a_setting_of_a_run_that_makes_no_sense_is_refused_by_its_name(name: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=f"setting '{name}': ") as refused:
        RunSettings(**{name: value})
    assert refused.value.property == name


@pytest.mark.parametrize("value_s", [-1.0, float("nan"), float("inf")])
@pytest.mark.parametrize("name", [name for name in Settings.__struct_fields__ if name.endswith("_s")])
def test_a_duration_is_finite_and_not_negative(name: str, value_s: Any) -> None:
    least: dict[str, Any] = {name: 0.0}
    Settings(**least)
    with pytest.raises(ConfigError, match="must be a number of seconds from 0") as refused:
        Settings(**{name: value_s})
    assert refused.value.property == name


def test_the_least_values_are_taken() -> None:
    assert Settings(workers=1, metrics_port=0, fetch_memory_mb=1).metrics_port == 0
    assert Settings(metrics_port=65_535).metrics_port == 65_535
    assert RunSettings(nodes=1, restarts_max=0).restarts_max == 0


@pytest.mark.parametrize("level", ["debug", "Info", "ERROR"])
def test_a_level_is_one_of_loggings_in_any_case(level: str) -> None:
    assert RunSettings(log_level=level).log_level.upper() in logging.getLevelNamesMapping()


def test_no_name_is_a_setting_of_the_app_and_of_its_run() -> None:
    of_app, of_run = set(Settings.__struct_fields__), set(RunSettings.__struct_fields__)
    assert of_app & of_run == set()
    assert of_app | of_run == ALL_NAMES | {"kafka", "oauth_token"}, "a variable holds neither a table nor a function"


def test_settings_are_shown_without_secrets() -> None:
    settings = Settings(bootstrap_servers="me:canary@host:9092", kafka={"sasl.password": "canary", "acks": "all"})
    shown = repr(settings) + str(settings.__rich_repr__())
    assert "canary" not in shown
    assert shown.count("'acks': 'all'") == 2


def test_the_engine_gets_its_settings_as_one_value() -> None:
    settings = Settings(commit_interval_s=2.0, revoke_timeout_s=7.0, fetch_memory_mb=3, transaction_records_max=5)
    engine = settings.for_engine(partitions_total=12)
    assert (engine.commit_interval_s, engine.revoke_timeout_s) == (1.5, 7.0)
    assert (engine.fetch_memory_bytes, engine.partitions_total) == (3 * 1024 * 1024, 12)
    assert (engine.transaction_interval_s, engine.transaction_records_max) == (0.0, 5)


def test_the_members_of_a_process_share_the_memory_for_fetched_messages() -> None:
    settings = Settings(fetch_memory_mb=3)
    assert settings.for_engine(members=2).fetch_memory_bytes == 3 * 1024 * 1024 // 2


def test_the_bridge_reads_every_setting_of_the_engine() -> None:
    source = (REPOSITORY / "crates" / "bridge" / "src" / "settings.rs").read_text()
    struct = source.partition("pub struct EngineSettings {")[2].partition("}")[0]
    names = [line.partition(":")[0].strip() for line in struct.splitlines() if ":" in line]
    assert sorted(names) == sorted(EngineSettings.__struct_fields__)


@pytest.mark.parametrize(
    "servers",
    ["kafka:9092", "kafka", "a:9092, b_1.c:9093,", "SSL://a:9092", "sasl_ssl://[::1]:1", "[fe80::1%eth0]", "::1"],
)
def test_addresses_of_brokers_are_taken_as_librdkafka_takes_them(servers: str) -> None:
    assert Settings(bootstrap_servers=servers).bootstrap_servers == servers


@pytest.mark.parametrize(
    ("servers", "text"),
    [
        ("http://kafka:9092/", "'http://kafka:9092/' is a URL; a broker's address is HOST:PORT, as in kafka:9092"),
        ("a:9092,b:99999", "'b:99999' needs a port from 1 to 65535"),  # librdkafka took it for 34463.
        ("a:0", "needs a port"),
        ("a:", "needs a port"),
        ("kafka:${PORT}", "needs a port"),
        ("[::1]:70000", "needs a port"),
        ("a:9092;b:9092", "a comma stands between two"),
        ("a:9092 b:9092", "a comma stands between two"),
        ("me:canary@a:90920", "'a:90920' needs a port"),
    ],
)
def test_an_address_that_would_lead_elsewhere_or_nowhere_is_refused(servers: str, text: str) -> None:
    with pytest.raises(ConfigError) as raised:
        Settings(bootstrap_servers=servers)
    assert text in str(raised.value)
    assert raised.value.property == "bootstrap_servers"
    assert "canary" not in str(raised.value)
