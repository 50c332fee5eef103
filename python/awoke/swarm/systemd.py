"""Messages to systemd, if it asks for them (`NOTIFY_SOCKET`, `WATCHDOG_USEC`)."""

from __future__ import annotations

import contextlib
import os
import socket
from enum import Enum, auto

from awoke.observe.web.deadlines import Deadline, Deadlines


class Timer(Enum):
    """The deadline of the next sign of life."""

    WATCHDOG = auto()


def notify(state: str) -> None:
    """Sends a state to systemd, if it listens: `READY=1`, `STOPPING=1`, `WATCHDOG=1`. Does not block."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    kind = socket.SOCK_DGRAM | socket.SOCK_NONBLOCK
    # systemd may have gone: the message is not important enough to fail then.
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, kind) as talk:
        talk.sendto(state.encode(), "\0" + address[1:] if address[0] == "@" else address)


def watch(deadlines: Deadlines) -> None:
    """Sends systemd a sign of life now and at each deadline, if it wants them."""
    every_s = watchdog_every_s()

    def tell() -> None:
        if every_s is not None:
            notify("WATCHDOG=1")
            deadlines.set(Deadline(Timer.WATCHDOG), every_s, tell)

    tell()


def watchdog_every_s() -> float | None:
    """Returns the interval of signs of life, half of the limit that systemd sets; `None` if it wants none."""
    allowed = os.environ.get("WATCHDOG_USEC", "")
    is_ours = os.environ.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
    return int(allowed) / 2e6 if allowed.isdecimal() and int(allowed) > 0 and is_ours else None
