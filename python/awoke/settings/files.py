"""Reads settings from `awoke.toml`, and from `[tool.awoke]` in `pyproject.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from awoke.errors import ConfigError
from awoke.settings.kafka import KafkaValue


def files(directory: Path) -> Iterable[tuple[str, dict[str, Any]]]:
    """Yields the files of settings in a directory, each with its settings; the later file wins.

    Raises:
        ConfigError: A file is no TOML, or its settings are no table.
    """
    for name, path in (("pyproject.toml", ("tool", "awoke")), ("awoke.toml", ())):
        file = directory / name
        if not file.is_file():
            continue
        try:
            # Editors of Windows begin a file with a byte order mark, which TOML does not have.
            table: Any = tomllib.loads(file.read_bytes().decode("utf-8-sig"))
        except OSError as error:
            raise ConfigError(f"{name}: can't be read: {error.strerror}", name) from None
        except UnicodeDecodeError:
            raise ConfigError(f"{name}: is no TOML: it is not UTF-8; save it in that encoding", name) from None
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f"{name}: is no TOML: {error}", name) from None
        for key in path:
            table = table.get(key, {})
            if not isinstance(table, Mapping):
                raise ConfigError(f"{name}: {key!r} must be a table", name)
        if table:
            yield name, _flat_kafka(table)


def _flat_kafka(table: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a table with flat names of librdkafka's properties: TOML reads `linger.ms = 5` as a table in a table."""

    def flatten(prefix: str, value: Any) -> Iterable[tuple[str, KafkaValue]]:
        if isinstance(value, Mapping):
            for name, each in value.items():
                yield from flatten(f"{prefix}.{name}" if prefix else name, each)
        else:
            yield prefix, value

    flat = dict(table)
    if isinstance(flat.get("kafka"), Mapping):
        flat["kafka"] = dict(flatten("", flat["kafka"]))
    return flat
