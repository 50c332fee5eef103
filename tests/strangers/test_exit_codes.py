"""`sys.exit(code)` in user code ends the process with that code, in order; and a signal that comes early with 0."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.clusters import MockCluster
from tests.support.processes import Process
from tests.support.three_modes import WITHIN_S, ModeRun

ENDS = {"number": ("7", 7), "clean": ("0", 0), "none": ("", 0), "text": ("'no bank'", 1), "large": ("1 << 40", 0)}

HANDLER = """
import sys


@app.on(TOPIC, retry=awoke.Retry(jitter=0.0))
{prefix}def handle(message: awoke.Message[bytes]) -> None:
    note("handled", value=int(message.value))
    if message.value == b"0":
        sys.exit({code})


@app.on_shutdown
def shut_down() -> None:
    note("shut down")
"""
START_UP = """
import sys


@app.on(TOPIC)
def handle(message: awoke.Message[bytes]) -> None: ...


@app.on_startup
def start() -> None:
    note("started")
    sys.exit(7)
"""


@pytest.fixture(scope="module")
def brokers() -> Iterator[MockCluster]:
    cluster = MockCluster()
    yield cluster
    cluster.close()


@pytest.mark.parametrize("prefix", ["", "async "], ids=["def", "async def"])
@pytest.mark.parametrize("kind", ENDS)
def test_a_process_ends_with_the_code_of_its_handler(
    brokers: MockCluster, tmp_path: Path, kind: str, prefix: str
) -> None:
    text, code = ENDS[kind]
    run = ModeRun("process", tmp_path, brokers, HANDLER.format(code=text, prefix=prefix))
    with run.process as process:
        assert process.wait(WITHIN_S) == code, process.output
    assert run.notes("shut down"), "it ends in order"
    assert "the app was ended by SystemExit(" in process.output


def test_a_start_up_function_ends_the_process_with_its_code(brokers: MockCluster, tmp_path: Path) -> None:
    run = ModeRun("process", tmp_path, brokers, START_UP)
    with run.process as process:
        assert process.wait(WITHIN_S) == 7, process.output


@pytest.mark.parametrize("kind", ["handler", "start-up function"])
def test_a_swarm_tells_the_code_of_a_node_and_starts_it_again(brokers: MockCluster, tmp_path: Path, kind: str) -> None:
    source = START_UP if kind == "start-up function" else HANDLER.format(code=7, prefix="")
    run = ModeRun("swarm", tmp_path, brokers, source, options=("--restarts-max", "1"))
    with run.process as process:
        assert process.wait(WITHIN_S) == 4, f"too many restarts:\n{process.output}"
    assert "SystemExit(7)" in process.output
    assert "Traceback" not in process.output


MANAGE = """
import os
from django.core.management import execute_from_command_line

os.environ["DJANGO_SETTINGS_MODULE"] = "site_settings"
execute_from_command_line()
"""
SETTINGS = """
SECRET_KEY = "for tests"
INSTALLED_APPS = ["awoke.django", "slow"]
AWOKE = {"app": "shop:app"}
"""
SLOW = """
import signal

print("importing", flush=True)
while True:
    signal.pause()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_while_django_imports_its_applications_ends_in_order(tmp_path: Path, number: signal.Signals) -> None:
    for name, text in {"manage": MANAGE, "site_settings": SETTINGS, "slow": SLOW}.items():
        (tmp_path / f"{name}.py").write_text(text)
    with Process("awoke", "run", program=("manage.py",), cwd=tmp_path) as process:
        process.wait_for("importing")
        process.signal(number)
        assert process.wait(WITHIN_S) == 0, process.output
    with Process("awoke", "tail", "orders", program=("manage.py",), cwd=tmp_path) as process:
        process.wait_for("importing")
        process.signal(signal.SIGTERM)
        assert process.wait(WITHIN_S) == -signal.SIGTERM, "of a run alone"
