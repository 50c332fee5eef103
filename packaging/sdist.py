"""Makes the source distribution in dist/, and with `--try` installs it where there is nothing else, and tries it.

usage: python packaging/sdist.py [--try]

It has all crates of the extension, and no others. Its list of locked crates is the repository's, without what is left
out: maturin leaves members of the workspace out, but keeps them in the list, which `--locked` then refuses.
"""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import toolchain
from toolchain import REPOSITORY, WORK
from trial import tried
from wheels import DIST, time_of_sources


def main(arguments: list[str]) -> int:
    """Makes the file, tries it if that is asked for, and returns the exit code. With a trial, blocks for minutes."""
    file = make()
    print(f"{file.name}  {file.stat().st_size / 1e6:.2f} MB")
    if "--try" not in arguments:
        return 0
    trial = tried("sdist", Path(sys.executable), file)
    print(f"{file.name}  {trial.outcome}")
    return 0 if trial.is_passed else 1


def make() -> Path:
    """Makes the file, and returns its place."""
    tools = toolchain.environment_of_tools()
    raw = WORK / "sdist"
    raw.mkdir(parents=True, exist_ok=True)
    for old in raw.glob("*.tar.gz"):
        old.unlink()
    subprocess.run([tools / "bin" / "maturin", "sdist", "--out", raw], cwd=REPOSITORY, check=True)
    (made,) = raw.glob("*.tar.gz")
    contents = read(made)
    lock = f"{made.name.removesuffix('.tar.gz')}/Cargo.lock"
    contents[lock] = locked(contents, lock)
    DIST.mkdir(exist_ok=True)
    write(DIST / made.name, contents, time_of_sources())
    return DIST / made.name


def read(file: Path) -> dict[str, bytes]:
    """Returns the files of a source distribution, by name."""
    with tarfile.open(file) as archive:
        found = {member.name: archive.extractfile(member) for member in archive.getmembers() if member.isfile()}
        return {name: data.read() for name, data in found.items() if data is not None}


def write(file: Path, contents: dict[str, bytes], epoch: int) -> None:
    """Writes a source distribution. Its bytes depend on the contents and on `epoch`, in seconds, alone."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name in sorted(contents):
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.mode = len(contents[name]), epoch, 0o644
            archive.addfile(member, io.BytesIO(contents[name]))
    file.write_bytes(gzip.compress(packed.getvalue(), mtime=epoch))


def locked(contents: dict[str, bytes], lock: str) -> bytes:
    """Returns the list of locked crates without those that are left out. Changes no version."""
    with tempfile.TemporaryDirectory(dir=WORK) as folder:
        for name, data in contents.items():
            place = Path(folder, name)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
        command = [os.environ.get("CARGO", "cargo"), "update", "--workspace", "--quiet"]
        subprocess.run(command, cwd=Path(folder, lock).parent, check=True)
        return Path(folder, lock).read_bytes()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
