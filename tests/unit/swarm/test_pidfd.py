"""Processes by their descriptors."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from awoke.swarm.pidfd import Pidfd

ORPHAN = """
import os
import select
import signal
import socket

from awoke.swarm import linux
from awoke.swarm.pidfd import Pidfd

linux.become_subreaper()
heard, hearing = socket.socketpair()
hearing.setblocking(False)
signal.signal(signal.SIGCHLD, lambda *_: None)
signal.set_wakeup_fd(hearing.fileno())
told, telling = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
may_end, let_end = os.pipe()
mold_ends, end_mold = os.pipe()
if os.fork() == 0:  # The mold.
    signal.set_wakeup_fd(-1)
    os.close(end_mold)
    if os.fork() == 0:  # The process between mold and node.
        os.close(let_end)
        node = os.fork()
        if node == 0:
            os._exit(7)
        telling.send(str(node).encode())
        os.read(may_end, 1)
        os._exit(0)
    os.close(let_end)
    os.wait()
    os.read(mold_ends, 1)
    os._exit(0)
process = Pidfd.open(int(told.recv(100)))
select.select([process], [], [])
assert process.reap() is None, "its parent lives"
os.close(let_end)
assert heard.recv(1) == bytes([signal.SIGCHLD])
assert process.reap() == 7
os.close(end_mold)
os.wait()

"""
"""A supervisor whose node ends before the process between it and its mold does."""


def test_a_pidfd_signals_and_reaps_its_process_and_no_other() -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    process = Pidfd.open(child.pid)
    assert process.is_alive()
    assert process.reap() is None
    assert process.send(signal.SIGKILL)
    while process.reap() is None:
        pass
    assert process.reap() == -signal.SIGKILL
    assert not process.send(signal.SIGTERM), "its number may be another process's now"
    assert not process.is_alive()
    child.returncode = -signal.SIGKILL  # It has been waited for.
    process.close()
    process.close()
    with pytest.raises(ProcessLookupError):
        Pidfd.open(child.pid)


def test_a_process_that_is_not_a_child_is_not_reaped() -> None:
    process = Pidfd.open(os.getppid())
    assert process.reap() is None
    process.close()


def test_a_node_that_ends_before_its_parent_is_reaped_when_the_system_says_so() -> None:
    subprocess.run([sys.executable, "-c", ORPHAN], check=True, timeout=60)
