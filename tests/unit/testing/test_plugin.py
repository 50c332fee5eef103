"""The pytest plugin: what it imports, its options, marks and workers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.inner_tests import inner

pytest_plugins = ["pytester"]


def test_a_run_of_pytest_without_the_fixtures_loads_no_client(tmp_path: Path) -> None:
    program = (
        "import sys, pytest\n"
        "pytest.main(['--fixtures', '-q', '-p', 'no:hypothesispytest'])\n"
        "print('loaded', sorted(name for name in sys.modules if name.startswith('awoke.')))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.splitlines()[-1] == (
        "loaded ['awoke.preconditions', 'awoke.preconditions.installation', 'awoke.testing', 'awoke.testing.plugin']"
    )


def test_time_moves_when_the_messages_have_come(pytester: pytest.Pytester) -> None:
    test = """
def test_order(awoke_clock, awoke_run):
    app = awoke.App("shop")

    @app.on("orders", retry=awoke.Retry(attempts=7, backoff_s=(60, 3_600), jitter=0.0), dead_letter="orders.dead")
    def charge(message):
        tried_s.append(round(awoke_clock.now_s))
        raise ValueError("no card")

    tried_s = []
    probe = awoke_run(app)
    probe.send("orders", b"first")
    awoke_clock.run_until_idle()
    assert tried_s == [0, 60, 180, 420, 900, 1860, 3780]
    assert len(probe.failures) == 7
    assert len(probe.dead_letters) == 1
"""
    inner(pytester, test).assert_outcomes(passed=1)


PAGE = Path(__file__).resolve().parents[3] / "docs" / "testing.md"


TESTS_OF_THE_PAGE = [code for code in PAGE.read_text().split("```python\n")[1:] if "def test_" in code]


def test_the_tests_in_the_documentation_pass(pytester: pytest.Pytester) -> None:
    for number, code in enumerate(TESTS_OF_THE_PAGE):
        pytester.makepyfile(**{f"test_{number}": code.partition("```")[0]})
    inner(pytester, "").assert_outcomes(passed=len(TESTS_OF_THE_PAGE))
    assert len(TESTS_OF_THE_PAGE) >= 3


def test_options_stand_in_the_head_of_the_report(pytester: pytest.Pytester) -> None:
    result = inner(pytester, "def test_nothing(): pass", "--awoke-seed=7")
    result.stdout.fnmatch_lines(["awoke: seed 7"])


def test_a_test_for_kafka_is_skipped_without_it(pytester: pytest.Pytester) -> None:
    test = """
@pytest.mark.awoke_kafka
def test_order(awoke_run): ...
"""
    inner(pytester, test, "--strict-markers").assert_outcomes(skipped=1)


def test_workers_of_xdist_run_side_by_side(pytester: pytest.Pytester) -> None:
    test = """
@pytest.mark.parametrize("word", [b"one", b"two"])
def test_order(awoke_run, word):
    probe = awoke_run(shop())
    assert probe.send("orders", word).offset == 0
    probe.idle()
"""
    inner(pytester, test, "-n2", "-p", "no:hypothesispytest").assert_outcomes(passed=2)
