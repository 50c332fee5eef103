"""Runs tests within a test, in this process: for tests of the pytest plugin."""

from __future__ import annotations

import pytest

import awoke.rpc.caller.caller
import awoke.testing.clock
import awoke.testing.runs
import awoke.testing.service

IMPORTED = (awoke.rpc.caller.caller, awoke.testing.clock, awoke.testing.runs, awoke.testing.service)
"""Modules that inner tests need: pytester forgets those that an inner test imports first, and the native one can't be
imported twice."""


APP = """
import threading
import awoke
import pytest

def shop():
    app = awoke.App("shop")

    retry = awoke.Retry(attempts=2, backoff_s=(0.001, 0.001))

    @app.on("orders", output="bills", retry=retry, dead_letter="orders.dead")
    def charge(message):
        if message.value == b"bad":
            raise ValueError("no card")
        return message.value.upper()

    return app
"""


def inner(pytester: pytest.Pytester, test: str, *options: str) -> pytest.RunResult:
    """Runs a test within the test."""
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\nfilterwarnings = error")
    pytester.makepyfile(APP + test)
    return pytester.runpytest_inprocess("-p", "no:cacheprovider", *options)
