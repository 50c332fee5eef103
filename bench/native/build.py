"""Compile native.c against the vendored librdkafka that cargo built for awoke."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent
LIBRDKAFKA = "rdkafka-sys-*/out/src/librdkafka.a"
# In the order in which the linker needs them: each before what it uses. Where cargo did not build one, as with the
# system's OpenSSL, librdkafka was linked with the system's.
OTHERS = {
    "openssl-sys-*/out/openssl-build/install/lib*/libssl.a": "-lssl",
    "openssl-sys-*/out/openssl-build/install/lib*/libcrypto.a": "-lcrypto",
    "zstd-sys-*/out/libzstd.a": "-lzstd",
    "libz-sys-*/out/lib/libz.a": "-lz",
}


class NotBuilt(RuntimeError):
    """Something that cargo or cc makes is missing; the text says what."""


def target_directory() -> Path:
    """Cargo's target directory of this workspace."""
    command = ["cargo", "metadata", "--offline", "--no-deps", "--format-version", "1"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NotBuilt(f"cargo metadata failed: {done.stderr.strip()}")
    return Path(json.loads(done.stdout)["target_directory"])


def newest(folder: Path, pattern: str) -> Path | None:
    """The file that was built last among those that match; an older build may have stayed."""
    return max(folder.glob(pattern), key=lambda path: path.stat().st_mtime, default=None)


def build() -> Path:
    """Compile unless what is there is newer than all it is made of; the program.

    Raises:
        NotBuilt: cargo has not built librdkafka yet, or cc failed.
    """
    target = target_directory()
    built = target / "release" / "build"
    librdkafka = newest(built, LIBRDKAFKA)
    if librdkafka is None:
        raise NotBuilt(f"nothing matches {LIBRDKAFKA} under {built}; run `make build` first")
    others = {flag: newest(built, pattern) for pattern, flag in OTHERS.items()}
    archives = [librdkafka, *(path for path in others.values() if path is not None)]
    source, program = HERE / "native.c", target / "bench-native" / "native"
    built_at = program.stat().st_mtime if program.exists() else 0.0
    if all(path.stat().st_mtime < built_at for path in (source, *archives)):
        return program
    program.parent.mkdir(parents=True, exist_ok=True)
    include = f"-I{archives[0].parent}"
    linked = [flag if path is None else str(path) for flag, path in others.items()]
    libraries = [str(librdkafka), *linked, "-lpthread", "-lm", "-ldl", "-lrt"]
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
