"""Files of JSON lines, which are written as a whole and read line by line."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from awoke.errors import ConfigError


def write_lines(path: Path, documents: Iterable[Any], *, replaces: bool) -> None:
    """Writes documents as JSON lines. The file is there when all are written; only its owner may read it.

    Raises:
        ConfigError: the file is there already, and is not to be replaced; or it can't be written. Else what the
        iterable raises: then nothing is left.
    """
    if path.exists() and not replaces:
        raise ConfigError(f"{path} is there already: say --overwrite, or name another file", "file")
    try:
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise ConfigError(f"{path} can't be written: {error.strerror}", "file") from None
    try:
        with os.fdopen(descriptor, "wb") as file:
            for each in documents:
                file.write(msgspec.json.encode(each) + b"\n")
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def read_lines(path: Path, kind: str, version: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yields the number and the document of each line. The first is the header, `{KIND: VERSION, …}`.

    Raises:
        ConfigError: the file can't be read, or is not of this kind and version.
    """
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise ConfigError(f"{path} can't be read: {error.strerror}", "file") from None
    for number, line in enumerate(lines, 1):
        try:
            document = msgspec.json.decode(line)
        except msgspec.MsgspecError as error:
            raise wrong_line(path, number, str(error)) from None
        if not isinstance(document, dict):
            raise wrong_line(path, number, "it is no JSON object")
        if number == 1 and document.get(kind) != version:
            raise wrong_line(path, number, f"expected a header with {kind!r}: {version}")
        yield number, document
    if not lines:
        raise ConfigError(f"{path} is empty", "file")


def wrong_line(path: Path, number: int, text: str) -> ConfigError:
    """Returns the error of a line that can't be read."""
    return ConfigError(f"{path} line {number}: {text}", "file")
