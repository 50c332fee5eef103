"""`.ci/packages`: installs what is missing, starts no server, and fails no run."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[3] / ".ci" / "packages"
ALWAYS = ("bash", "env", "mktemp", "rm", "chmod", "tail", "timeout")


class Machine:
    """A machine that has only some programs. Its `apt-get` writes down its arguments."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.log, self.policy = folder / "apt.log", folder / "policy-rc.d"
        (folder / "bin").mkdir()
        for name in ALWAYS:
            found = shutil.which(name)
            assert found is not None
            (folder / "bin" / name).symlink_to(found)

    def add(self, name: str, code: str = "exit 0") -> None:
        file = self._folder / "bin" / name
        file.write_text(f"#!/bin/sh\n{code}\n")
        file.chmod(0o755)

    def run(self, *, user: int) -> str:
        self.add("id", f"echo {user}")
        env = {"PATH": str(self._folder / "bin"), "POLICY": str(self.policy), "POSTGRES": str(self._folder)}
        done = subprocess.run(["bash", SCRIPT], env=env, capture_output=True, text=True, check=True, timeout=60)
        return done.stdout + done.stderr


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    found = Machine(tmp_path)
    found.add("apt-get", f'echo "$@" >> {found.log}; [ -e {found.policy} ] && echo policy >> {found.log}; exit 0')
    return found


def test_what_is_missing_is_installed_and_no_server_starts(machine: Machine) -> None:
    machine.add("chromium")
    machine.run(user=0)
    update, _, install, policy = machine.log.read_text().splitlines()
    assert update == "-qq update"
    assert install == "-qq install -y --no-install-recommends prometheus postgresql"
    assert policy == "policy"
    assert not machine.policy.exists()


def test_nothing_is_asked_where_nothing_is_missing(machine: Machine) -> None:
    for name in ("promtool", "chromium", "initdb"):
        machine.add(name)
    assert machine.run(user=0) == ""
    assert not machine.log.exists()


def test_a_user_without_the_right_gets_the_command(machine: Machine) -> None:
    assert "apt-get install prometheus chromium fonts-dejavu-core postgresql" in machine.run(user=1000)
    assert not machine.log.exists()


def test_an_installation_that_fails_is_told_and_fails_no_run(machine: Machine) -> None:
    machine.add("apt-get", "echo no network >&2; exit 100")
    assert "some tests are skipped: no network" in machine.run(user=0)
    assert not machine.policy.exists()
