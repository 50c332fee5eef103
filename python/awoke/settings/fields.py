"""All settings with types, defaults and checks: those of an app, those of `awoke run`, and those of the engine."""

from __future__ import annotations

import logging
import math
import re
from typing import Any, Literal, TypeVar

import msgspec

from awoke.errors import ConfigError
from awoke.settings.oauth import check_function
from awoke.text.secrets import shown_fields, shown_repr

PORT_MAX = 65_535
COMMIT_SHARE = 3 / 4
"""The engine commits after this share of `commit_interval_s`, so that the commit ends within the whole of it."""


LEAST_ONE = (
    "workers",
    "async_jobs_max",
    "transaction_records_max",
    "fetch_memory_mb",
    "fetch_batch_max_mb",
    "registry_cache_max",
)
"""The settings that are 1 or more."""
WORDS_OF_BOOL = {"": False, "0": False, "false": False, "no": False, "1": True, "true": True, "yes": True}


PROTOCOLS = ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")
"""What may stand before the address of a broker, as in `SSL://kafka:9093`; librdkafka ignores anything else."""

ADDRESS = re.compile(
    r"(?:[^@\s]*@)?"
    r"(?:\[[0-9A-Fa-f:.]+(?:%\w+)?\]|[^\s:;/@\[\]]+)(?::([^\s:;/@]*))?|[0-9A-Fa-f]*(?::[0-9A-Fa-f.]*){2,}"
)
"""A name or an IPv4 address with or without a port, which is the group, or an IPv6 address."""


def check_addresses(servers: str) -> None:
    """Raises a `ConfigError` for the address of a broker that librdkafka would take for another one, or for none."""
    for address in filter(None, (each.strip() for each in servers.split(","))):
        scheme, has_scheme, rest = address.rpartition("://")
        found, wrong = ADDRESS.fullmatch(rest), ""
        if has_scheme and scheme.lower() not in PROTOCOLS and "@" not in rest:  # A user is refused by the properties.
            host = rest.partition("/")[0]
            wrong = f"is a URL; a broker's address is HOST:PORT, as in {host}"
        elif found is None:
            wrong = "is not one address, and a comma stands between two: write host:port"
        elif (port := found[1]) is not None and not (port.isdecimal() and 0 < int(port) <= PORT_MAX):
            wrong = f"needs a port from 1 to {PORT_MAX}: write host:port"
        if wrong:
            text = f"setting 'bootstrap_servers': {address.rpartition('@')[2]!r} {wrong}"
            raise ConfigError(text, "bootstrap_servers")


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of an app, with their defaults."""

    bootstrap_servers: str = "127.0.0.1:9092"
    """Brokers to begin with: `host:port`, separated by commas."""
    group: str | None = None
    """The consumer group; the app's name where none is set."""
    instance_id: str | None = None
    """A permanent name of this process in its group: a process that was killed and starts again gets its partitions at
    once (static membership, KIP-345). No two processes of a group may have the same; each node of a swarm adds its
    number."""
    workers: int | None = None
    """Threads that run handlers; None for 4, or as many as a route has jobs of a partition at once, up to 64."""
    async_jobs_max: int | None = None
    """Jobs of `async def` handlers that run at once; None is 100, or 10,000 if a route has several of a partition."""
    commit_interval_s: float = 1.0
    """Completed messages are committed within this time; a single commit is sent at once."""
    fetch_memory_mb: int = 64
    """The approximate maximum of memory for messages that are fetched and that no handler has yet. It is divided among
    the assigned partitions. `queued.max.messages.kbytes` or `queued.min.messages` replace it. By default at
    most an eighth of the process's memory limit."""
    fetch_batch_max_mb: int = 256
    """The maximum of memory for one fetched batch once it is decompressed. A partition is stuck at a larger one. By
    default at most a quarter of the process's memory limit."""
    revoke_timeout_s: float = 30.0
    """The longest time by which running jobs and hooks may delay a rebalance; less than `max.poll.interval.ms`, and
    half of it by default where that is less than 30 s."""
    shutdown_timeout_s: float = 30.0
    """The longest time by which running jobs may delay the stop; less than `max.poll.interval.ms`, default as above."""
    blocked_after_s: float = 60.0
    """When a message has failed and was retried for this time, health is bad and names the message."""
    startup_timeout_s: float = 10.0
    """The time to wait for the brokers' first answer."""
    topics_check: Literal["off", "warn", "error"] = "warn"
    """The effect at start of a topic that is not as the app declares it: none, a warning, or the end of the start."""
    table_queries: bool = True
    """True: other processes may ask for the rows of the app's tables (`awoke.Table`), by two topics for each table."""
    produce_timeout_s: float = 60.0
    """The time that `produce` waits for room in a full queue."""
    producer_idle_s: float | None = None
    """The app's producer closes its connection when it has sent nothing for this time; None keeps it open."""
    transactional_id: str | None = None
    """Names the process in transactions of `exactly_once` routes: a process that starts with the name of one that died
    ends its open transaction at once. No two that run at the same time may have the same. None: a new name each
    time."""
    transaction_interval_s: float = 0.0
    """The least time from the begin of one transaction of `exactly_once` routes to the begin of the next."""
    transaction_records_max: int = 100_000
    """A transaction of `exactly_once` routes takes no further job once it has this number of records."""
    metrics_port: int | None = None
    """The port on which metrics and health are served over HTTP; 0 is a free port, None serves nothing."""
    metrics_host: str = "127.0.0.1"
    """The address on which metrics and health are served; `::` is all of them, of IPv4 as well as IPv6."""
    metrics_allowed_hosts: str = ""
    """Names by which clients may ask there, comma-separated, beside IP addresses, `localhost` and `metrics_host`."""
    registry_url: str | None = None
    """The schema registry, as `http://127.0.0.1:8081`; several, comma-separated, are tried in turn."""
    registry_user: str | None = None
    """The user at the registry; with `registry_oauth_url` the client's id there."""
    registry_password: str | None = None
    """The user's password, or the client's secret."""
    registry_token: Any = None
    """A bearer token for the registry, instead of user and password. In code also a function, `def` or `async def`,
    that returns one: it is called before each request, and should keep its token while that is valid."""
    registry_oauth_url: str | None = None
    """Where the client gets its tokens for the registry (OAuth client credentials)."""
    registry_oauth_scope: str | None = None
    """The scope that it asks for there."""
    registry_headers: dict[str, str] | str | None = None
    """Headers of each request to the registry, as `{"target-sr-cluster": "lsrc-1"}`; in one text `name=value`,
    separated by commas."""
    registry_ca: str | None = None
    """A PEM file with the certificates that sign the registry's own; None for those of the system."""
    registry_certificate: str | None = None
    """A PEM file with the client's certificate, for mutual TLS."""
    registry_key: str | None = None
    """A PEM file with the client's private key."""
    registry_key_password: str | None = None
    """The password of that file."""
    registry_timeout_s: float = 5.0
    """The time that a request to the registry takes at most."""
    registry_cache_max: int = 1_000
    """The most schemas that are kept."""
    registry_register: Literal["never", "dev", "always"] = "never"
    """When what is sent registers its schema: never, only in a registry on this machine, or always."""
    tracing: bool = False
    """True makes OpenTelemetry spans; needs the extra `otel`."""
    tracing_conventions: Literal["1.24", "1.44"] = "1.44"
    """The version of OpenTelemetry's semantic conventions that the names and attributes of spans follow."""
    metrics_otel: bool = False
    """True gives the metrics to OpenTelemetry's meter provider, which exports them by OTLP; needs the extra `otel`."""
    console: bool = False
    """True: the process sends reports and error records to the topics that `awoke report` reads."""
    console_commands: bool | str | tuple[str, ...] = False
    """The commands that the process takes from a console: none, all (true), or those named, as in `pause,resume`. Needs
    `console`."""
    console_secret: str | None = None
    """Signs the commands of a console and their answers; None: they are not signed."""
    oauth_token: Any = None
    """A function, `def` or `async def`, that returns an `awoke.OAuthToken` for `sasl.mechanism=OAUTHBEARER`. It can be
    set in code only."""
    kafka: dict[str, str] = {}
    """librdkafka's properties, as librdkafka spells them."""

    def __post_init__(self) -> None:
        for name in LEAST_ONE:
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
        token = self.registry_token
        if not (token is None or isinstance(token, str) or callable(token)):
            raise ConfigError("setting 'registry_token': is a text, or a function that returns one", "registry_token")
        self.headers_of_registry()
        if not self.bootstrap_servers.strip():
            raise ConfigError("setting 'bootstrap_servers': is empty", "bootstrap_servers")
        check_addresses(self.bootstrap_servers)

    def headers_of_registry(self) -> dict[str, str]:
        """Returns the headers of each request to the registry.

        Raises:
            ConfigError: The text is no list of names and values.
        """
        given = self.registry_headers
        if not isinstance(given, str):
            return dict(given or {})
        headers = {}
        for word in filter(None, (each.strip() for each in given.split(","))):
            name, equals, value = word.partition("=")
            if not equals or not name.strip():
                # Not quoted: it may be a secret.
                text = "setting 'registry_headers': is name=value, separated by commas; a part has no name or no value"
                raise ConfigError(text, "registry_headers")
            headers[name.strip()] = value.strip()
        return headers

    def allowed_commands(self) -> frozenset[str]:
        """Returns the names of the commands that the process takes from a console; `*` stands for all of them."""
        said = self.console_commands
        if isinstance(said, str) and said.strip().lower() in WORDS_OF_BOOL:
            said = WORDS_OF_BOOL[said.strip().lower()]
        if isinstance(said, bool):
            return frozenset({"*"} if said else ())
        names = [each.strip() for each in (said.split(",") if isinstance(said, str) else said)]
        return frozenset(names)

    def for_engine(self, partitions_total: int = 0, members: int = 1) -> EngineSettings:
        """Returns the settings that reach the engine, for one of `members` group members of the process.

        `partitions_total` are the partitions of the topics of its routes.
        """
        return EngineSettings(
            commit_interval_s=self.commit_interval_s * COMMIT_SHARE,
            revoke_timeout_s=self.revoke_timeout_s,
            fetch_memory_bytes=self.fetch_memory_mb * 1024 * 1024 // members,
            partitions_total=partitions_total,
            transaction_interval_s=self.transaction_interval_s,
            transaction_records_max=self.transaction_records_max,
        )

    def __repr__(self) -> str:
        return shown_repr(self, self.__struct_fields__)

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return shown_fields(self, self.__struct_fields__)


class RunSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of `awoke run`, with their defaults."""

    log_format: Literal["console", "json"] = "console"
    """`console` writes lines for people, `json` one document a line."""
    log_level: str = "info"
    """The least level that is logged."""
    nodes: int | None = None
    """The number of processes of a swarm; None runs the app in a single process."""
    memory_limit: str | None = None
    """A node that uses more memory is replaced in order, as in `512M` or `512Mi`."""
    memory_hard_limit: str | None = None
    """A node that uses more memory is killed."""
    hang_after_s: float = 300.0
    """A node that works on one job for longer is replaced."""
    silent_after_s: float = 10.0
    """A node that gives no sign of life for this long is replaced."""
    drain_timeout_s: float = 35.0
    """A node that takes longer to stop is killed."""
    restarts_max: int = 5
    """More restarts than this for each node, within a minute, end the swarm."""
    restart_backoff_s: float = 1.0
    """The delay before the second restart in a row; it is doubled each time."""
    static_members: bool = True
    """True: each node keeps its name in the group, and so its partitions."""
    watch: bool = False
    """True: a changed file of the app is imported at once, in a swarm of one node where `nodes` is not set."""
    preload: bool | None = None
    """True: the nodes of a swarm are forked from one import of the app. False: each imports it. None: each imports it
    if the import starts threads that a fork would lose."""
    socket: str | None = None
    """The path of the UNIX socket for commands; None is a file of the user's, named after the app and its folder."""

    def __post_init__(self) -> None:
        if self.log_level.upper() not in logging.getLevelNamesMapping():
            text = f"setting 'log_level': {self.log_level!r} is none of debug, info, warning, error"
            raise ConfigError(text, "log_level")
        for name, least in (("nodes", 1), ("restarts_max", 0)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise ConfigError(f"setting {name!r}: must be at least {least}, not {value}", name)
        check_seconds(self)


class EngineSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of an app that reach the engine, as the engine's group member and transactions read them.

    Made by `Settings.for_engine`; the bridge reads the attributes by their names (`crates/bridge/src/settings.rs`).
    """

    commit_interval_s: float
    revoke_timeout_s: float
    fetch_memory_bytes: int
    partitions_total: int
    """The partitions of all topics of the app's routes, which share the fetch memory."""
    transaction_interval_s: float
    transaction_records_max: int


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
