"""The functions of Linux that a swarm needs."""

from __future__ import annotations

import os

from awoke.swarm import linux


def test_what_linux_says_of_a_process() -> None:
    linux.check_system()
    assert linux.tasks()
    assert linux.resident_bytes(os.getpid()) > linux.proportional_bytes(os.getpid()) // 2 > 0
    assert linux.resident_bytes(1 << 22) == linux.proportional_bytes(1 << 22) == 0
