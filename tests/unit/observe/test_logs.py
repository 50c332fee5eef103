"""The log: JSON lines with tracebacks, and an app that is not mute."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
import structlog

from awoke.observe import logs
from awoke.observe.events import Events, JobFailed
from awoke.observe.ledger import Ledger
from awoke.observe.logs import ConsoleFormatter, JsonFormatter
from awoke.observe.process import ThisProcess


def line(record: logging.LogRecord) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(JsonFormatter().format(record))
    return found


def record_of(text: str = "text", **more: Any) -> logging.LogRecord:
    return logging.makeLogRecord({"name": "shop", "levelname": "INFO", "msg": text, "process": 42, **more})


def test_a_json_line_has_the_extra_of_the_user() -> None:
    found = line(record_of(customer=7, tags={"a"}, price=1.5))
    assert (found["customer"], found["tags"], found["price"]) == (7, ["a"], 1.5)
    assert (found["logger"], found["level"], found["text"], found["process"]) == ("shop", "info", "text", 42)
    assert "node" not in found


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(ThisProcess, "node", 3)
    return 3


def test_a_json_line_has_the_node(node: int) -> None:
    assert line(record_of())["node"] == node


def test_attributes_of_the_context_without_a_value_are_not_written(node: int) -> None:
    record = record_of(customer=None)
    logs.WithContext().filter(record)
    found = line(record)
    assert (found["node"], found["customer"]) == (node, None)
    assert not {"topic", "offset", "trace_id", "extra_node"} & set(found)


def test_a_line_of_structlog_has_the_context_under_what_it_says_itself(node: int) -> None:
    with structlog.testing.capture_logs(processors=[logs.add_context]) as lines:
        structlog.get_logger("shop").info("charging", customer=7)
        structlog.get_logger("shop").info("charging", node="mine")
    assert [(each.get("customer"), each["node"]) for each in lines] == [(7, node), (None, "mine")]


def test_a_line_for_people_ends_with_the_context() -> None:
    work = SimpleNamespace(topic="orders", partition=4)
    form = ConsoleFormatter("%(levelname)s %(message)s")
    with Ledger("shop").acting_for("Handler[orders-4]", 1, work):
        text = form.format(record_of(exc_info=(ValueError, ValueError("no\ngood"), None)))
    assert text.splitlines() == ["INFO text topic=orders partition=4", "    ValueError: no", "    good"]
    assert form.format(record_of()) == "INFO text"


def test_extra_replaces_nothing_of_the_line() -> None:
    found = line(record_of(level="high", logger="mine"))
    assert (found["level"], found["logger"]) == ("info", "shop")
    assert (found["extra_level"], found["extra_logger"]) == ("high", "mine")


def test_a_user_may_have_an_event_of_their_own() -> None:
    """A name that structlog, ECS and many others use."""
    assert line(record_of(event="signup"))["event"] == "signup"
    assert line(record_of(event=Hostile()))["logger"].strip("'") == "shop"
    assert line(record_of(awoke="mine"))["text"] == "text"


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


CLIENTS = """
import contextlib, awoke
closed = "127.0.0.1:1"
with contextlib.suppress(awoke.AwokeError), awoke.Producer(closed, kafka={"message.timeout.ms": 100}) as producer:
    producer.produce("orders", b"1").wait(10)
with contextlib.suppress(awoke.AwokeError), awoke.Admin(closed) as admin:
    admin.brokers(0.1)
"""


def test_clients_without_brokers_write_nothing_to_the_terminal() -> None:
    done = subprocess.run([sys.executable, "-c", CLIENTS], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_level_that_was_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    monkeypatch.setattr(root, "level", logging.DEBUG)
    logs.set_up_if_mute()
    assert (root.level, len(root.handlers)) == (logging.DEBUG, 1)


def test_a_logging_configuration_does_not_mute_failures(caplog: pytest.LogCaptureFixture) -> None:
    loggers = {name: logging.getLogger(name) for name in ("awoke", "awoke.events", "awoke.swarm.node", "awokened")}
    before = {name: logger.disabled for name, logger in loggers.items()}
    caplog.set_level(logging.INFO)
    try:
        for logger in loggers.values():
            logger.disabled = True  # As `logging.config.dictConfig` does, unless it is told not to.
        Events().emit(job_failed(1))
        assert [name for name, logger in loggers.items() if logger.disabled] == ["awokened"]
    finally:
        for name, logger in loggers.items():
            logger.disabled = before[name]
    assert "set disable_existing_loggers to False" in caplog.text
    assert "ValueError: no good" in caplog.text
