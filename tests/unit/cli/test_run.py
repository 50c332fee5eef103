"""`awoke run`: which settings reach the app or the swarm, and the exit code of each end."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import awoke
from awoke.operate.commands.socket_paths import SocketNote, socket_path
from awoke.runtime.process.ending import ProcessEnd
from awoke.swarm.options import SwarmOptions
from awoke.text.exit_codes import EXIT_CONFIGURATION, EXIT_FAILED, EXIT_LATE
from tests.unit.cli.fakes import run


class Ended(BaseException):
    """The process has ended at once."""


class Started:
    """Notes the app or the supervisor that a run starts. `result` is its exit code, or its error."""

    def __init__(self) -> None:
        self.result: int | BaseException = 0
        self.used: list[dict[str, Any]] = []
        self.ran: list[dict[str, Any]] = []
        self.sockets: list[str | None] = []
        self.swarms: list[SwarmOptions] = []
        self.logs: list[tuple[str, str]] = []
        self.threads: list[str] = []
        self.ended_at_once: list[int] = []
        self.limited: list[ProcessEnd] = []
        self.settings = SimpleNamespace(shutdown_timeout_s=9.0)

    def end(self) -> int:
        if isinstance(self.result, BaseException):
            raise self.result
        return self.result

    def use(self, **settings: Any) -> None:
        self.used.append(settings)

    def run(self, **settings: Any) -> int:
        self.ran.append(settings)
        return self.end()

    @contextlib.contextmanager
    def open_socket(self, app: Any, path: str | None, target: str) -> Iterator[None]:
        self.sockets.append(path)
        yield

    def supervisor(self, options: SwarmOptions) -> Any:
        self.swarms.append(options)
        return SimpleNamespace(run=self.end)

    def exit(self, code: int) -> None:
        self.ended_at_once.append(code)
        raise Ended


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Started:
    """Starts nothing, in a directory without files of settings."""
    started = Started()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AWOKE_SOCKET", raising=False)
    monkeypatch.setattr("awoke.app.application.find_app", lambda target: started)
    monkeypatch.setattr("awoke.operate.commands.process_socket.open_process_socket", started.open_socket)
    monkeypatch.setattr("awoke.swarm.supervisor.Supervisor", started.supervisor)
    monkeypatch.setattr("awoke.cli.run.note_at", lambda path, target: SocketNote(target, str(tmp_path), "1a2b3c4d"))
    monkeypatch.setattr("awoke.logs.set_up", lambda level, form: started.logs.append((level, form)))
    monkeypatch.setattr("awoke.runtime.process.ending.end_process", lambda end: started.exit(end.code))
    monkeypatch.setattr("awoke.runtime.process.ending.limit_end", lambda end: started.limited.append(end))
    threads = SimpleNamespace(enumerate=lambda: [SimpleNamespace(name=name) for name in started.threads])
    monkeypatch.setattr("awoke.cli.run.threading", threads)
    return started


def test_an_app_runs_alone_with_the_options_of_the_command(started: Started) -> None:
    options = ("--workers", "3", "--metrics-port", "0", "-b", "a:1", "--kafka", "acks=1", "--log-level", "debug")
    assert run("run", "shop:app", *options).exit_code == 0
    assert started.used == [{"metrics_port": 0}]
    kafka = {"acks": "1"}
    assert started.ran == [{"bootstrap_servers": "a:1", "workers": 3, "embedded": False, "kafka": kafka}]
    assert (started.sockets, started.logs) == ([None], [("debug", "console")])
    assert started.swarms == []


def test_options_win_over_the_environment_and_that_over_the_file(
    started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("awoke.toml").write_text("log_level = 'error'\nlog_format = 'json'\nsocket = '/run/file'\n")
    monkeypatch.setenv("AWOKE_LOG_LEVEL", "warning")
    run("run", "shop:app", "--socket", "/run/option")
    assert (started.sockets, started.logs) == (["/run/option"], [("warning", "json")])


def test_an_app_may_run_on_brokers_inside_its_process(started: Started) -> None:
    run("run", "shop:app", "--embedded")
    assert started.ran[0]["embedded"] is True


def test_a_swarm_has_the_options_of_the_command(started: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWOKE_METRICS_ALLOWED_HOSTS", "shop.internal")
    options = ("--memory-limit", "512M", "--memory-hard-limit", "1G", "--workers", "3", "--metrics-port", "9100")
    assert run("run", "shop:app", "--nodes", "2", *options, "-b", "a:1", "--kafka", "acks=1").exit_code == 0
    assert started.swarms == [
        SwarmOptions(
            target="shop:app",
            nodes=2,
            workers=3,
            bootstrap_servers="a:1",
            kafka={"acks": "1"},
            memory_soft_bytes=512 << 20,
            memory_hard_bytes=1 << 30,
            path=sys.path,
            arguments=sys.argv,
            socket=socket_path("shop:app"),
            name="1a2b3c4d",
            metrics_port=9100,
            metrics_allowed_hosts="shop.internal",
        )
    ]
    assert started.ran == []


def test_every_setting_of_a_swarm_can_be_an_option(started: Started) -> None:
    values = {"hang-after-s": "1", "silent-after-s": "2", "drain-timeout-s": "3", "restarts-max": "4"}
    words = [word for name, value in values.items() for word in (f"--{name}", value)]
    run("run", "shop:app", "--nodes", "1", *words, "--restart-backoff-s", "5", "--no-static-members", "--socket", "/s")
    (options,) = started.swarms
    assert (options.hang_after_s, options.silent_after_s, options.drain_timeout_s) == (1.0, 2.0, 3.0)
    assert (options.restarts_max, options.restart_backoff_s) == (4, 5.0)
    assert (options.static_members, options.socket) == (False, "/s")


def test_a_swarm_is_shown_by_a_command_of_its_own(started: Started) -> None:
    done = run("run", "shop:app", "--nodes", "2", "--console")
    assert (done.exit_code, "awoke console APP" in done.output) == (2, True)
    assert started.swarms == []


def test_a_swarm_sees_no_brokers_inside_a_process(started: Started) -> None:
    done = run("run", "shop:app", "--nodes", "2", "--embedded")
    assert (done.exit_code, started.swarms) == (2, [])
    assert "--embedded" in done.output


@pytest.mark.parametrize("option", ["--memory-limit", "--memory-hard-limit"])
@pytest.mark.parametrize(("size", "said"), [("1G", "needs --nodes"), ("lots", "'lots' is no size")])
def test_a_memory_limit_needs_a_size_and_a_supervisor(option: str, size: str, said: str, started: Started) -> None:
    done = run("run", "shop:app", option, size)
    assert (done.exit_code, started.ran) == (2, [])
    assert said in " ".join(done.output.split())


def test_a_wrong_option_is_named_and_a_wrong_variable_is_wrong_configuration(
    started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = run("run", "shop:app", "--log-level", "loud")
    assert done.exit_code == 2
    assert "--log-level" in done.output
    monkeypatch.setenv("AWOKE_LOG_LEVEL", "loud")
    done = run("run", "shop:app")
    assert done.exit_code == EXIT_CONFIGURATION
    assert "AWOKE_LOG_LEVEL: 'loud' is none of" in done.output
    assert started.ran == []


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (awoke.UnknownTopic("no topic", 3, "UNKNOWN_TOPIC_OR_PART"), EXIT_CONFIGURATION),
        (awoke.BrokerUnreachable("no broker", -195, "_TRANSPORT"), EXIT_FAILED),
    ],
)
@pytest.mark.parametrize("nodes", [[], ["--nodes", "2"]], ids=["alone", "swarm"])
def test_a_start_that_fails_is_one_line_and_an_exit_code(
    error: awoke.AwokeError, code: int, nodes: list[str], started: Started
) -> None:
    started.result = error
    done = run("run", "shop:app", *nodes)
    assert (done.exit_code, done.output) == (
        code,
        f"error: {error}\nwhat to do: awoke docs errors/{type(error).__name__}\n",
    )


@pytest.mark.parametrize("nodes", [[], ["--nodes", "2"]], ids=["alone", "swarm"])
def test_the_exit_code_is_that_of_the_run(nodes: list[str], started: Started) -> None:
    started.result = EXIT_FAILED
    assert run("run", "shop:app", *nodes).exit_code == EXIT_FAILED


def test_a_module_that_raises_is_named(started: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(target: str) -> None:
        raise ZeroDivisionError("mine")

    monkeypatch.setattr("awoke.app.application.find_app", fail)
    done = run("run", "shop:app")
    assert done.exit_code == EXIT_CONFIGURATION
    assert "module 'shop' can't be imported: " in done.output
    assert "ZeroDivisionError: mine" in done.output


@pytest.mark.parametrize(("code", "threads"), [(EXIT_LATE, []), (0, ["MainThread", "awoke-worker-1"])])
def test_a_handler_that_does_not_end_does_not_delay_the_end_of_the_process(
    code: int, threads: list[str], started: Started
) -> None:
    started.result, started.threads = code, threads
    with pytest.raises(Ended):
        run("run", "shop:app")
    assert started.ended_at_once == [code]


def test_threads_of_others_do_not_end_the_process_at_once(started: Started) -> None:
    started.threads = ["MainThread", "shop-cache"]
    run("run", "shop:app")
    assert started.ended_at_once == []
    assert started.limited == [ProcessEnd(0, 9.0)], "they are waited for, but not for ever"


def test_a_variable_that_is_no_setting_is_a_warning(
    started: Started, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("AWOKE_DEPLOYED_BY", "us")
    assert run("run", "shop:app").exit_code == 0
    assert "the environment variable AWOKE_DEPLOYED_BY is no setting of awoke's" in caplog.text
