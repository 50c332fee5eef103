"""The parts of every test broker, made once and kept in `.kafka`: the jars, loaded classes, and a formatted folder.

To load and verify its classes costs a broker most of its processor time, and to format its folder a Java of its own.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent
HOME = REPOSITORY / ".kafka"
LIBRARIES = HOME / "libs"
ARCHIVE = HOME / "classes.jsa"
"""The loaded classes (class data sharing). The JVM ignores an archive that does not fit its version or the jars."""
FORMATTED = HOME / "formatted"
"""The folder of a broker that has never run."""
QUIET = ("-Xlog:disable", "-Xlog:all=error:stderr")
"""The JVM warns of each class that it can't keep."""
OPTIONS = ("-Xms128m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


@contextlib.contextmanager
def _locked() -> Iterator[None]:
    HOME.mkdir(exist_ok=True)
    with (HOME / "lock").open("w") as lock:  # Python's descriptors are not inherited by the broker.
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def resolve_jars() -> Path:
    """Fetches the broker's jars, once for each version of the pom. Returns the folder that holds them."""
    pom = HERE / "kafka" / "pom.xml"
    stamp = HOME / "stamp"
    wanted = hashlib.sha256(pom.read_bytes()).hexdigest()
    with _locked():
        if not stamp.exists() or stamp.read_text() != wanted:
            for folder in (LIBRARIES, FORMATTED):
                shutil.rmtree(folder, ignore_errors=True)
            ARCHIVE.unlink(missing_ok=True)
            output = f"-DoutputDirectory={LIBRARIES}"
            command = ["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", output]
            # Standard output belongs to this script's own protocol.
            subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=sys.stderr)
            stamp.write_text(wanted)
    return LIBRARIES


def java(*arguments: str, options: Sequence[str] = ()) -> list[str]:
    """Returns the command line that runs a class of Kafka's, with the archive of loaded classes where there is one."""
    shared = (f"-XX:SharedArchiveFile={ARCHIVE}", "-Xshare:auto", *QUIET)
    log = f"-Dlog4j2.configurationFile={HERE / 'kafka' / 'log4j2.properties'}"
    every = (*OPTIONS, *(shared if ARCHIVE.exists() else ()), *options)
    return ["java", *every, log, "-cp", f"{LIBRARIES}/*", *arguments]


@contextlib.contextmanager
def new_archive() -> Iterator[Sequence[str]]:
    """Yields the options of a JVM that writes the archive when it ends in order. No option where there is an archive.

    The archive appears whole or not at all.
    """
    if ARCHIVE.exists():
        yield ()
        return
    unfinished = ARCHIVE.with_suffix(f".{os.getpid()}")
    yield (f"-XX:ArchiveClassesAtExit={unfinished}", *QUIET)
    if unfinished.exists():
        unfinished.rename(ARCHIVE)


def format_folder(folder: Path, properties: Path, broker_id: int, cluster_id: str) -> None:
    """Makes a broker's folder: a copy of one that Kafka's tool has formatted, with ids of its own."""
    with _locked():
        if not FORMATTED.exists():
            _run_format(properties, cluster_id)
            folder.rename(FORMATTED)
    shutil.copytree(FORMATTED, folder)
    ids = {"cluster.id": cluster_id, "directory.id": _directory_id(), "node.id": str(broker_id), "version": "1"}
    (folder / "meta.properties").write_text("".join(f"{name}={value}\n" for name, value in ids.items()))


def _run_format(properties: Path, cluster_id: str) -> None:
    command = java("kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(properties))
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{properties} could not be formatted:\n{done.stdout}{done.stderr}")


def _directory_id() -> str:
    """Returns a random id in Kafka's form, which never begins with a dash."""
    while (made := base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()).startswith("-"):
        pass
    return made
