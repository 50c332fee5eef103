"""An app for a swarm: writes its processed messages down, and misbehaves where a message or the environment asks."""

from __future__ import annotations

import ctypes
import logging
import os
import subprocess
import threading
import time
from pathlib import Path

import awoke
from tests.support.waiting import hang, work_for

app = awoke.App(os.environ.get("SWARM_APP", "swarm"))
log = os.open(os.environ.get("SWARM_LOG", os.devnull), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
hoard: list[bytearray] = []
shared = bytearray(8 << 20)  # Loaded once, for all nodes.
code = Path(os.environ.get("SWARM_CODE", os.devnull)).read_text()
"""The behaviour of the code on disk, which a reload or another mold imports."""

if os.environ.get("SWARM_IMPORT") == "raise":
    raise RuntimeError("no good at all")
if code == "raise":
    raise RuntimeError("the code on disk is broken")
elif code == "slow":
    work_for(3.0)


@app.after_fork
def begin() -> None:
    """Crash, or take memory, where the environment or the code on disk says so."""
    if os.environ.get("SWARM_BOOT") == "crash":
        os._exit(9)
    if code == "fail":
        raise RuntimeError("the new code does not start")
    if code == "dawdle":
        work_for(2.0)
    if code == "exit":
        threading.Thread(target=exit_soon, name="exit-soon", daemon=True).start()
    hoard.append(bytearray(b"x") * (int(os.environ.get("SWARM_BALLAST_MB", "0")) << 20))


@app.on_startup
def start() -> None:
    """Say so."""
    logging.getLogger(__name__).info("a start-up function was called")


@app.on_shutdown
async def shut_down() -> None:
    """Say so."""
    logging.getLogger(__name__).info("a shutdown function was called")


@app.on(
    "there-is-no-such-topic" if code == "topic" else os.environ.get("SWARM_TOPIC", "none"),
    retry=awoke.Retry(backoff_s=(0.01, 0.1)),
)
def handle(message: awoke.Message[bytes]) -> None:
    """Write down which process did what, or do as the message says, the first time that it comes."""
    marker = os.environ.get("SWARM_LOG", "") + f".{message.partition}.{message.offset}"
    if message.value.startswith(b"do-") and not os.path.exists(marker):
        os.close(os.open(marker, os.O_CREAT | os.O_WRONLY))
        misbehave(message.value)
    work_for(float(os.environ.get("SWARM_WORK_S", "0")))
    os.write(log, b"%d %d %d %s\n" % (os.getpid(), message.partition, message.offset, message.value))


def exit_soon() -> None:
    """End the process when it has been up for a while."""
    work_for(3.0)
    os._exit(5)


def leak_on() -> None:
    """10 MB a second."""
    while True:
        work_for(0.1)
        hoard.append(bytearray(b"x") * (1 << 20))


def misbehave(how: bytes) -> None:
    """Hang with or without the GIL, leak, or die."""
    if how == b"do-hang":
        hang()
    elif how == b"do-wait":
        for _ in range(20):  # The clock goes on while the process is frozen, and a single wait would be over.
            work_for(0.3)
    elif how == b"do-hold-gil":
        ctypes.PyDLL(None).sleep(3_600)  # Native code that does not let go of it.
    elif how == b"do-busy":
        until_s = time.monotonic() + 15
        while time.monotonic() < until_s:
            pass
    elif how == b"do-leak":
        hoard.append(bytearray(os.urandom(1 << 20) * 80))
    elif how == b"do-leak-on":
        threading.Thread(target=leak_on, name="leak", daemon=True).start()
    elif how == b"do-spawn":
        child = subprocess.Popen(["sleep", "300"])
        with open(os.path.join(os.path.dirname(os.environ["SWARM_LOG"]), "child"), "w") as file:
            file.write(str(child.pid))
    elif how == b"do-die":
        os._exit(7)
