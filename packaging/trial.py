"""Tries a wheel: installs it where there is nothing else, imports it, and sends a message through embedded brokers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from targets import Architecture, Wheel
from test_pythons import SUPPORTED, find, how_to_get
from toolchain import WORK

MESSAGE = Path(__file__).with_name("trial_message.py")
ROOT = WORK / "aarch64" / "root"
EMULATOR = "qemu-aarch64-static"
EMULATED = (
    *("libc6", "libexpat1", "libffi8", "libgcc-s1", "libssl3", "libuuid1", "zlib1g"),
    *("libpython3.11-minimal", "libpython3.11-stdlib", "python3.11-minimal"),
)
"""Debian's packages that a Python for aarch64 consists of."""
TIMEOUT_S = 1_800
"""The longest that one command of a trial may take. To install a source distribution builds OpenSSL and librdkafka."""


@dataclass(frozen=True)
class Trial:
    """The result of a trial: the version of Python, and what happened."""

    version: str
    outcome: str
    is_passed: bool


def trials(wheel: Wheel, file: Path) -> list[Trial]:
    """Tries a wheel with each Python of this machine that can install it. Blocks for seconds."""
    if not wheel.architecture.is_here:
        return [emulated(wheel, file)]
    found = {version: find(version) for version in SUPPORTED if wheel.runs_on(version)}
    return [
        tried(version, python, file)
        if python is not None
        else Trial(version, f"not tried, install it with {how_to_get(version)}", True)
        for version, python in found.items()
    ]


def tried(version: str, python: Path, wheel: Path) -> Trial:
    """Installs a wheel into a new virtual environment, and sends the message there."""
    folder = WORK / "trials" / f"{wheel.stem}-{version}"
    shutil.rmtree(folder, ignore_errors=True)
    commands = (
        [python, "-m", "venv", folder],
        [folder / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", wheel],
        [folder / "bin" / "awoke", "--version"],
        [folder / "bin" / "python", MESSAGE],
    )
    return outcome(version, [[str(each) for each in command] for command in commands])


def outcome(version: str, commands: list[list[str]], environment: dict[str, str] | None = None) -> Trial:
    """Runs commands until one fails, away from the sources, and returns what happened."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | (environment or {})
    for command in commands:
        ended = subprocess.run(
            command, cwd=WORK, env=clean, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=TIMEOUT_S
        )
        if ended.returncode != 0:
            print(ended.stdout, file=sys.stderr)
            return Trial(version, f"FAILED: {' '.join(command)}", False)
    return Trial(version, "import, message", True)


def emulated(wheel: Wheel, file: Path) -> Trial:
    """Tries a wheel for another processor with Debian's Python 3.11 under an emulator."""
    if not wheel.runs_on("3.11"):
        return Trial(wheel.python, "not tried: Debian 12 has no such Python for aarch64", True)
    lacking = emulator_lacks(wheel.architecture)
    if lacking:
        return Trial("3.11", f"not tried: {lacking}", True)
    unpack_root(wheel.architecture)
    packages = WORK / "trials" / f"{file.stem}-emulated"
    shutil.rmtree(packages, ignore_errors=True)
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(packages), "--only-binary", ":all:"]
    for platform in ("manylinux_2_17", "manylinux_2_28"):
        install += ["--platform", f"{platform}_{wheel.architecture.name}"]
    install += ["--python-version", "3.11", str(file)]
    run = [EMULATOR, "-L", str(ROOT), f"{ROOT}/usr/bin/python3.11", str(MESSAGE)]
    return outcome("3.11 emulated", [install, run], {"PYTHONPATH": str(packages)})


def emulator_lacks(architecture: Architecture) -> str:
    """Returns what is missing to emulate a processor, with the command that installs it, or nothing."""
    if shutil.which(EMULATOR) is None:
        return f"{EMULATOR} is missing: apt-get install qemu-user-static"
    known = subprocess.run(["dpkg", "--print-foreign-architectures"], capture_output=True, text=True).stdout.split()
    if architecture.debian not in known:
        return f"apt does not know it: dpkg --add-architecture {architecture.debian} && apt-get update"
    return ""


def unpack_root(architecture: Architecture) -> None:
    """Unpacks Debian's Python for another processor into a folder of its own. Installs nothing."""
    if (ROOT / "usr" / "bin" / "python3.11").exists():
        return
    ROOT.mkdir(parents=True, exist_ok=True)
    names = [f"{name}:{architecture.debian}" for name in EMULATED]
    subprocess.run(["apt-get", "download", *names], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    for package in sorted(ROOT.glob("*.deb")):
        subprocess.run(["dpkg", "-x", package, ROOT], check=True)
