"""`packaging/needs.sh` names before a run what a machine lacks; `.ci/packages` installs it, and fails no run."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]
NEEDS, PACKAGES = REPOSITORY / "packaging" / "needs.sh", REPOSITORY / ".ci" / "packages"
ALWAYS = (
    "bash",
    "chmod",
    "cut",
    "dirname",
    "env",
    "grep",
    "head",
    "mktemp",
    "rm",
    "sed",
    "sh",
    "sort",
    "tail",
    "timeout",
)
WHOLE = {
    **dict.fromkeys(("cargo", "cc", "chromium", "make", "mvn", "npm", "pkg-config", "promtool", "python3", "unzip")),
    "java": '[ "$1" = --list-modules ] && echo jdk.compiler@25 || echo \'openjdk version "25.0.1"\'',
    "python3": 'case "$2" in *platform*) echo 3.14.0 ;; esac',
    "rustc": "echo rustc 1.99.0",
}
"""The programs of a machine that lacks nothing, with the code of some of them."""


class Machine:
    """A machine that has only some programs. Its apt knows all packages but one, and writes down its arguments."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.log, self.policy = folder / "apt.log", folder / "policy-rc.d"
        (folder / "bin").mkdir()
        for name in ALWAYS:
            found = shutil.which(name)
            assert found is not None
            (folder / "bin" / name).symlink_to(found)
        for name, code in WHOLE.items():
            self.add(name, code or "exit 0")
        self.add("apt-get", f'echo "$@" >> {self.log}; [ -e {self.policy} ] && echo policy >> {self.log}; exit 0')
        self.add("apt-cache", '[ "$2" != unzip ]')

    def add(self, name: str, code: str = "exit 0") -> None:
        file = self._folder / "bin" / name
        file.write_text(f"#!/bin/sh\n{code}\n")
        file.chmod(0o755)

    def remove(self, *names: str) -> None:
        for name in names:
            (self._folder / "bin" / name).unlink()

    def needs(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs `packaging/needs.sh`."""
        env = {"PATH": str(self._folder / "bin")}
        return subprocess.run(["sh", NEEDS, *arguments], env=env, capture_output=True, text=True, timeout=60)

    def install(self, *, user: int) -> str:
        """Runs `.ci/packages`, and returns its output."""
        self.add("id", f"echo {user}")
        env = {"PATH": str(self._folder / "bin"), "POLICY": str(self.policy)}
        done = subprocess.run(["bash", PACKAGES], env=env, capture_output=True, text=True, check=True, timeout=60)
        return done.stdout + done.stderr


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_whole_machine_lacks_nothing(machine: Machine) -> None:
    done = machine.needs("python", "rust", "c", "java", "maven")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert machine.needs("--skipped").stdout == ""
    assert machine.needs("--packages").stdout == "\n"


@pytest.mark.parametrize(
    ("program", "tool", "package"),
    [
        ("python3", "python", "python3-venv"),
        ("rustc", "rust", "rustc-web"),
        ("cc", "c", "build-essential"),
        ("java", "java", "default-jdk-headless"),
        ("mvn", "maven", "maven"),
    ],
)
def test_a_run_ends_with_the_command_that_installs_what_it_needs(
    machine: Machine, program: str, tool: str, package: str
) -> None:
    machine.remove(program)
    done = machine.needs(tool)
    assert done.returncode == 1
    assert package in done.stderr.splitlines()[-1].removeprefix("Install it:  apt-get install").split()
    assert package in machine.needs("--packages").stdout.split()


def test_a_version_that_is_too_old_is_told(machine: Machine) -> None:
    machine.add("rustc", "echo rustc 1.63.0")
    assert "(rustc is 1.63.0)" in machine.needs("rust").stderr


@pytest.mark.parametrize(
    ("program", "tests"),
    [
        ("promtool", "promtool: the tests of the alert rules"),
        ("chromium", "Chromium: the tests of the console in a browser"),
        ("npm", "npm: the tests of "),
        ("unzip", "unzip: "),
    ],
)
def test_tests_that_will_be_skipped_are_told_with_the_reason(machine: Machine, program: str, tests: str) -> None:
    machine.remove(program)
    done = machine.needs("--skipped")
    assert done.returncode == 0
    assert done.stdout.splitlines()[1].startswith(f"  - {tests}")
    assert ".ci/packages" in done.stdout.splitlines()[2]


def test_an_older_java_without_a_compiler_skips_tests(machine: Machine) -> None:
    machine.add("java", "echo 'openjdk version \"17.0.15\"'")
    text = machine.needs("--skipped").stdout
    assert "a Java with its compiler" in text
    packages = machine.needs("--packages").stdout.split()
    assert "default-jdk-headless" in packages


def test_the_headers_of_openssl_save_its_build(machine: Machine) -> None:
    machine.add("pkg-config", "exit 1")
    machine.add("perl")
    done = machine.needs("rust", "c")
    assert done.returncode == 0
    assert "five minutes more" in done.stdout
    assert machine.needs("--packages").stdout.split() == ["libssl-dev", "pkg-config"]


def test_what_is_missing_is_installed_and_no_server_starts(machine: Machine) -> None:
    machine.remove("promtool", "mvn", "unzip")
    said = machine.install(user=0)
    update, _, install, policy = machine.log.read_text().splitlines()
    assert update == "-qq update"
    assert install == "-qq install -y --no-install-recommends maven prometheus"
    assert policy == "policy"
    assert "apt has no unzip" in said
    assert not machine.policy.exists()


def test_nothing_is_asked_where_nothing_is_missing(machine: Machine) -> None:
    assert machine.install(user=0) == ""
    assert not machine.log.exists()


def test_a_user_without_the_right_gets_the_command(machine: Machine) -> None:
    machine.remove("promtool", "chromium")
    assert "apt-get install prometheus chromium fonts-dejavu-core" in machine.install(user=1000)
    assert not machine.log.exists()


def test_an_installation_that_fails_is_told_and_fails_no_run(machine: Machine) -> None:
    machine.remove("promtool")
    machine.add("apt-get", "echo no network >&2; exit 100")
    assert "some tests are skipped: no network" in machine.install(user=0)
    assert not machine.policy.exists()
