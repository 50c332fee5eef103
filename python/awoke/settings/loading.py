"""Puts settings together from defaults, files, the environment and arguments, with the origin of each."""

from __future__ import annotations

import contextlib
import difflib
import resource
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import msgspec

from awoke.errors import ConfigError
from awoke.settings import environment
from awoke.settings.fields import ALL_NAMES, AnySettings, RunSettings, Settings
from awoke.settings.files import files
from awoke.settings.kafka import (
    HEARTBEAT_INTERVAL,
    HEARTBEAT_INTERVAL_MS,
    POLL_INTERVAL,
    SESSION_TIMEOUT,
    SESSION_TIMEOUT_MS,
    number,
    poll_interval_s,
    properties_of,
)
from awoke.text.secrets import shown_value

MEGABYTE = 1024 * 1024
LEAST_MB = 8
"""No default is smaller: Kafka's brokers accept batches of a megabyte, which may be compressed."""
V2, V1 = "memory.max", "memory.limit_in_bytes"


class Explained(NamedTuple):
    """One setting and where it came from."""

    name: str
    value: str
    """As text; `[secret]` for what must not be shown."""
    origin: str


class Loaded:
    """Settings that were put together, with the origin of each."""

    def __init__(self, values: Settings, origins: Mapping[str, str]) -> None:
        self.values = values
        self._origins = origins

    def explain(self) -> list[Explained]:
        """Returns each setting with its value and origin, librdkafka's properties last."""
        own = explained(self.values, self._origins)
        kafka = self.values.kafka.items()
        return own + [Explained(name, shown_value(name, value), self._origin(f"kafka.{name}")) for name, value in kafka]

    def check_member(self) -> None:
        """Refuses settings under which the brokers would count a working group member as dead.

        Raises:
            ConfigError: names the setting, its origin and what to do.
        """
        interval_s = poll_interval_s(self.values.kafka)
        for name in ("revoke_timeout_s", "shutdown_timeout_s"):
            timeout_s = getattr(self.values, name)
            if timeout_s >= interval_s:
                text = (
                    f"setting {name!r} ({self._origin(name)}): {timeout_s:g} s is not less than {POLL_INTERVAL} "
                    f"({self._origin(f'kafka.{POLL_INTERVAL}')}), {interval_s:g} s: the brokers would give the "
                    f"partitions to others while jobs still run, and everything would run twice; set {name} below "
                    f"{interval_s:g}, or raise {POLL_INTERVAL}"
                )
                raise ConfigError(text, name)
        self._check_heartbeats()
        self._check_instance_id()

    def _check_instance_id(self) -> None:
        if self.values.instance_id is not None and self.values.kafka.get("group.protocol", "classic") != "classic":
            text = (
                f"setting 'instance_id' ({self._origin('instance_id')}): needs group.protocol=classic "
                f"({self._origin('kafka.group.protocol')} says otherwise): with the other protocol the brokers refuse "
                "a process that comes back after it was killed until its session is over"
            )
            raise ConfigError(text, "instance_id")

    def _check_heartbeats(self) -> None:
        kafka = self.values.kafka
        if kafka.get("group.protocol", "classic") != "classic":
            return  # With the other protocol the brokers set both.
        heartbeat_ms = number(kafka, HEARTBEAT_INTERVAL, HEARTBEAT_INTERVAL_MS)
        session_ms = number(kafka, SESSION_TIMEOUT, SESSION_TIMEOUT_MS)
        if heartbeat_ms >= session_ms:
            heartbeat_at, session_at = (self._origin(f"kafka.{each}") for each in (HEARTBEAT_INTERVAL, SESSION_TIMEOUT))
            text = (
                f"setting {HEARTBEAT_INTERVAL!r} ({heartbeat_at}): {heartbeat_ms} is not less than {SESSION_TIMEOUT} "
                f"({session_at}), {session_ms}: the brokers would take the member for dead between two heartbeats; "
                f"set it to a third of {SESSION_TIMEOUT} at most"
            )
            raise ConfigError(text, HEARTBEAT_INTERVAL)

    def origin_of(self, name: str) -> str:
        """Returns the origin of a setting, or of a property as in `kafka.linger.ms`."""
        return self._origin(name)

    def _origin(self, name: str) -> str:
        return self._origins.get(name, "default")


class LoadedRun(NamedTuple):
    """Settings of `awoke run` that were put together, with the origin of each that was set."""

    values: RunSettings
    origins: Mapping[str, str]

    def explain(self) -> list[Explained]:
        """Returns each setting with its value and origin."""
        return explained(self.values, self.origins)


def explained(values: Settings | RunSettings, origins: Mapping[str, str]) -> list[Explained]:
    """Returns each setting but librdkafka's properties, with its value and origin."""
    names = [name for name in values.__struct_fields__ if name != "kafka"]
    return [Explained(name, _text_of(name, getattr(values, name)), origins.get(name, "default")) for name in names]


def _text_of(name: str, value: Any) -> str:
    return getattr(value, "__qualname__", "a function") if callable(value) else str(shown_value(name, value))


def load(arguments: Mapping[str, Any] | None = None, directory: Path | None = None) -> Loaded:
    """Puts the settings of an app together; arguments that are None are not set.

    Raises:
        ConfigError: A setting does not exist, or its value is of the wrong type; names it and its origin.
    """
    merged, origins = _merge(Settings, RunSettings, arguments or {}, directory or Path())
    for name in ("revoke_timeout_s", "shutdown_timeout_s"):
        merged.setdefault(name, min(30.0, poll_interval_s(merged["kafka"]) / 2))
    _fit_memory(merged, origins)
    brokers = merged["kafka"].pop("bootstrap.servers", None)
    if brokers is not None:
        merged.setdefault("bootstrap_servers", brokers)
    return Loaded(_convert(merged, origins, Settings), origins)


def _fit_memory(merged: dict[str, Any], origins: dict[str, str]) -> None:
    """Sets defaults that fit the memory limit of this process, where there is one. Values that are set stay."""
    limit_bytes, usual = memory_limit_bytes(), Settings()
    for name, divisor, share in (("fetch_memory_mb", 8, "an eighth"), ("fetch_batch_max_mb", 4, "a quarter")):
        value_mb = fitting_mb(getattr(usual, name), divisor, limit_bytes)
        if name not in merged and limit_bytes is not None and value_mb < getattr(usual, name):
            merged[name] = value_mb
            origins[name] = f"default: {share} of the memory limit, {limit_bytes // MEGABYTE} MB"


def load_run(arguments: Mapping[str, Any] | None = None, directory: Path | None = None) -> LoadedRun:
    """Puts the settings of `awoke run` together; arguments that are None are not set.

    Raises:
        ConfigError: as `load`.
    """
    merged, origins = _merge(RunSettings, Settings, arguments or {}, directory or Path())
    del merged["kafka"]
    return LoadedRun(_convert(merged, origins, RunSettings), origins)


def unknown_variables() -> list[str]:
    """Returns environment variables with awoke's prefix that are no settings: they may belong to another program."""
    return environment.unknown(ALL_NAMES)


def _merge(
    kind: type[Settings] | type[RunSettings],
    others: type[Settings] | type[RunSettings],
    arguments: Mapping[str, Any],
    directory: Path,
) -> tuple[dict[str, Any], dict[str, str]]:
    """Returns the settings of one kind, and their origins. Environment and files have those of the other kind, too."""
    foreign = set(others.__struct_fields__) - set(kind.__struct_fields__) - {"kafka"}
    merged: dict[str, Any] = {"kafka": {}}
    origins: dict[str, str] = {}
    layers = [*files(directory), (ENVIRONMENT, environment.read(ALL_NAMES)), (ARGUMENT, arguments)]
    for origin, layer in layers:
        for name, value in layer.items():
            if value is None or (name in foreign and origin != ARGUMENT):
                continue
            if name == "oauth_token" and origin != ARGUMENT:
                text = f"setting 'oauth_token' ({origin}): is a function, which can only be given in code"
                raise ConfigError(text, name)
            if name == "kafka":
                properties = properties_of(value, origin)
                merged["kafka"].update(properties)
                origins.update({f"kafka.{each}": origin for each in properties})
            else:
                merged[name] = value
                origins[name] = origin
    return merged, origins


def _convert(merged: dict[str, Any], origins: Mapping[str, str], kind: type[AnySettings]) -> AnySettings:
    unknown = sorted(set(merged) - set(kind.__struct_fields__))
    if unknown:
        raise ConfigError(_unknown_text(unknown[0], origins[unknown[0]], kind), unknown[0])
    try:
        return msgspec.convert(merged, kind, strict=False)
    except msgspec.ValidationError as error:
        name = str(error).rpartition("$.")[2].rstrip("`")
        place = place_of(name, origins.get(name, "default"))
        raise ConfigError(
            f"{place}: {shown_value(name, merged.get(name))!r} {_what_is_wrong(name, kind)}", name
        ) from None
    except ConfigError as error:
        place = place_of(error.property, origins.get(error.property, "default"))
        text = str(error).replace(f"setting {error.property!r}", place, 1)
        raise ConfigError(text, error.property) from None


def _unknown_text(name: str, origin: str, kind: type[Settings] | type[RunSettings]) -> str:
    if name in RunSettings.__struct_fields__:
        option = "--" + name.replace("_", "-")
        where = f"set {option}, {environment.variable_of(name)}, or {name} in awoke.toml"
        return f"setting {name!r} ({origin}): belongs to awoke run, which needs it before it imports the app: {where}"
    close = difflib.get_close_matches(name, ALL_NAMES, 1)
    meant = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(kind.__struct_fields__)}"
    return f"setting {name!r} ({origin}): does not exist; {meant}"


def place_of(name: str, origin: str) -> str:
    """Returns the place where a setting was set, as an error begins with it."""
    if origin == ENVIRONMENT:
        return environment.variable_of(name)
    return f"setting {name!r}" if origin in (ARGUMENT, "default") else f"{origin}: setting {name!r}"


def _what_is_wrong(name: str, kind: type[Settings] | type[RunSettings]) -> str:
    annotation = str(kind.__annotations__[name])
    if annotation.startswith("Literal"):
        words = [each.strip(" \"'") for each in annotation.removeprefix("Literal[").rstrip("]").split(",")]
        return f"is none of {', '.join(words)}"
    return WRONG_KINDS.get(annotation.removesuffix(" | None"), "is of the wrong type")


ENVIRONMENT, ARGUMENT = "environment", "argument"
WRONG_KINDS = {
    "int": "is no whole number",
    "float": "is no number",
    "bool": "is neither true nor false",
    "str": "is no text",
}
"""The words of an error about a value, by the type of its setting."""


def fitting_mb(usual_mb: int, divisor: int, limit_bytes: int | None) -> int:
    """Returns a default in MB: the usual one, or this part of the memory limit where that is less, at least 8."""
    if limit_bytes is None:
        return usual_mb
    return min(usual_mb, max(limit_bytes // divisor // MEGABYTE, LEAST_MB))


def memory_limit_bytes(root: Path = Path("/")) -> int | None:
    """Returns the smallest limit of this process's control groups and its address space; None where there is none.

    `root` is the directory that has `proc` and `sys`. Reads a few small files.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    limits = [*_control_group_limits(root), *([] if soft == resource.RLIM_INFINITY else [soft])]
    return min(limits, default=None)


def _control_group_limits(root: Path) -> Iterator[int]:
    for directory, file in _control_groups(root):
        with contextlib.suppress(OSError, ValueError):  # It does not exist, or has no limit: "max".
            yield int((directory / file).read_text())


def _control_groups(root: Path) -> Iterator[tuple[Path, str]]:
    """Gives the control groups of this process, each with its parents, and the file that has the limit there.

    A container may see paths of its host here, which do not exist in it: the top is then the container's own group.
    """
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    mounted = root / "sys/fs/cgroup"
    for line in lines:
        _, controllers, name = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        top, file = (mounted / "memory", V1) if controllers else (mounted, V2)
        path = PurePosixPath(name.lstrip("/"))
        for each in (path, *path.parents):
            yield top / each, file
