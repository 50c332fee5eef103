"""The time of awoke's clock where no client is loaded: real time, until a test takes the clock."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from awoke.testing import VirtualClock
from awoke.waiting.time import monotonic_s


def test_it_is_the_monotonic_clock_and_needs_no_native_module() -> None:
    program = (
        "import sys, awoke.waiting.time; awoke.waiting.time.monotonic_s(); assert 'awoke._native' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    before_s = time.monotonic()
    assert before_s <= monotonic_s() + 0.001


def test_it_stands_still_while_a_test_has_the_clock() -> None:
    with VirtualClock() as clock:
        before_s = monotonic_s()
        clock.advance(60)
        assert monotonic_s() - before_s == pytest.approx(60)
