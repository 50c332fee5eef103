"""Runs each test that failed again, alone: `pytest --again`, as `make test-python` does.

A test that then passes is flaky: the run is green, and its last lines name the test. It stays red where more than
`FLAKY_MAX` tests failed, or where a test is flaky for the second time in a row. The logs of both attempts are kept.
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Generator, Iterable
from pathlib import Path

import pytest
from _pytest.terminal import TerminalReporter

LOGS = Path("target/test-logs")
LONGEST = Path("tests/longest.txt")
"""The files that take longest, with their seconds: they begin first. A run writes its own list below `LOGS`."""
LONG_S = 4.0
FLAKY_MAX = 5
SEED = "TESTS_SEED"
"""The variable of the environment with the seed of a run, which its workers and the second attempt also have."""
BY_TEST = re.compile(r"\bseed[ =:]+(\d+)")
"""A seed that a test has printed: it tells more than that of the run."""
ALONE_WITHIN_S = 900.0
BAD = ("failed", "error")


def seed_of_run() -> str:
    """Returns the seed of this run, and draws it where the environment has none."""
    return os.environ.setdefault(SEED, str(random.SystemRandom().randrange(2**32)))


class Again:
    """The second attempts of one run. A plugin of the process that starts the workers."""

    def __init__(self, config: pytest.Config) -> None:
        self._root = config.rootpath
        self._plugins = config.pluginmanager
        self._known = self._root / LOGS / "flaky.json"
        self._ran = set[str]()
        self._told = list[str]()
        self._took_s = defaultdict[str, float](float)
        """By file."""

    @property
    def _reporter(self) -> TerminalReporter:
        found: TerminalReporter = self._plugins.getplugin("terminalreporter")
        return found

    def pytest_report_header(self) -> str:
        """Says how the same choices are made again."""
        return f"seed: {SEED}={seed_of_run()}"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Notes each test that ran, and the time that it took."""
        self._ran.add(report.nodeid)
        self._took_s[report.nodeid.partition("::")[0]] += report.duration

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> Generator[None, object, object]:
        """Runs the failed tests again, after all workers have ended and before pytest prints what failed."""
        result = yield
        (self._root / LOGS).mkdir(parents=True, exist_ok=True)
        longest = sorted(((took_s, file) for file, took_s in self._took_s.items() if took_s >= LONG_S), reverse=True)
        (self._root / LOGS / LONGEST.name).write_text("".join(f"{took_s:.0f} {file}\n" for took_s, file in longest))
        if exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) and self._settle():
            session.exitstatus = pytest.ExitCode.OK
        return result

    def pytest_unconfigure(self) -> None:
        """Prints what was found below the line with the numbers."""
        for line in self._told:
            self._reporter.write_line(line)

    def _settle(self) -> bool:
        """Runs the failed tests again and returns whether the run is green."""
        stats = self._reporter.stats
        failed = dict.fromkeys(report.nodeid for kind in BAD for report in stats.get(kind, ()))
        before = set(json.loads(self._known.read_text())) if self._known.exists() else set[str]()
        if len(failed) > FLAKY_MAX:
            self._told.append(f"{len(failed)} tests failed, more than {FLAKY_MAX}: none was run again")
            return False
        if not failed and not before:
            return True
        flaky = [name for name in failed if self._passes_alone(name)]
        self._known.write_text(json.dumps(sorted((before - self._ran).union(flaky)), indent=1))
        is_green = len(flaky) == len(failed)
        for name in flaky:
            is_first = name not in before
            is_green &= is_first
            self._told.append(f"{'FLAKY' if is_first else 'FLAKY AGAIN'}: {name} ({self._seed(name)}, {log_of(name)})")
            if is_first:
                self._acquit(name)
        return is_green

    def _passes_alone(self, name: str) -> bool:
        """Runs a test in a process of its own, keeps both logs, and returns whether it passed. Blocks."""
        (self._root / log_of(name)).write_text(self._first_attempt(name))
        self._reporter.write_line(f"again, alone: {name}")
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", "0", "-m", "", name]
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_XDIST")}
        with (self._root / log_of(name, "again")).open("w") as output:
            try:
                done = subprocess.run(
                    command,
                    cwd=self._root,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    timeout=ALONE_WITHIN_S,
                )
            except subprocess.TimeoutExpired:
                return False
        return done.returncode == 0

    def _reports_of(self, name: str) -> Iterable[pytest.TestReport]:
        return [each for kind in BAD for each in self._reporter.stats.get(kind, ()) if each.nodeid == name]

    def _first_attempt(self, name: str) -> str:
        """Returns what pytest would have printed of the failure."""
        parts = [f"{name}\n{SEED}={seed_of_run()}\n"]
        for report in self._reports_of(name):
            parts.append(f"---- {report.when or 'collection'} ----\n{report.longreprtext}\n")
            parts += [f"---- {title} ----\n{text}\n" for title, text in report.sections]
        return "\n".join(parts)

    def _seed(self, name: str) -> str:
        found = BY_TEST.search((self._root / log_of(name)).read_text())
        return f"seed {found[1]}" if found else f"{SEED}={seed_of_run()}"

    def _acquit(self, name: str) -> None:
        """Counts a test as flaky, not as failed."""
        reports = list(self._reports_of(name))
        for kind in BAD:
            self._reporter.stats[kind] = [each for each in self._reporter.stats.get(kind, ()) if each.nodeid != name]
            if not self._reporter.stats[kind]:
                del self._reporter.stats[kind]
        self._reporter.stats.setdefault("flaky", []).append(reports[0])


def log_of(name: str, attempt: str = "first") -> Path:
    """Returns the file, below the repository, with what an attempt of a test has printed."""
    return LOGS / f"{re.sub(r'[^A-Za-z0-9.]+', '_', name.removeprefix('tests/'))[-150:]}.{attempt}.log"
