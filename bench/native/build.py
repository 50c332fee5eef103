"""Compile native.c against the vendored librdkafka that cargo built for awoke."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent
# In the order in which the linker needs them: each before what it uses.
ARCHIVES = (
    "rdkafka-sys-*/out/src/librdkafka.a",
    "openssl-sys-*/out/openssl-build/install/lib*/libssl.a",
    "openssl-sys-*/out/openssl-build/install/lib*/libcrypto.a",
    "zstd-sys-*/out/libzstd.a",
    "libz-sys-*/out/lib/libz.a",
)


class NotBuilt(RuntimeError):
    """Something that cargo or cc makes is missing; the text says what."""


def target_directory() -> Path:
    """Cargo's target directory of this workspace."""
    command = ["cargo", "metadata", "--offline", "--no-deps", "--format-version", "1"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NotBuilt(f"cargo metadata failed: {done.stderr.strip()}")
    return Path(json.loads(done.stdout)["target_directory"])


def newest(folder: Path, pattern: str) -> Path:
    """The file that was built last among those that match; an older build may have stayed."""
    found = sorted(folder.glob(pattern), key=lambda path: path.stat().st_mtime)
    if not found:
        raise NotBuilt(f"nothing matches {pattern} under {folder}; run `make build` first")
    return found[-1]


def build() -> Path:
    """Compile unless what is there is newer than all it is made of; the program.

    Raises:
        NotBuilt: cargo has not built librdkafka yet, or cc failed.
    """
    target = target_directory()
    archives = [newest(target / "release" / "build", pattern) for pattern in ARCHIVES]
    source, program = HERE / "native.c", target / "bench-native" / "native"
    built_at = program.stat().st_mtime if program.exists() else 0.0
    if all(path.stat().st_mtime < built_at for path in (source, *archives)):
        return program
    program.parent.mkdir(parents=True, exist_ok=True)
    include = f"-I{archives[0].parent}"
    libraries = [*map(str, archives), "-lpthread", "-lm", "-ldl", "-lrt"]
    command = [
        "cc",
        "-O2",
        "-std=gnu11",
        "-Wall",
        "-Wextra",
        include,
        str(source),
        "-o",
        str(program),
        *libraries,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NotBuilt(f"cc failed:\n{done.stderr}")
    return program


if __name__ == "__main__":
    print(build())
