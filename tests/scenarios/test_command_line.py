"""awoke at the shell: run, produce, tail, topics, doctor, with right and wrong input."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.support.clusters import RealCluster, unique
from tests.support.processes import Process


def awoke_says(*arguments: str, code: int = 0, env: dict[str, str] | None = None) -> str:
    """Run a command to its end; what it wrote."""
    with Process(*arguments, env=env) as process:
        assert process.wait() == code, process.output
        return process.output


def test_a_topic_from_its_creation_to_its_messages(real_cluster: RealCluster, tmp_path: Path) -> None:
    at, topic = ("--bootstrap-servers", real_cluster.bootstrap_servers), unique("shell")
    assert "created" in awoke_says("topics", "create", topic, "--partitions", "2", *at)
    assert topic in awoke_says("topics", "list", *at)
    file = tmp_path / "lines.json"
    file.write_text('{"id": 1}\n{"id": 2}\n')
    lines = ("--file", str(file), "--format", "json")
    assert "delivered 2 messages" in awoke_says("produce", topic, *lines, "--key-field", "id", *at)
    assert "delivered 1 message " in awoke_says("produce", topic, '{"id": 3}', "--key", "3", *at)
    shown = awoke_says("tail", topic, "--from", "earliest", "--until-end", "--json", *at)
    assert shown.count('"topic"') == 3
    assert "next offset" in awoke_says("topics", "describe", topic, *at)
    assert "broker 1" in awoke_says("doctor", *at)
    file.write_text('{"id": 1}\nno json\n')
    assert "line" in awoke_says("produce", topic, *lines, *at, code=1)
    assert "already exists" in awoke_says("topics", "create", topic, *at, code=1)
    assert "pass --yes" in awoke_says("topics", "delete", topic, *at, code=2)
    assert "would delete" in awoke_says("topics", "delete", topic, "--dry-run", *at)
    assert f"deleted topic {topic}" in awoke_says("topics", "delete", topic, "--yes", *at)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_an_embedded_app_with_0(number: signal.Signals) -> None:
    with Process("run", "examples.hello:app", "--embedded") as process:
        process.wait_for("partitions.assigned")
        process.signal(number)
        assert process.wait(30) == 0, process.output
        assert "is_clean=True" in process.output


def test_a_log_can_be_read_by_a_program() -> None:
    with Process("run", "examples.hello:app", "--embedded", "--log-format", "json", "--metrics-port", "0") as process:
        process.wait_for("partitions.assigned")
        process.signal(signal.SIGTERM)
        assert process.wait(30) == 0, process.output
        lines = [json.loads(line) for line in process.output.splitlines() if line.startswith("{")]
    assigned = next(line for line in lines if line["text"] == "partitions.assigned")
    assert assigned["level"] == "info"
    assert assigned["partitions"]
    assert "'yaml' is none of" in awoke_says("run", "examples.hello:app", "--log-format", "yaml", code=2)


def test_what_is_wrong_is_one_line(real_cluster: RealCluster) -> None:
    for target, said in (("nowhere:app", "no module"), ("awoke:nothing", "no app"), ("awoke", "module:app")):
        output = awoke_says("run", target, code=78)
        assert said in output
        assert "Traceback" not in output
    at = ("--bootstrap-servers", "127.0.0.1:1")
    output = awoke_says("run", "examples.hello:app", *at, code=1, env={"AWOKE_STARTUP_TIMEOUT_S": "0.5"})
    assert "no broker of 127.0.0.1:1 (from an argument) answered within 0.5 s" in output
    assert "Traceback" not in output
    real = ("--bootstrap-servers", real_cluster.bootstrap_servers)
    assert "does not exist" in awoke_says("run", "examples.hello:app", *real, code=78)
    assert "linger.msec" in awoke_says("run", "examples.hello:app", *real, "--kafka", "linger.msec=1", code=78)
    assert "Is the address right" in awoke_says("doctor", *at, "--timeout-s", "0.5", code=1)


def test_doctor_shows_what_the_environment_says() -> None:
    at = ("--bootstrap-servers", "127.0.0.1:1", "--timeout-s", "0.1")
    env = {"AWOKE_DEPLOYED_BY": "us", "AWOKE_LOG_LEVEL": "debug", "AWOKE_RPC_SECRET": "canary"}
    shown = awoke_says("doctor", *at, code=1, env=env)
    assert "warning: the environment variable AWOKE_DEPLOYED_BY is no setting of awoke's" in shown
    assert "AWOKE_RPC_SECRET" not in shown
    assert "canary" not in shown
    (line,) = (each for each in shown.splitlines() if "log_level" in each)
    assert "debug" in line
    assert "environment" in line
    assert "did you mean AWOKE_WORKERS?" in awoke_says("doctor", *at, code=2, env={"AWOKE_WROKERS": "8"})


def test_a_memory_limit_that_would_not_hold_is_refused() -> None:
    output = awoke_says("run", "examples.hello:app", code=78, env={"AWOKE_MEMORY_LIMIT": "512M"})
    assert "AWOKE_MEMORY_LIMIT: needs --nodes" in output
    said = "a single process has no supervisor"
    assert said in awoke_says("run", "examples.hello:app", "--memory-hard-limit", "512M", code=2)
    env = {"AWOKE_MEMORY_LIMIT": "lots", "AWOKE_NODES": "2"}
    assert "AWOKE_MEMORY_LIMIT: 'lots' is no size" in awoke_says("run", "examples.hello:app", code=78, env=env)
