"""The options of a swarm, which the supervisor gets from the command line, and mold and nodes from the supervisor."""

from __future__ import annotations

import re
import sys
from typing import Any

import msgspec

from awoke.errors import ConfigError
from awoke.settings import RunSettings
from awoke.text.secrets import shown_fields, shown_repr

DEFAULTS = RunSettings()


class SwarmOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of one swarm. What each setting of `awoke run` means stands in `RunSettings`."""

    target: str
    """The app, as in `shop:app`."""
    nodes: int
    workers: int | None = None
    bootstrap_servers: str | None = None
    kafka: dict[str, str] = {}
    log_level: str = DEFAULTS.log_level
    log_format: str = DEFAULTS.log_format
    memory_soft_bytes: int | None = None
    """A node that uses more is replaced in order, one at a time."""
    memory_hard_bytes: int | None = None
    """A node that uses more is killed."""
    boot_timeout_s: float = 60.0
    """The longest time until a node has joined its group, and for the import of the app."""
    hang_after_s: float = DEFAULTS.hang_after_s
    silent_after_s: float = DEFAULTS.silent_after_s
    drain_timeout_s: float = DEFAULTS.drain_timeout_s
    restarts_max: int = DEFAULTS.restarts_max
    restart_backoff_s: float = DEFAULTS.restart_backoff_s
    heartbeat_s: float = 2.0
    """The time between two signs of life."""
    static_members: bool = DEFAULTS.static_members
    watch: bool = DEFAULTS.watch
    preload: bool | None = DEFAULTS.preload
    path: list[str] = []
    """The places where the supervisor's Python looks for modules. Empty: each process has its own."""
    arguments: list[str] = []
    """The supervisor's `sys.argv`, which the app's code may read."""
    socket: str
    """The path of the UNIX socket for commands."""
    name: str = ""
    """Tells this swarm apart from those of the same app on other machines: see `socket_paths.note_at`."""
    metrics_port: int | None = None
    metrics_host: str = "127.0.0.1"
    metrics_allowed_hosts: str = ""

    def __post_init__(self) -> None:
        if self.nodes < 1:
            raise ConfigError(f"--nodes must be at least 1, not {self.nodes}", "nodes")
        soft, hard = self.memory_soft_bytes, self.memory_hard_bytes
        if soft is not None and hard is not None and hard < soft:
            raise ConfigError("the hard memory limit must not be below the soft one", "memory_limit")

    def __repr__(self) -> str:
        return shown_repr(self, self.__struct_fields__)

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return shown_fields(self, self.__struct_fields__)


def interpreter_options() -> list[str]:
    """Returns the options that this process's interpreter was started with, for another process: `-O`, `-W`, `-X`."""
    flags = sys.flags
    repeated = {"-O": flags.optimize, "-b": flags.bytes_warning, "-v": flags.verbose, "-d": flags.debug}
    found = [name for name, count in repeated.items() for _ in range(count)]
    once = {"-B": flags.dont_write_bytecode, "-I": flags.isolated, "-S": flags.no_site}
    if not flags.isolated:
        once |= {"-E": flags.ignore_environment, "-s": flags.no_user_site, "-P": flags.safe_path}
    found += [name for name, is_set in once.items() if is_set]
    for warning in sys.warnoptions:
        found += ["-W", warning]
    for name, value in sys._xoptions.items():
        found += ["-X", name if value is True else f"{name}={value}"]
    return found


UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def bytes_of(text: str) -> int:
    """Returns a size such as `512M`, `512Mi` or `1.5G` in bytes. A unit is a power of 1,024, however it is written.

    Raises:
        ConfigError: The text is no size.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B?)", text.strip(), re.IGNORECASE | re.ASCII)
    size = 0 if match is None else int(float(match[1]) * UNITS[match[2].upper()])
    if size == 0:
        raise ConfigError(f"{text!r} is no size: 512M, 512Mi, 2G", "memory_limit")
    return size
