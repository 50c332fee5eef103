"""Apicurio Registry for tests: fetched from Maven Central, started on a free loopback port, stopped by process id.

It speaks Confluent's REST API. `python -m tests.support.apicurio fetch` only fetches it. It needs Java 21 or later.
"""

from __future__ import annotations

import argparse
import atexit
import fcntl
import functools
import hashlib
import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from tests.support.kafka_broker import free_ports
from tests.support.kafka_home import REPOSITORY
from tests.support.waiting import became

VERSION = "3.3.3"
SHA256 = "8bc6751c76d963734224b01d5e7f84ccb3cb61c87d3bd77c36c35f10a5cbed63"
"""Of the archive. Its SHA-1 is the one that is published beside it: 71e7918455480cbce405ad45552254eb47ec932d."""
ARCHIVE = f"apicurio-registry-app-{VERSION}-all.tar.gz"
FOLDER = REPOSITORY / ".apicurio"
APP = FOLDER / "app"
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
PATH = "/apis/ccompat/v7"
JAVA_LEAST = 21
JAVA_OPTIONS = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
READY_WITHIN_S = 90.0
"""It takes 8 s on an idle machine, and 23 s on one with ten busy processes for each core."""


def fetch() -> Path:
    """Fetches and unpacks the registry, once for each version, and returns its folder. Blocks; tells its steps."""
    FOLDER.mkdir(exist_ok=True)
    stamp = FOLDER / "stamp"
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_text() != SHA256:
            shutil.rmtree(APP, ignore_errors=True)
            archive = _download()
            _say("unpacking")
            with tarfile.open(archive) as opened:
                opened.extractall(APP, filter="data")
            archive.unlink()
            stamp.write_text(SHA256)
            _say(f"ready in {APP}")
    return APP


def _download() -> Path:
    """Returns the archive, as Maven finds it, with the checksum that is expected."""
    _say(f"fetching version {VERSION}, 151 MiB, by Maven; this happens once")
    artifact = f"-Dartifact=io.apicurio:apicurio-registry-app:{VERSION}:tar.gz:all"
    command = ["mvn", "-B", "-C", COPY, artifact, f"-DoutputDirectory={FOLDER}"]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=sys.stderr, cwd=FOLDER)
    archive = FOLDER / ARCHIVE
    with archive.open("rb") as opened:
        found = hashlib.file_digest(opened, "sha256").hexdigest()
    if found != SHA256:
        archive.unlink()
        raise RuntimeError(f"{ARCHIVE} has the SHA-256 {found}, and not {SHA256}: it is not the file that was pinned")
    return archive


def _say(text: str) -> None:
    print(f"apicurio: {text}", file=sys.stderr, flush=True)


@functools.cache
def newest_java() -> str | None:
    """Returns a Java that is new enough: that of JAVA_HOME, of the path, or one of the system's others; or None."""
    for candidate in _javas():
        done = subprocess.run([candidate, "-version"], capture_output=True, text=True, check=False)
        found = re.search(r'version "(\d+)', done.stderr + done.stdout)
        if found is not None and int(found[1]) >= JAVA_LEAST:
            return candidate
    return None


def _javas() -> Iterator[str]:
    if home := os.environ.get("JAVA_HOME"):
        yield f"{home}/bin/java"
    if found := shutil.which("java"):
        yield found
    yield from map(str, sorted(Path("/usr/lib/jvm").glob("*/bin/java"), reverse=True))


class Apicurio:
    """One registry, in memory, with the compatibility level BACKWARD. A context manager: leaving it stops the process.

    It starts no thread in this process.
    """

    def __init__(self) -> None:
        self._port, self._management = free_ports(2)
        self.url = f"http://127.0.0.1:{self._port}{PATH}"
        """The base address of Confluent's API."""
        self._folder = Path(tempfile.mkdtemp(prefix="awoke-apicurio-"))
        self._log = self._folder / "log"
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = os.getpid()

    def start(self) -> None:
        """Starts the process in a session of its own. Blocks until it answers; fails when the time is up."""
        app, java = fetch(), newest_java()
        if java is None:
            raise RuntimeError(f"Apicurio needs Java {JAVA_LEAST} or later: install one, or set JAVA_HOME")
        atexit.register(self.stop)
        settings = {"quarkus.http.port": str(self._port), "quarkus.management.port": str(self._management)}
        settings |= {"quarkus.http.host": "127.0.0.1", "quarkus.management.host": "127.0.0.1"}
        options = [f"-D{name}={value}" for name, value in settings.items()]
        command = [java, *JAVA_OPTIONS, *options, "-jar", str(app / "quarkus-run.jar")]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
                start_new_session=True,
            )
        if not became(lambda: self._has_ended() or self._answers("GET", "/subjects"), READY_WITHIN_S, every_s=0.2):
            self._fail(f"did not answer within {READY_WITHIN_S:.0f} s")
        if self._has_ended() or not self._answers("PUT", "/config", {"compatibility": "BACKWARD"}):
            self._fail("did not start")

    def stop(self) -> None:
        """Kills the process: it has nothing to keep. Stopping again does nothing."""
        if os.getpid() != self._owner:
            return  # A forked child that ends must not take its parent's registry along.
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)
        atexit.unregister(self.stop)

    def log_text(self) -> str:
        """Returns the log."""
        return self._log.read_text(errors="replace")

    def _answers(self, method: str, path: str, body: object = None) -> bool:
        """Tells whether the registry fulfils a request."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=10)
        try:
            content = None if body is None else json.dumps(body)
            connection.request(method, PATH + path, content, {"Content-Type": "application/json"})
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def _has_ended(self) -> bool:
        return self._process is None or self._process.poll() is not None

    def _fail(self, why: str) -> None:
        log = "\n".join(self.log_text().splitlines()[-40:])
        self.stop()
        raise RuntimeError(f"Apicurio {why}:\n{log}")

    def __enter__(self) -> Apicurio:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def main() -> None:
    """Obeys the command line."""
    parser = argparse.ArgumentParser(description="Apicurio Registry for tests")
    parser.add_argument("action", choices=["fetch"])
    parser.parse_args()
    if newest_java() is None:
        _say(f"there is no Java {JAVA_LEAST} or later (set JAVA_HOME): the tests with a real registry are skipped")
        return
    print(fetch())


if __name__ == "__main__":
    main()
