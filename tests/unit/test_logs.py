"""The log: JSON lines, tracebacks, broken connections, and an app that is not mute."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from typing import Any

import pytest

from awoke import logs
from awoke.broker_lines import QUIET_S, REMEMBERED_MAX, BrokerLines
from awoke.events import ClientError, ClientLog, Events, JobFailed, MessageDeadLettered, OffsetsCommitted
from awoke.logs import JsonFormatter


def line(record: logging.LogRecord, node: int | None = None) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(JsonFormatter(node).format(record))
    return found


def record_of(text: str = "text", **more: Any) -> logging.LogRecord:
    return logging.makeLogRecord({"name": "shop", "levelname": "INFO", "msg": text, "process": 42, **more})


def test_a_json_line_has_the_extra_of_the_user() -> None:
    found = line(record_of(customer=7, tags={"a"}, price=1.5))
    assert (found["customer"], found["tags"], found["price"]) == (7, ["a"], 1.5)
    assert (found["logger"], found["level"], found["text"], found["process"]) == ("shop", "info", "text", 42)
    assert "node" not in found
    assert line(record_of(), node=3)["node"] == 3


def test_extra_replaces_nothing_of_the_line() -> None:
    found = line(record_of(level="high", logger="mine"))
    assert (found["level"], found["logger"]) == ("info", "shop")
    assert (found["extra_level"], found["extra_logger"]) == ("high", "mine")


class Hostile:
    def __str__(self) -> str:
        raise ValueError("no text")

    def __repr__(self) -> str:
        return "hostile"


@pytest.mark.parametrize("value", [Hostile(), "\ud800", {1: {2: 3}}, object()])
def test_a_json_line_is_written_whatever_extra_holds(value: object) -> None:
    assert line(record_of(value=value))["logger"].strip("'") == "shop"


def test_a_json_line_has_error_and_traceback() -> None:
    try:
        raise ZeroDivisionError("no division")
    except ZeroDivisionError:
        found = line(record_of(exc_info=sys.exc_info()))
    assert found["error"] == "ZeroDivisionError: no division"
    assert "raise ZeroDivisionError" in found["traceback"]


def job_failed(attempt: int) -> JobFailed:
    return JobFailed(
        handler="handle",
        topic="orders",
        partition=3,
        offset=7,
        attempt=attempt,
        retry_in_s=0.1,
        error=ValueError("no good"),
    )


def test_a_json_line_has_the_fields_of_an_event(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="awoke.events"):
        Events().emit(job_failed(2))
    found = line(caplog.records[0])
    assert (found["text"], found["topic"], found["partition"], found["offset"]) == ("job.failed", "orders", 3, 7)
    assert (found["attempt"], found["error"]) == (2, "ValueError: no good")


def test_a_failing_message_has_its_traceback_once(caplog: pytest.LogCaptureFixture) -> None:
    events = Events()
    with caplog.at_level(logging.INFO, logger="awoke.events"):
        for attempt in (1, 2, 3):
            events.emit(job_failed(attempt))
        error = ValueError("no good")
        events.emit(MessageDeadLettered(handler="handle", topic="orders", partition=3, offset=7, error=error))
    assert [record.exc_info is not None for record in caplog.records] == [True, False, False, False]
    assert all("ValueError('no good')" in record.getMessage() for record in caplog.records[1:])


AWAY = [
    "GroupCoordinator: 127.0.0.1:1234: Connect to ipv4#127.0.0.1:1234 failed: Connection refused (after 0ms)",
    "127.0.0.1:1234/2: Connect to ipv4#127.0.0.1:1234 failed: Connection refused (after 3ms in state CONNECT)",
    "127.0.0.1:1234/bootstrap: Connect to ipv4#127.0.0.1:1234 failed: refused (1 identical error(s) suppressed)",
    "ssl://127.0.0.1:1234/bootstrap: Connect to ipv4#127.0.0.1:1234 failed: Connection refused",
]


def error_of(text: str, code_name: str = "_TRANSPORT", client: str = "shop") -> ClientError:
    return ClientError(client=client, code=-195, code_name=code_name, text=text, is_fatal=False)


def emit_error(events: Events, text: str, code_name: str = "_TRANSPORT", client: str = "shop") -> None:
    events.emit(error_of(text, code_name, client))


def test_a_broker_that_is_away_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    events = Events()
    heard: list[object] = []
    events.subscribe(ClientError, heard.append)
    with caplog.at_level(logging.INFO, logger="awoke.events"):
        for text in AWAY * 3:
            emit_error(events, text)
            emit_error(events, text, client="awoke")
        events.emit(ClientLog(client="shop", level=3, facility="FAIL", text="[thrd:x]: " + AWAY[0]))
        for count in range(5):
            emit_error(events, f"{count}/{count} brokers are down", "_ALL_BROKERS_DOWN")
        emit_error(events, "[::1]:9092/1: Connect failed: Connection refused")
        emit_error(events, "127.0.0.1:4321/1: Connect failed: Connection refused")
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 4
    assert [part in text for part, text in zip(("1234", "_ALL_BROKERS_DOWN", "::1", "4321"), said, strict=True)] == [
        True
    ] * 4
    assert len(heard) == 2 * 3 * len(AWAY) + 5 + 2, "subscribers hear all of it"


def test_brokers_that_are_back_are_one_line_and_may_go_again(caplog: pytest.LogCaptureFixture) -> None:
    events = Events()
    with caplog.at_level(logging.INFO, logger="awoke"):
        for _ in range(2):
            emit_error(events, "1/1 brokers are down", "_ALL_BROKERS_DOWN")
            events.emit(OffsetsCommitted(client="shop", offsets=[]))
            events.emit(OffsetsCommitted(client="shop", offsets=[]))
    assert [record.getMessage().split()[0] for record in caplog.records] == ["client.error", "brokers"] * 2


def test_an_error_that_comes_after_a_silence_is_another_change(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = [0.0]
    monkeypatch.setattr("awoke.broker_lines.time.monotonic", lambda: now_s[0])
    lines, error = BrokerLines(), error_of(AWAY[0])
    assert lines.is_change(error)
    for _ in range(4):
        now_s[0] += QUIET_S
        assert not lines.is_change(error)
    now_s[0] += QUIET_S + 1
    assert lines.is_change(error)


def test_what_is_known_of_errors_is_bounded() -> None:
    lines = BrokerLines()
    for number in range(2 * REMEMBERED_MAX):
        lines.is_change(error_of(f"10.0.0.1:{number}/1: gone"))
    assert len(lines._said_at_s) == REMEMBERED_MAX


def test_a_fatal_error_is_always_said(caplog: pytest.LogCaptureFixture) -> None:
    events = Events()
    with caplog.at_level(logging.INFO, logger="awoke.events"):
        for _ in range(2):
            events.emit(ClientError(client="shop", code=82, code_name="FENCED", text="fenced", is_fatal=True))
    assert [record.levelname for record in caplog.records] == ["ERROR", "ERROR"]


MUTE = """
import logging, sys
import awoke
{setup}
app = awoke.App("shop")
@app.on("orders")
def charge(message): ...
app.on_startup(app.stop)
sys.exit(app.run(embedded=True))
"""


@pytest.mark.parametrize(
    ("setup", "is_said"),
    [
        ("", True),
        ("logging.basicConfig(level=logging.ERROR)", False),
        ("logging.getLogger().addHandler(logging.NullHandler())", False),
        ("logging.getLogger('awoke').addHandler(logging.StreamHandler(sys.stdout))", False),
    ],
)
def test_an_app_without_logging_of_its_own_is_not_mute(setup: str, is_said: bool) -> None:
    command = [sys.executable, "-W", "error", "-c", MUTE.format(setup=setup)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert ("app.started" in done.stderr) == is_said
    assert "%6|" not in done.stderr


def test_a_level_that_was_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    monkeypatch.setattr(root, "level", logging.DEBUG)
    logs.set_up_if_mute()
    assert (root.level, len(root.handlers)) == (logging.DEBUG, 1)
