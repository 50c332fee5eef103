"""The pytest plugin: what it imports, what its fixtures do, and what fails a test.

The inner tests run in this process. All modules that they need are imported here: pytester forgets those that an inner
test imports first.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import awoke
import awoke.testing.runs

pytest_plugins = ["pytester"]

APP = """
import threading
import awoke
import pytest

def shop():
    app = awoke.App("shop")

    @app.on("orders", output="bills", retry=awoke.Retry(attempts=2, backoff_s=(0.001, 0.001)), dead_letter="orders.dead")
    def charge(message):
        if message.value == b"bad":
            raise ValueError("no card")
        return message.value.upper()

    return app
"""


def inner(pytester: pytest.Pytester, test: str, *options: str) -> pytest.RunResult:
    """Runs a test within the test."""
    pytester.makepyfile(APP + test)
    return pytester.runpytest_inprocess("-p", "no:cacheprovider", *options)


def test_a_run_of_pytest_without_the_fixtures_loads_no_client(tmp_path: Path) -> None:
    program = (
        "import sys, pytest\n"
        "pytest.main(['--fixtures', '-q'])\n"
        "print('loaded', sorted(name for name in sys.modules if name.startswith('awoke.')))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.splitlines()[-1] == ("loaded ['awoke._installation', 'awoke.testing', 'awoke.testing.plugin']")


def test_a_test_sends_waits_and_reads_what_came_of_it(pytester: pytest.Pytester) -> None:
    test = """
def test_order(awoke_run):
    probe = awoke_run(shop())
    probe.send("orders", b"first", key=b"k")
    probe.idle()
    assert [each.value for each in probe.sent("bills", 1)] == [b"FIRST"]
    assert probe.commits[-1].offset == 1
    [call] = probe.calls
    assert (call.key, call.value, call.has_failed) == (b"k", b"first", False)
"""
    inner(pytester, test).assert_outcomes(passed=1)


def test_every_test_has_brokers_of_its_own(pytester: pytest.Pytester) -> None:
    test = """
@pytest.mark.parametrize("word", [b"one", b"two"])
def test_order(awoke_run, word):
    probe = awoke_run(shop())
    assert probe.send("orders", word).offset == 0
    probe.idle()
    assert [each.value for each in probe.sent("bills")] == [word.upper()]
"""
    inner(pytester, test).assert_outcomes(passed=2)


def test_a_failure_that_a_test_did_not_look_at_fails_it_with_its_traceback(pytester: pytest.Pytester) -> None:
    test = """
def test_order(awoke_run):
    probe = awoke_run(shop())
    probe.send("orders", b"bad")
    probe.idle()
"""
    result = inner(pytester, test)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*job.failed: shop.<locals>.charge at orders?0? offset 0, attempt 1*", "*ValueError: no card*"])


def test_a_failure_that_a_test_expects_does_not_fail_it(pytester: pytest.Pytester) -> None:
    test = """
def test_order(awoke_run):
    probe = awoke_run(shop())
    probe.send("orders", b"bad")
    probe.idle()
    assert [type(each.error) for each in probe.failures] == [ValueError, ValueError]
    assert [each.attempt for each in probe.retries] == [1]
    assert [(each.topic, each.offset) for each in probe.dead_letters] == [("orders", 0)]
    assert len(probe.sent("orders.dead", 1)) == 1
"""
    inner(pytester, test).assert_outcomes(passed=1)
