"""Settings from arguments, environment and file: their order, origins and errors."""

from __future__ import annotations

from pathlib import Path

import pytest

import awoke
from awoke.errors import ConfigError
from awoke.settings import load, load_run, unknown_variables


def test_arguments_win_over_environment_over_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "awoke.toml").write_text("workers = 2\ngroup = 'file'\n[kafka]\nlinger.ms = 7\n")
    monkeypatch.setenv("AWOKE_WORKERS", "3")
    monkeypatch.setenv("AWOKE_GROUP", "environment")
    monkeypatch.setenv("AWOKE_KAFKA_SASL_USERNAME", "me")
    loaded = load({"workers": 4, "group": None}, tmp_path)
    assert (loaded.values.workers, loaded.values.group) == (4, "environment")
    assert loaded.values.kafka == {"linger.ms": "7", "sasl.username": "me"}
    origins = {name: origin for name, _, origin in loaded.explain()}
    assert (origins["workers"], origins["group"], origins["linger.ms"]) == ("argument", "environment", "awoke.toml")
    assert origins["commit_interval_s"] == "default"


@pytest.mark.parametrize(
    ("arguments", "named"),
    [({"wrokers": 1}, "wrokers"), ({"workers": "many"}, "workers"), ({"workers": 0}, "workers")],
)
def test_what_is_wrong_is_named(arguments: dict[str, object], named: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=named) as error:
        load(arguments, tmp_path)
    assert error.value.property == named


def test_secrets_are_not_explained(tmp_path: Path) -> None:
    loaded = load({"kafka": {"sasl.password": "canary", "ssl.key.pem": "canary"}}, tmp_path)
    assert "canary" not in str(loaded.explain())


@pytest.mark.parametrize("name", ["revoke_timeout_s", "shutdown_timeout_s"])
@pytest.mark.parametrize("timeout_s", [20.0, 21.0])
def test_a_timeout_that_outlasts_the_poll_interval_is_refused(tmp_path: Path, name: str, timeout_s: float) -> None:
    loaded = load({name: timeout_s, "kafka": {"max.poll.interval.ms": 20_000}}, tmp_path)
    with pytest.raises(ConfigError) as refused:
        loaded.check_member()
    assert refused.value.property == name
    text = str(refused.value)
    assert f"{name!r} (argument): {timeout_s:g} s" in text
    assert "max.poll.interval.ms (argument), 20 s" in text
    assert f"set {name} below 20, or raise max.poll.interval.ms" in text


def test_a_timeout_is_compared_with_librdkafkas_own_poll_interval(tmp_path: Path) -> None:
    load({"revoke_timeout_s": 299.0}, tmp_path).check_member()
    with pytest.raises(ConfigError, match=r"max\.poll\.interval\.ms \(default\), 300 s"):
        load({"revoke_timeout_s": 300.0}, tmp_path).check_member()


@pytest.mark.parametrize(("interval_ms", "timeout_s"), [(300_000, 30.0), (60_000, 30.0), (20_000, 10.0), ("6000", 3.0)])
def test_timeouts_that_are_not_set_fit_the_poll_interval(
    tmp_path: Path, interval_ms: int | str, timeout_s: float
) -> None:
    loaded = load({"kafka": {"max.poll.interval.ms": interval_ms}}, tmp_path)
    assert (loaded.values.revoke_timeout_s, loaded.values.shutdown_timeout_s) == (timeout_s, timeout_s)
    assert {name: origin for name, _, origin in loaded.explain()}["revoke_timeout_s"] == "default"
    loaded.check_member()


@pytest.mark.parametrize(
    "kafka",
    [
        {"session.timeout.ms": 3_000},
        {"heartbeat.interval.ms": 45_000},
        {"session.timeout.ms": 6, "heartbeat.interval.ms": 6},
    ],
)
def test_heartbeats_that_are_too_far_apart_are_refused(tmp_path: Path, kafka: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match="between two heartbeats") as refused:
        load({"kafka": kafka}, tmp_path).check_member()
    assert refused.value.property == "heartbeat.interval.ms"
    load({"kafka": {**kafka, "group.protocol": "consumer"}}, tmp_path).check_member()


def test_an_app_with_such_settings_does_not_start() -> None:
    app = awoke.App("late", kafka={"max.poll.interval.ms": 10_000}, revoke_timeout_s=10)
    app.on("orders")(lambda message: None)
    with pytest.raises(ConfigError, match="revoke_timeout_s"):
        awoke.AppRunner(app).start()


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("AWOKE_WORKERS", "eight", "AWOKE_WORKERS: 'eight' is no whole number"),
        ("AWOKE_COMMIT_INTERVAL_S", "soon", "AWOKE_COMMIT_INTERVAL_S: 'soon' is no number"),
        ("AWOKE_COMMIT_INTERVAL_S", "nan", "AWOKE_COMMIT_INTERVAL_S: must be a number of seconds from 0, not nan"),
        ("AWOKE_TRACING", "maybe", "AWOKE_TRACING: 'maybe' is neither true nor false"),
        ("AWOKE_METRICS_PORT", "70000", "AWOKE_METRICS_PORT: must be a port from 0 to 65535, not 70000"),
        ("AWOKE_WROKERS", "8", "AWOKE_WROKERS: there is no such setting; did you mean AWOKE_WORKERS?"),
        ("AWOKE_NODE", "8", "AWOKE_NODE: there is no such setting; did you mean AWOKE_NODES?"),
        ("AWOKE_KAFAK_LINGER_MS", "8", "did you mean AWOKE_KAFKA_LINGER_MS?"),
        ("AWOKE_KAFKA", "linger.ms=8", "AWOKE_KAFKA: is no setting; librdkafka's properties have a variable each"),
    ],
)
def test_a_wrong_variable_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, said: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigError) as refused:
        load({}, tmp_path)
    assert said in str(refused.value)
    with pytest.raises(ConfigError):
        awoke.App("shop").load_settings()


def test_a_wrong_value_of_an_argument_or_a_file_says_where_it_stands(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^setting 'workers': 2\.5 is no whole number$"):
        load({"workers": 2.5}, tmp_path)
    (tmp_path / "awoke.toml").write_text("workers = 'eight'\n")
    with pytest.raises(ConfigError, match=r"^awoke\.toml: setting 'workers': 'eight' is no whole number$"):
        load({}, tmp_path)
    (tmp_path / "awoke.toml").write_text("wrokers = 8\n")
    with pytest.raises(ConfigError, match=r"'wrokers' \(awoke\.toml\): does not exist; did you mean 'workers'\?"):
        load({}, tmp_path)


def test_a_variable_of_another_program_is_no_error_but_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("AWOKE_DEPLOYED_BY", "AWOKE_RPC_SECRET", "AWOKE_KAFKA_LINGER_MS", "AWOKE_NODES"):
        monkeypatch.setenv(variable, "1")
    load({}, tmp_path)
    assert unknown_variables() == ["AWOKE_DEPLOYED_BY"]


def test_settings_of_a_run_come_from_options_environment_and_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "awoke.toml").write_text("nodes = 2\nlog_format = 'json'\nmemory_limit = '1G'\nworkers = 3\n")
    monkeypatch.setenv("AWOKE_NODES", "3")
    monkeypatch.setenv("AWOKE_LOG_LEVEL", "DEBUG")
    loaded = load_run({"restarts_max": 7, "nodes": None}, tmp_path)
    values = loaded.values
    assert (values.nodes, values.log_format, values.log_level) == (3, "json", "DEBUG")
    assert (values.memory_limit, values.restarts_max) == ("1G", 7)
    origins = {name: origin for name, _, origin in loaded.explain()}
    assert (origins["nodes"], origins["log_format"], origins["restarts_max"]) == (
        "environment",
        "awoke.toml",
        "argument",
    )
    assert origins["hang_after_s"] == "default"
    assert load({}, tmp_path).values.workers == 3, "the same file has the app's settings"


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("AWOKE_LOG_LEVEL", "loud", "AWOKE_LOG_LEVEL: 'loud' is none of debug, info, warning, error"),
        ("AWOKE_LOG_FORMAT", "yaml", "AWOKE_LOG_FORMAT: 'yaml' is none of console, json"),
        ("AWOKE_NODES", "0", "AWOKE_NODES: must be at least 1, not 0"),
        ("AWOKE_HANG_AFTER_S", "-1", "AWOKE_HANG_AFTER_S: must be a number of seconds from 0, not -1"),
    ],
)
def test_a_wrong_variable_of_a_run_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, said: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigError) as refused:
        load_run({}, tmp_path)
    assert str(refused.value) == said
    load({}, tmp_path)


def test_an_app_can_not_be_given_what_belongs_to_its_run() -> None:
    with pytest.raises(ConfigError, match=r"set --nodes, AWOKE_NODES, or nodes in awoke\.toml"):
        awoke.App("shop", nodes=3).load_settings()


def test_librdkafkas_brokers_are_the_apps_brokers_unless_it_has_its_own(tmp_path: Path) -> None:
    kafka = {"bootstrap.servers": "a:1"}
    values = load({"kafka": kafka}, tmp_path).values
    assert (values.bootstrap_servers, values.kafka) == ("a:1", {})
    assert load({"kafka": kafka, "bootstrap_servers": "b:2"}, tmp_path).values.bootstrap_servers == "b:2"


def test_a_setting_of_the_command_line_wins_over_each_of_librdkafkas_properties_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "awoke.toml").write_text("[kafka]\nlinger.ms = 1\nacks = 'all'\n")
    monkeypatch.setenv("AWOKE_KAFKA_LINGER_MS", "2")
    loaded = load({"kafka": {"client.id": "me"}}, tmp_path)
    assert loaded.values.kafka == {"linger.ms": "2", "acks": "all", "client.id": "me"}
    origins = {each.name: each.origin for each in loaded.explain()}
    assert (origins["linger.ms"], origins["acks"], origins["client.id"]) == ("environment", "awoke.toml", "argument")


def test_a_token_function_is_given_in_code_only(tmp_path: Path) -> None:
    def give_token() -> None: ...

    shown = {name: value for name, value, _ in load({"oauth_token": give_token}, tmp_path).explain()}
    assert shown["oauth_token"].endswith("give_token")
    (tmp_path / "awoke.toml").write_text("oauth_token = 'shop:give_token'\n")
    with pytest.raises(ConfigError, match=r"'oauth_token' \(awoke\.toml\): is a function, which can only be given"):
        load({}, tmp_path)


def test_a_permanent_name_in_the_group_needs_the_classic_protocol(tmp_path: Path) -> None:
    load({"instance_id": "a"}, tmp_path).check_member()
    loaded = load({"instance_id": "a", "kafka": {"group.protocol": "consumer"}}, tmp_path)
    with pytest.raises(ConfigError, match=r"needs group\.protocol=classic \(argument says otherwise\)"):
        loaded.check_member()


def test_an_unknown_setting_without_a_similar_one_is_told_all_that_exist(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"'zzz' \(argument\): does not exist; there are bootstrap_servers, group, "):
        load({"zzz": 1}, tmp_path)
