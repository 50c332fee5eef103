"""A test that failed is run again alone, and told; a run of `pytest --again` within the test."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.again import FLAKY_MAX, LOGS

pytest_plugins = ["pytester"]

PLUGIN = """
from tests.again import Again

def pytest_addoption(parser):
    parser.addoption("--again", action="store_true")

def pytest_configure(config):
    if config.getoption("--again") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Again(config), "again")
"""
PASSES = "def test_good(): pass\n"
FAILS_ONCE = """
import pathlib

def test_flaky(tmp_path_factory):
    print("said before the end, with seed 42")
    mark = pathlib.Path("mark")
    if not mark.exists():
        mark.touch()
        raise ValueError("the first attempt")
"""
FAILS = "def test_bad(): raise ValueError('always')\n"
FAILS_AT_ITS_END_ONCE = """
import pathlib, pytest

@pytest.fixture
def watched():
    yield
    mark = pathlib.Path("mark of the end")
    if not mark.exists():
        mark.touch()
        raise ValueError("left behind")

def test_flaky(watched): pass
"""


@pytest.fixture
def inner(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_PLUGINS", "xdist.plugin")
    pytester.makeconftest(PLUGIN)
    pytester.makeini("[pytest]")
    return pytester


def run(inner: pytest.Pytester, *options: str) -> pytest.RunResult:
    return inner.runpytest_subprocess("--again", *options)


def last_lines(result: pytest.RunResult, count: int) -> list[str]:
    return [re.sub(r" in [0-9.]+s", "", line).strip("= ") for line in result.outlines[-count:]]


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_test_that_passes_alone_is_told_and_the_run_is_green(inner: pytest.Pytester, workers: str) -> None:
    inner.makepyfile(PASSES + FAILS_ONCE)
    name = "test_a_test_that_passes_alone_is_told_and_the_run_is_green.py::test_flaky"
    result = run(inner, "-n", workers)
    assert result.ret == pytest.ExitCode.OK, result.stdout.str()
    log = next((inner.path / LOGS).glob("*.first.log"))
    assert last_lines(result, 2) == [
        "1 passed, 1 flaky",
        f"FLAKY: {name} (seed 42, {log.relative_to(inner.path)})",
    ]
    assert "ValueError: the first attempt" in log.read_text()
    assert "said before the end" in log.read_text()
    assert "1 passed" in next((inner.path / LOGS).glob("*.again.log")).read_text()


def test_a_test_that_failed_only_at_its_end_is_flaky_too(inner: pytest.Pytester) -> None:
    inner.makepyfile(FAILS_AT_ITS_END_ONCE)
    result = run(inner)
    assert result.ret == pytest.ExitCode.OK
    assert last_lines(result, 1)[0].startswith("FLAKY: ")


def test_a_test_that_fails_twice_is_red_beside_a_flaky_one(inner: pytest.Pytester) -> None:
    inner.makepyfile(FAILS + FAILS_ONCE)
    result = run(inner)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert last_lines(result, 2)[0] == "1 failed, 1 flaky"
    result.stdout.fnmatch_lines(["*ValueError: always*"])
    assert len(list((inner.path / LOGS).glob("*_bad.*.log"))) == 2


def test_the_same_flaky_test_in_two_runs_is_red(inner: pytest.Pytester) -> None:
    inner.makepyfile(FAILS_ONCE)
    assert run(inner).ret == pytest.ExitCode.OK
    Path(inner.path / "mark").unlink()
    result = run(inner)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert last_lines(result, 1)[0].startswith("FLAKY AGAIN: ")
    assert run(inner).ret == pytest.ExitCode.OK, "it has passed"
    Path(inner.path / "mark").unlink()
    assert run(inner).ret == pytest.ExitCode.OK, "the run before had no flaky test"


def test_many_failures_are_not_run_again(inner: pytest.Pytester) -> None:
    count = FLAKY_MAX + 1
    inner.makepyfile("".join(FAILS.replace("bad", f"bad_{number}") for number in range(count)))
    result = run(inner)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert last_lines(result, 1) == [f"{count} tests failed, more than {FLAKY_MAX}: none was run again"]


def test_a_file_that_can_not_be_collected_is_red(inner: pytest.Pytester) -> None:
    inner.makepyfile("import nothing_of_this_name")
    assert run(inner).ret == pytest.ExitCode.INTERRUPTED


def test_a_worker_that_dies_is_red_unless_its_test_passes_alone(inner: pytest.Pytester) -> None:
    inner.makepyfile(FAILS_ONCE.replace('raise ValueError("the first attempt")', "import os; os._exit(3)"))
    result = run(inner, "-n", "1")
    assert result.ret == pytest.ExitCode.OK
    assert last_lines(result, 1)[0].startswith("FLAKY: ")
