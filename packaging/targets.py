"""The wheels of a release, and what a machine needs to build each of them."""

from __future__ import annotations

import platform
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

GLIBC = "2.28"
"""The oldest C library that a wheel runs with: the first one with C11's threads, which librdkafka waits with.

With an older one librdkafka would wait on the system's clock, which can be set. See
`crates/kafka/src/librdkafka/patches/0011_clocks.c`.
"""
MANYLINUX = f"manylinux_{GLIBC.replace('.', '_')}"


@dataclass(frozen=True)
class Architecture:
    """A kind of processor, by the names that Python, Rust and Debian have for it."""

    name: str
    debian: str

    @property
    def rust(self) -> str:
        """Rust's name of the target."""
        return f"{self.name}-unknown-linux-gnu"

    @property
    def is_here(self) -> bool:
        """Tells whether this machine has it."""
        return platform.machine() == self.name

    def tool(self, name: str) -> str:
        """Returns the command of one of the binutils that reads this processor's files."""
        return name if self.is_here else f"{self.name}-linux-gnu-{name}"


ARCHITECTURES = (Architecture("x86_64", "amd64"), Architecture("aarch64", "arm64"))


@dataclass(frozen=True)
class Wheel:
    """A wheel to build: for one processor, and for one Python or for all from one on."""

    architecture: Architecture
    python: str
    """`3.11`, or `3.14t` without the GIL."""
    is_abi3: bool

    @property
    def name(self) -> str:
        """The name that the command line has for it, such as `x86_64-cp311-abi3`."""
        tag = f"cp{self.python.replace('.', '')}"
        return f"{self.architecture.name}-{tag}{'-abi3' if self.is_abi3 else ''}"

    def runs_on(self, version: str) -> bool:
        """Tells whether a Python of this version, such as `3.12` or `3.14t`, can install it."""
        if self.is_abi3 and not version.endswith("t"):
            return minor(version) >= minor(self.python)
        return version == self.python


def minor(version: str) -> int:
    """Returns the second number of a version: 14 of `3.14t`."""
    return int(version.split(".")[1].rstrip("t"))


WHEELS = tuple(
    Wheel(architecture, python, is_abi3)
    for architecture in ARCHITECTURES
    for python, is_abi3 in (("3.11", True), ("3.14t", False))
)
"""All wheels of a release. The stable ABI of a Python without the GIL begins with 3.15 only."""


@dataclass(frozen=True)
class Rust:
    """A Rust compiler with its cargo."""

    rustc: str
    cargo: str

    def has(self, target: str) -> bool:
        """Tells whether the standard library of a target is installed for this compiler."""
        found = subprocess.run([self.rustc, "--print", "target-libdir", "--target", target], capture_output=True)
        return found.returncode == 0 and any(Path(found.stdout.decode().strip()).glob("libstd-*.rlib"))


def rust_for(architecture: Architecture) -> Rust | None:
    """Returns the compiler that can build for a processor: the one on the path, or Debian's."""
    for rust in (Rust("rustc", "cargo"), Rust("/usr/bin/rustc", "/usr/bin/cargo")):
        if shutil.which(rust.rustc) and shutil.which(rust.cargo) and rust.has(architecture.rust):
            return rust
    return None


def lacking(architecture: Architecture) -> list[str]:
    """Returns what this machine lacks to build for a processor, each with the command that installs it on Debian 12."""
    found = []
    if rust_for(architecture) is None:
        foreign = "" if architecture.is_here else f"dpkg --add-architecture {architecture.debian} && "
        packages = f"rustc-web cargo-web libstd-rust-web-dev:{architecture.debian}"
        found.append(
            f"Rust's standard library for {architecture.rust}: "
            f"{foreign}apt-get update && apt-get install --no-install-recommends {packages}"
        )
    if shutil.which(architecture.tool("objcopy")) is None:
        package = "binutils" if architecture.is_here else f"binutils-{architecture.name.replace('_', '-')}-linux-gnu"
        found.append(f"{architecture.tool('objcopy')}: apt-get install {package}")
    found += [f"{name}: apt-get install {name}" for name in ("make", "perl") if shutil.which(name) is None]
    return found
