"""Settings from arguments, the environment, a file and defaults, in this order, each with its origin.

Environment: `AWOKE_WORKERS=8`; librdkafka's properties as `AWOKE_KAFKA_SASL_USERNAME=…` (underscores become dots).
File: `awoke.toml`, or `[tool.awoke]` in `pyproject.toml`, in the working directory; properties under `[kafka]`.
`Settings` are those of an app, `RunSettings` those of `awoke run`, which it needs before it imports the app.
"""

from __future__ import annotations

import difflib
import logging
import math
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import msgspec

from awoke import checks, environment
from awoke.errors import ConfigError
from awoke.memory_limit import MEGABYTE, fitting_mb, memory_limit_bytes
from awoke.oauth import ClientProperties, TokenSource, check_function
from awoke.secrets import shown_fields, shown_repr, shown_value

KafkaValue = str | int | float | bool


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that can be set, with its default."""

    bootstrap_servers: str = "127.0.0.1:9092"
    """Brokers to begin with: `host:port`, separated by commas."""
    group: str | None = None
    """The consumer group; the app's name where none is set."""
    instance_id: str | None = None
    """A lasting name of this process in its group: a process that was killed and starts again has its partitions back at once
    (static membership, KIP-345). No two processes of a group may have the same; each node of a swarm adds its number."""
    workers: int | None = None
    """Threads that run handlers; None for 4, or as many as a route has jobs of a partition at once, up to 64."""
    async_jobs_max: int | None = None
    """Jobs of `async def` handlers that run at once; None for 100, or 10,000 where a route has several of a partition."""
    commit_interval_s: float = 1.0
    """What is done is committed within this time; a lone commit goes out at once."""
    fetch_memory_mb: int = 64
    """The most memory that messages may take which are fetched and not yet given to a handler, about. It is divided among
    the partitions that the process holds. `queued.max.messages.kbytes` or `queued.min.messages` replace it. By default at
    most an eighth of the process's memory limit."""
    fetch_batch_max_mb: int = 256
    """The most memory that one fetched batch may take once it is decompressed. A partition is stuck at a larger one. By
    default at most a quarter of the process's memory limit."""
    revoke_timeout_s: float = 30.0
    """How long running jobs and hooks may hold up a rebalance; less than `max.poll.interval.ms`, half of it by default where
    that is less than 30 s."""
    shutdown_timeout_s: float = 30.0
    """How long running jobs may hold up the shutdown; less than `max.poll.interval.ms`, with a default as above."""
    blocked_after_s: float = 60.0
    """When a message has failed for so long, and is tried again and again, health is bad and names it."""
    startup_timeout_s: float = 10.0
    """How long to wait for the brokers' first answer."""
    produce_timeout_s: float = 60.0
    """How long `produce` waits for room in a full queue."""
    producer_idle_s: float | None = None
    """The app's producer closes its connection when nothing was sent for so long, until something is; None keeps it."""
    transactional_id: str | None = None
    """Names the process in transactions of `exactly_once` routes: a process that starts with the name of one that died
    ends its open transaction at once. No two that run at the same time may have the same. None: a new name each
    time."""
    transaction_interval_s: float = 0.0
    """Transactions of `exactly_once` routes that follow one another begin at least so far apart."""
    transaction_records_max: int = 10_000
    """A transaction of `exactly_once` routes takes in no further job when it has so many records."""
    metrics_port: int | None = None
    """Where metrics and health are served over HTTP; 0 takes a free port, None serves nothing."""
    metrics_host: str = "127.0.0.1"
    """The address that they are served on."""
    metrics_allowed_hosts: str = ""
    """Names by which clients may ask there, separated by commas, beside IP addresses, `localhost` and `metrics_host`."""
    tracing: bool = False
    """Whether OpenTelemetry spans are made; needs the extra `otel`."""
    oauth_token: Any = None
    """A function, `def` or `async def`, that returns an `awoke.OAuthToken` for `sasl.mechanism=OAUTHBEARER`. Only code can
    give it."""
    kafka: dict[str, str] = {}
    """librdkafka's properties, as librdkafka spells them."""

    def __post_init__(self) -> None:
        for name in ("workers", "async_jobs_max", "transaction_records_max", "fetch_memory_mb", "fetch_batch_max_mb"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"setting {name!r}: must be at least 1, not {getattr(self, name)}", name)
        check_seconds(self)
        if self.metrics_port is not None and not 0 <= self.metrics_port <= PORT_MAX:
            text = f"setting 'metrics_port': must be a port from 0 to {PORT_MAX}, not {self.metrics_port}"
            raise ConfigError(text, "metrics_port")
        if self.instance_id is not None and not self.instance_id.strip():
            raise ConfigError("setting 'instance_id': is empty", "instance_id")
        check_function(self.oauth_token)
        if not self.bootstrap_servers.strip():
            raise ConfigError("setting 'bootstrap_servers': is empty", "bootstrap_servers")

    def __repr__(self) -> str:
        return shown_repr(self, self.__struct_fields__)

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return shown_fields(self, self.__struct_fields__)


class RunSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of `awoke run`, with their defaults."""

    log_format: Literal["text", "json"] = "text"
    """`json` writes one document a line."""
    log_level: str = "info"
    """The least level that is logged."""
    nodes: int | None = None
    """The number of processes of a swarm; None runs the app in a single process."""
    memory_limit: str | None = None
    """A node that uses more memory is replaced in order, as in `512M`."""
    memory_hard_limit: str | None = None
    """A node that uses more memory is killed."""
    hang_after_s: float = 300.0
    """A node that works on one job for longer is replaced."""
    silent_after_s: float = 10.0
    """A node that gives no sign of life for this long is replaced."""
    drain_timeout_s: float = 35.0
    """A node that takes longer to stop is killed."""
    restarts_max: int = 5
    """More restarts of nodes within a minute end the swarm."""
    restart_backoff_s: float = 1.0
    """The delay before the second restart in a row; it is doubled each time."""
    static_members: bool = True
    """Whether each node keeps its name in the group, and so its partitions."""
    socket: str | None = None
    """The path of the UNIX socket for commands; None is a file of the user's, named after the app."""

    def __post_init__(self) -> None:
        if self.log_level.upper() not in logging.getLevelNamesMapping():
            text = f"setting 'log_level': {self.log_level!r} is none of debug, info, warning, error"
            raise ConfigError(text, "log_level")
        for name, least in (("nodes", 1), ("restarts_max", 0)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise ConfigError(f"setting {name!r}: must be at least {least}, not {value}", name)
        check_seconds(self)


PORT_MAX = 65_535
AnySettings = TypeVar("AnySettings", Settings, RunSettings)
ALL_NAMES = frozenset({*Settings.__struct_fields__, *RunSettings.__struct_fields__}) - {"kafka", "oauth_token"}


def check_seconds(settings: Settings | RunSettings) -> None:
    """Refuses durations that are negative, infinite or not a number.

    Raises:
        ConfigError: names the setting.
    """
    for name in settings.__struct_fields__:
        value_s = getattr(settings, name) if name.endswith("_s") else None
        if value_s is not None and not (math.isfinite(value_s) and value_s >= 0):
            raise ConfigError(f"setting {name!r}: must be a number of seconds from 0, not {value_s:g}", name)


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
        """Each setting with its value and origin, librdkafka's properties last."""
        own = explained(self.values, self._origins)
        kafka = self.values.kafka.items()
        return own + [Explained(name, shown_value(name, value), self._origin(f"kafka.{name}")) for name, value in kafka]

    def check_member(self) -> None:
        """Refuse settings under which the brokers would take the group's member for dead while it is at work.

        Raises:
            ConfigError: names the setting, its origin and what to do.
        """
        interval_s = poll_interval_s(self.values.kafka)
        for name in ("revoke_timeout_s", "shutdown_timeout_s"):
            timeout_s = getattr(self.values, name)
            if timeout_s >= interval_s:
                text = (
                    f"setting {name!r} ({self._origin(name)}): {timeout_s:g} s is not less than {POLL_INTERVAL} "
                    f"({self._origin(f'kafka.{POLL_INTERVAL}')}), {interval_s:g} s: the brokers would give the partitions to "
                    f"others while jobs still run, and everything would run twice; set {name} below {interval_s:g}, "
                    f"or raise {POLL_INTERVAL}"
                )
                raise ConfigError(text, name)
        self._check_heartbeats()
        self._check_instance_id()

    def _check_instance_id(self) -> None:
        if self.values.instance_id is not None and self.values.kafka.get("group.protocol", "classic") != "classic":
            text = (
                f"setting 'instance_id' ({self._origin('instance_id')}): needs group.protocol=classic "
                f"({self._origin('kafka.group.protocol')} says otherwise): with the other protocol the brokers refuse a "
                "process that comes back after it was killed until its session is over"
            )
            raise ConfigError(text, "instance_id")

    def _check_heartbeats(self) -> None:
        kafka = self.values.kafka
        if kafka.get("group.protocol", "classic") != "classic":
            return  # There the brokers decide about both.
        heartbeat_ms = number(kafka, HEARTBEAT_INTERVAL, HEARTBEAT_INTERVAL_MS)
        session_ms = number(kafka, SESSION_TIMEOUT, SESSION_TIMEOUT_MS)
        if heartbeat_ms >= session_ms:
            text = (
                f"setting {HEARTBEAT_INTERVAL!r} ({self._origin(f'kafka.{HEARTBEAT_INTERVAL}')}): {heartbeat_ms} is not less "
                f"than {SESSION_TIMEOUT} ({self._origin(f'kafka.{SESSION_TIMEOUT}')}), {session_ms}: the brokers would take "
                f"the member for dead between two heartbeats; set it to a third of {SESSION_TIMEOUT} at most"
            )
            raise ConfigError(text, HEARTBEAT_INTERVAL)

    def _origin(self, name: str) -> str:
        return self._origins.get(name, "default")


POLL_INTERVAL = "max.poll.interval.ms"
SESSION_TIMEOUT = "session.timeout.ms"
HEARTBEAT_INTERVAL = "heartbeat.interval.ms"
POLL_INTERVAL_MS, SESSION_TIMEOUT_MS, HEARTBEAT_INTERVAL_MS = 300_000, 45_000, 3_000
"""librdkafka's defaults."""


def number(kafka: Mapping[str, str], name: str, default: int) -> int:
    """A number among librdkafka's properties; the default where there is none. librdkafka itself refuses other text."""
    text = kafka.get(name, "").strip()
    return int(text) if text.isdecimal() else default


def poll_interval_s(kafka: Mapping[str, str]) -> float:
    """After so long without a poll a member counts as dead."""
    return number(kafka, POLL_INTERVAL, POLL_INTERVAL_MS) / 1_000


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
    return [Explained(name, _said(name, getattr(values, name)), origins.get(name, "default")) for name in names]


def _said(name: str, value: Any) -> str:
    return getattr(value, "__qualname__", "a function") if callable(value) else str(shown_value(name, value))


def load(arguments: Mapping[str, Any] | None = None, directory: Path | None = None) -> Loaded:
    """Put the settings of an app together; arguments that are None are not set.

    Raises:
        ConfigError: a setting that does not exist, or whose value is of the wrong kind; names it and its origin.
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
    """Sets defaults that fit the memory limit of this process, where there is one. What was set explicitly stays."""
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
    """Returns the settings of one kind, and their origins. Environment and files hold those of the other kind, too."""
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
        where = f"say {option}, {environment.variable_of(name)}, or {name} in awoke.toml"
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
"""What an error says of a value, by the type that its setting has."""


def properties_of(value: Any, origin: str) -> dict[str, str]:
    """librdkafka's properties as text."""
    if not isinstance(value, Mapping):
        raise ConfigError(f"setting 'kafka' ({origin}): must be a table of librdkafka's properties", "kafka")
    return {str(name): _text(each) for name, each in value.items()}


def _text(value: KafkaValue) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def files(directory: Path) -> Iterable[tuple[str, dict[str, Any]]]:
    """Gives each file of settings that a directory has, with what it sets; the later one wins."""
    for name, path in (("pyproject.toml", ("tool", "awoke")), ("awoke.toml", ())):
        file = directory / name
        if not file.is_file():
            continue
        try:
            table: Any = tomllib.loads(file.read_text())
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f"{name}: is no TOML: {error}", name) from None
        for key in path:
            table = table.get(key, {})
        if table:
            yield name, _flat_kafka(table)


def _flat_kafka(table: Mapping[str, Any]) -> dict[str, Any]:
    """TOML reads `linger.ms = 5` as a table in a table; librdkafka's names are flat."""

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


STATISTICS_MS = "5000"
"""How often librdkafka says what it measures, where metrics are served."""


embedded: set[str] = set()
"""Addresses of brokers inside this process."""

METADATA_REFRESH_MS = "30000"
"""How often clients look for partitions that were added to their topics: librdkafka's own 300 s would leave them unread, and
messages with a key in partitions that other producers no longer choose."""

EMBEDDED_WAIT_MS = "10"
"""Embedded brokers answer a fetch when messages are there already, or when its wait is over: it must be short."""


def client_properties(settings: Settings, **more: str) -> ClientProperties:
    """librdkafka's properties for one client; what the user set wins, but for `more`.

    Raises:
        ConfigError: A property has a zero byte, an address a user, or a file can't be read.
    """
    given = {"bootstrap.servers": settings.bootstrap_servers, **settings.kafka}
    checks.text_of_c(given)
    checks.addresses(given)
    checks.readable_files(settings.kafka)
    statistics = {} if settings.metrics_port is None else {"statistics.interval.ms": STATISTICS_MS}
    if settings.bootstrap_servers in embedded:
        statistics["fetch.wait.max.ms"] = EMBEDDED_WAIT_MS
    properties = ClientProperties(
        {
            "bootstrap.servers": settings.bootstrap_servers,
            "client.id": "awoke",
            "topic.metadata.refresh.interval.ms": METADATA_REFRESH_MS,
            **statistics,
            **settings.kafka,
            **more,
        }
    )
    properties.token_source = None if settings.oauth_token is None else TokenSource(settings.oauth_token)
    return properties
