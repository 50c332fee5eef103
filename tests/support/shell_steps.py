"""The steps of a page of the documentation at the shell: its programs, its commands, and a shell that has `awoke`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path


def programs(page: str) -> list[str]:
    """Returns the Python blocks of a page."""
    return re.findall(r"```python\n(.*?)```", page, re.DOTALL)


def commands(page: str) -> list[str]:
    """Returns the commands of a page, in order."""
    blocks = re.findall(r"```console\n(.*?)```", page, re.DOTALL)
    return [line.removeprefix("$ ") for block in blocks for line in block.splitlines()]


def environment(folder: Path) -> dict[str, str]:
    """Returns the environment of a reader's shells in a folder: `awoke` and `python` are commands there."""
    for name, arguments in (("awoke", '-c "from awoke.cli import main; main()"'), ("python", "")):
        command = folder / name
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments} "$@"\n')
        command.chmod(0o755)
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    modules = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")]).strip(os.pathsep)
    runtime = folder / "run"
    runtime.mkdir(mode=0o700)
    return {"PATH": path, "PYTHONPATH": modules, "PYTHONUNBUFFERED": "1", "XDG_RUNTIME_DIR": str(runtime)}


def words(command: str, first: str) -> list[str]:
    """Returns the arguments of a command of `awoke`, which begins as expected."""
    assert command.startswith(first), command
    return command.removeprefix("awoke ").split()


def says(command: str, env: dict[str, str], folder: Path) -> str:
    """Runs a command in a folder to its end; its output."""
    done = subprocess.run(
        ["sh", "-c", command],
        env={**os.environ, **env},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
