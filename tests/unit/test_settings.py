"""Settings: layers, origins, errors, secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

import awoke
from awoke.errors import ConfigError
from awoke.settings import EngineSettings, Settings, client_properties, load, load_run, unknown_variables


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


def test_a_file_that_is_no_toml_is_named(tmp_path: Path) -> None:
    (tmp_path / "awoke.toml").write_text("workers = = 2")
    with pytest.raises(ConfigError, match=r"awoke\.toml"):
        load({}, tmp_path)


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


def test_clients_look_for_added_partitions_every_half_minute_unless_told_otherwise(tmp_path: Path) -> None:
    name = "topic.metadata.refresh.interval.ms"
    assert client_properties(load({}, tmp_path).values)[name] == "30000"
    assert client_properties(load({"kafka": {name: 7_000}}, tmp_path).values)[name] == "7000"


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("AWOKE_WORKERS", "eight", "AWOKE_WORKERS: 'eight' is no whole number"),
        ("AWOKE_WORKERS", "", "AWOKE_WORKERS: '' is no whole number"),
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
        ("AWOKE_LOG_FORMAT", "yaml", "AWOKE_LOG_FORMAT: 'yaml' is none of text, json"),
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


def test_an_app_reads_its_settings_once_and_again_where_they_may_have_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    app = awoke.App("shop")
    monkeypatch.setenv("AWOKE_WORKERS", "3")
    assert app.settings.workers == 3
    assert app.settings is app.settings
    monkeypatch.setenv("AWOKE_WORKERS", "4")
    assert app.settings.workers == 3
    assert awoke.AppRunner(app).settings.workers == 4, "each start reads them"
    assert app.settings.workers == 4
    app.use(workers=5)
    assert app.settings.workers == 5


def test_the_engine_gets_its_settings_as_one_value() -> None:
    settings = Settings(commit_interval_s=2.0, revoke_timeout_s=7.0, fetch_memory_mb=3, transaction_records_max=5)
    engine = settings.for_engine(partitions_total=12)
    assert (engine.commit_interval_s, engine.revoke_timeout_s) == (1.5, 7.0)
    assert (engine.fetch_memory_bytes, engine.partitions_total) == (3 * 1024 * 1024, 12)
    assert (engine.transaction_interval_s, engine.transaction_records_max) == (0.0, 5)


def test_the_bridge_reads_every_setting_of_the_engine() -> None:
    source = (Path(__file__).resolve().parents[2] / "crates" / "bridge" / "src" / "settings.rs").read_text()
    struct = source.partition("pub struct EngineSettings {")[2].partition("}")[0]
    names = [line.partition(":")[0].strip() for line in struct.splitlines() if ":" in line]
    assert sorted(names) == sorted(EngineSettings.__struct_fields__)
