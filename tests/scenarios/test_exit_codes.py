"""Exit codes of `awoke run`: the same for a single process and for a swarm. The table stands in docs/swarm.md."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

import awoke
from awoke.text import exit_codes
from tests.support.clusters import RealCluster, unique
from tests.support.processes import Process
from tests.support.swarms import TARGET
from tests.support.waiting import wait_until

WAYS = {"single": (), "swarm": ("--nodes", "1")}


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> tuple[str, ...]:
    return WAYS[request.param]


class Run:
    """An app of one topic that is run in a single process, or in a swarm of one node."""

    def __init__(self, cluster: RealCluster, folder: Path, way: tuple[str, ...]) -> None:
        self.servers, self.topic, self.folder, self.way = cluster.bootstrap_servers, unique("exit"), folder, way
        cluster.create_topic(self.topic, 1)
        self.log = folder / "done"

    def start(self, *options: str, target: str = TARGET, env: dict[str, str] | None = None) -> Process:
        """Start it."""
        socket = ("--socket", str(self.folder / "app.sock"))
        own = {"SWARM_TOPIC": self.topic, "AWOKE_GROUP": self.topic, "SWARM_LOG": str(self.log)}
        env = {
            **own,
            "PYTHONPATH": os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(self.folder)]),
            **(env or {}),
        }
        return Process("run", target, *socket, "-b", self.servers, *self.way, *options, env=env)

    def hang(self) -> None:
        """Send a message at which the handler hangs, and wait until it does."""
        with awoke.Producer(self.servers) as producer:
            producer.produce(self.topic, b"do-hang").wait(30)
        wait_until((self.folder / "done.0.0").exists, "the handler hangs", 60)


@pytest.fixture
def run(real_cluster: RealCluster, tmp_path: Path, way: tuple[str, ...]) -> Run:
    return Run(real_cluster, tmp_path, way)


def test_a_stop_in_order_is_0(run: Run) -> None:
    with run.start() as process:
        process.wait_for("partitions.assigned")
        process.signal(signal.SIGTERM)
        assert process.wait() == exit_codes.EXIT_CLEAN, process.output


@pytest.mark.parametrize("number", ["SIGTERM", "SIGINT"])
def test_a_signal_while_the_app_is_imported_is_0(tmp_path: Path, number: str) -> None:
    app = f"import os, signal, time\nos.kill(os.getpid(), signal.{number})\ntime.sleep(60)\n"
    (tmp_path / "early_signal.py").write_text(app)
    env = {"PYTHONPATH": os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(tmp_path)])}
    with Process("run", "early_signal:app", env=env) as process:
        assert process.wait(20) == exit_codes.EXIT_CLEAN, process.output
    assert "Traceback" not in process.output


@pytest.mark.parametrize("option", [("--log-format", "yaml"), ("--workers", "eight"), ("--memory-limit", "lots")])
def test_a_wrong_command_line_is_2(run: Run, option: tuple[str, str]) -> None:
    with run.start(*option) as process:
        assert process.wait() == exit_codes.EXIT_USAGE, process.output
        assert "Traceback" not in process.output


@pytest.mark.parametrize(
    ("target", "options", "env", "said"),
    [
        ("there_is_no_module:app", (), {}, "there is no module 'there_is_no_module'"),
        ("broken_syntax:app", (), {}, "broken_syntax.py, line 1: SyntaxError"),
        (TARGET, (), {"SWARM_IMPORT": "raise"}, "no good at all"),
        (TARGET, (), {"SWARM_TOPIC": "there-is-no-such-topic"}, "does not exist"),
        (TARGET, (), {"AWOKE_WORKERS": "eight"}, "AWOKE_WORKERS: 'eight' is no whole number"),
        (TARGET, (), {"AWOKE_LOG_LEVEL": "loud"}, "AWOKE_LOG_LEVEL: 'loud' is none of"),
        (TARGET, (), {"AWOKE_WROKERS": "8"}, "did you mean AWOKE_WORKERS?"),
        (TARGET, (), {"AWOKE_METRICS_PORT": "70000"}, "must be a port from 0 to 65535, not 70000"),
        (TARGET, ("--kafka", "linger.msec=1"), {}, "linger.msec"),
    ],
    ids=["module", "syntax", "import", "topic", "type", "level", "misspelt", "port", "property"],
)
def test_a_wrong_configuration_is_78(
    run: Run, target: str, options: tuple[str, ...], env: dict[str, str], said: str
) -> None:
    (run.folder / "broken_syntax.py").write_text("app = (\n")
    with run.start(*options, target=target, env=env) as process:
        assert process.wait() == exit_codes.EXIT_CONFIGURATION, process.output
        assert said in process.output
        # A swarm says in its log where the module failed; one process has --traceback for that.
        assert ("Traceback" in process.output) is ("SWARM_IMPORT" in env and "--nodes" in run.way), process.output


def test_a_job_that_outlasts_the_shutdown_is_3(run: Run) -> None:
    with run.start(env={"AWOKE_SHUTDOWN_TIMEOUT_S": "0.5"}) as process:
        run.hang()
        process.signal(signal.SIGTERM)
        assert process.wait() == exit_codes.EXIT_LATE, process.output


def test_a_third_signal_is_130(run: Run) -> None:
    with run.start(env={"AWOKE_SHUTDOWN_TIMEOUT_S": "60"}) as process:
        run.hang()
        process.signal(signal.SIGTERM)
        process.wait_for("stopping: running jobs finish")
        process.signal(signal.SIGINT)  # Another one than the next: two of a kind may be delivered as one.
        process.signal(signal.SIGTERM)
        assert process.wait() == exit_codes.EXIT_AT_ONCE, process.output


def test_settings_of_a_run_come_from_the_environment(run: Run) -> None:
    """Also the number of nodes, which makes it a swarm."""
    env = {"AWOKE_LOG_FORMAT": "json", "AWOKE_LOG_LEVEL": "info", "AWOKE_METRICS_PORT": "0", "AWOKE_NODES": "2"}
    run.way = ()
    with run.start(env={**env, "AWOKE_DEPLOYED_BY": "us"}) as process:
        process.wait_for("node 2 is up")
        assert '"text":"the environment variable AWOKE_DEPLOYED_BY is no setting of awoke\'s"' in process.output
        assert "health and metrics at http" in process.output
        process.signal(signal.SIGTERM)
        assert process.wait() == 0, process.output
