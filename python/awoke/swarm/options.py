"""What a swarm is told: by the command line to its supervisor, by that to the mold and its nodes."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from awoke.errors import ConfigError
from awoke.secrets import shown_fields, shown_repr


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Of one swarm."""

    target: str
    """The app, as in `shop:app`."""
    nodes: int
    workers: int | None = None
    bootstrap_servers: str | None = None
    kafka: dict[str, str] = {}
    log_level: str = "info"
    log_format: str = "text"
    memory_soft_bytes: int | None = None
    """A node that has more is replaced, in order, one at a time."""
    memory_hard_bytes: int | None = None
    """A node that has more is killed."""
    boot_timeout_s: float = 60.0
    """How long a node may take until it has joined its group, and the app's import."""
    hang_after_s: float = 300.0
    """A job that runs longer makes its node be replaced."""
    silent_after_s: float = 10.0
    """A node that gives no sign of life for so long is replaced: it was stopped, or the machine has no time for it."""
    drain_timeout_s: float = 35.0
    """How long a node may take to stop."""
    restarts_max: int = 5
    """More restarts in a minute end the swarm."""
    restart_backoff_s: float = 1.0
    """Before the second restart in a row; doubled each time, up to a minute."""
    heartbeat_s: float = 2.0
    static_members: bool = True
    """Whether each node has a name of its own in the group, so that its restart makes no rebalance."""
    socket: str
    """Where `awoke status` and its like ask."""
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


UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def bytes_of(text: str) -> int:
    """A size as people write it: `512M`, `2G`.

    Raises:
        ConfigError: it is none.
    """
    match = re.fullmatch(r"(\d+)\s*([KMG]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if match is None or int(match[1]) == 0:
        raise ConfigError(f"{text!r} is no size: 512M, 2G", "memory_limit")
    return int(match[1]) * UNITS[match[2].upper()]


def own_folder() -> Path:
    """Returns this user's folder in the system's folder for temporary files, where every user may make files."""
    return Path(tempfile.gettempdir()) / f"awoke-{os.getuid()}"


def socket_path(name: str) -> str:
    """Where the swarm of this target listens, of this user, where nothing else is said."""
    folder = Path(os.environ.get("XDG_RUNTIME_DIR") or own_folder())
    return str(folder / f"awoke-{re.sub(r'[^A-Za-z0-9_.-]', '-', name)}.sock")
