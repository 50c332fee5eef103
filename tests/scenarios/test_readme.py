"""The first steps of the README work as they stand there, each with what came before."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import REPOSITORY, Process

README = (REPOSITORY / "README.md").read_text()
FIRST_STEPS = README.partition("## Try it")[2].partition("\n## ")[0]
COMMANDS = [
    line[2:] for block in re.findall(r"```console\n(.*?)```", FIRST_STEPS, re.DOTALL) for line in block.splitlines()
]
(PROGRAM,) = re.findall(r"```python\n(.*?)```", FIRST_STEPS, re.DOTALL)


@pytest.fixture
def shell(tmp_path: Path) -> dict[str, str]:
    """The environment of the reader's shells: `awoke` is a command, and `shop.py` is where they are."""
    (tmp_path / "shop.py").write_text(PROGRAM)
    command = tmp_path / "awoke"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "from awoke.cli import main; main()" "$@"\n')
    command.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    modules = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]).strip(os.pathsep)
    return {"PATH": path, "PYTHONPATH": modules, "PYTHONUNBUFFERED": "1"}


def words(command: str, first: str) -> list[str]:
    """The arguments of a command of the README, which begins as expected."""
    assert command.startswith(first), COMMANDS
    return command.removeprefix("awoke ").split()


def says(command: str, env: dict[str, str]) -> str:
    """Runs a command of the README to its end; its output."""
    done = subprocess.run(
        ["sh", "-c", command], env={**os.environ, **env}, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_first_steps_work(shell: dict[str, str]) -> None:
    install, broker, run, *produce, list_letters = COMMANDS
    assert install == "pip install awoke"
    with Process(*words(broker, "awoke broker"), env=shell) as kafka:
        kafka.wait_for("export ")
        exported = re.findall(r"(AWOKE_\w+)=(\S+)", kafka.output)
        shell |= dict(exported)
        assert len(exported) == 2
        with Process(*words(run, "awoke run"), env=shell) as app:
            app.wait_for("partitions.assigned")
            for command in produce:
                says(command, shell)
            app.wait_for("message.dead_lettered")
            app.wait_for("charging order 1: 9.5")
            app.wait_for("charging order 3: 4.0")
            assert app.output.count("Traceback") == 1
            assert app.output.count("job.failed") == 3
            letters = says(f"{list_letters} --json", shell)
            app.signal(signal.SIGINT)
            assert app.wait() == 0, app.output
        assert "order 2 has a negative total" in letters
        kafka.signal(signal.SIGINT)
        assert kafka.wait() == 0, kafka.output
