"""The official JSON Schema of AsyncAPI 3.0, fetched from npm's registry once and not kept in the repository."""

from __future__ import annotations

import fcntl
import functools
import hashlib
import json
import shutil
import subprocess
import tarfile
from typing import Any

import jsonschema
import pytest

from tests.support.kafka_home import REPOSITORY

VERSION = "6.11.1"
SHA256 = "01af8744dc33c0c7eb2e908f6a955319ee58b70ecadc9387d1aeb16c0cd28928"
FOLDER = REPOSITORY / ".asyncapi"
ARCHIVE = FOLDER / f"asyncapi-specs-{VERSION}.tgz"


@functools.cache
def validator() -> Any:
    """Returns the validator of documents. Blocks while it fetches; skips the test where npm is not installed."""
    if not ARCHIVE.exists():
        if shutil.which("npm") is None:
            pytest.skip("npm is not installed, which fetches the schema")
        _fetch()
    with tarfile.open(ARCHIVE) as opened:
        file = opened.extractfile("package/schemas/3.0.0.json")
        assert file is not None
        schema = json.load(file)
    return jsonschema.validators.validator_for(schema)(schema)


def _fetch() -> None:
    FOLDER.mkdir(exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if ARCHIVE.exists():
            return
        command = ["npm", "pack", "--silent", f"@asyncapi/specs@{VERSION}"]
        packed = subprocess.run(command, check=True, capture_output=True, text=True, cwd=FOLDER).stdout.strip()
        found = FOLDER / packed
        digest = hashlib.sha256(found.read_bytes()).hexdigest()
        if digest != SHA256:
            found.unlink()
            raise RuntimeError(f"{packed} has the SHA-256 {digest}: it is not the file that was pinned")


def faults(document: Any) -> list[str]:
    """Returns what the official schema refuses in a document."""
    return [f"{list(each.path)}: {each.message}" for each in validator().iter_errors(document)]
