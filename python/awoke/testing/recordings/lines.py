"""Files of JSON lines, which are written as a whole and read line by line."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from awoke.errors import ConfigError

LINE_BYTES_MAX = 256_000_000
"""The longest line that is read: a message of 100 MB in base64, and its headers."""


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
    number = 0
    for number, line in enumerate(_lines(path), 1):
        if len(line) > LINE_BYTES_MAX:
            raise wrong_line(path, number, f"it has more than {LINE_BYTES_MAX:,} bytes")
        try:
            document = msgspec.json.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise wrong_line(path, number, str(error)) from None
        except RecursionError:
            raise wrong_line(path, number, "it is nested too deep") from None
        if not isinstance(document, dict):
            raise wrong_line(path, number, "it is no JSON object")
        if number == 1 and document.get(kind) != version:
            raise wrong_line(path, number, f"expected a header with {kind!r}: {version}")
        yield number, document
    if not number:
        raise ConfigError(f"{path} is empty", "file")


def _lines(path: Path) -> Iterator[bytes]:
    """Yields the lines of a file; of one that is too long, its begin, which is longer than `LINE_BYTES_MAX`."""
    try:
        with path.open("rb") as file:
            while line := file.readline(LINE_BYTES_MAX + 1):
                yield line
    except OSError as error:
        raise ConfigError(f"{path} can't be read: {error.strerror}", "file") from None


def wrong_line(path: Path, number: int, text: str) -> ConfigError:
    """Returns the error of a line that can't be read."""
    return ConfigError(f"{path} line {number}: {text}", "file")
