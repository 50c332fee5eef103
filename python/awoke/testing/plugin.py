"""The pytest plugin: fixtures for tests of apps.

Each run of pytest in an environment with awoke imports this file. It imports the rest when a fixture is used.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from awoke.testing.clock import VirtualClock
    from awoke.testing.cluster import TestCluster
    from awoke.testing.faults import Faults
    from awoke.testing.runs import Runs
    from awoke.testing.service import TestService

REST_TIMEOUT_S = 10.0
"""The time in which apps come to rest while the clock stands still, in seconds of real time."""

PATIENCE_S = 30.0
"""The longest time for which a test waits for a message that may never come, in seconds of real time."""

RUNS = pytest.StashKey["Runs"]()
"""The apps that run beside a test."""

FAULTS = pytest.StashKey["Faults"]()
"""The faults of a test."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options of this plugin."""
    group = parser.getgroup("awoke")
    group.addoption("--awoke-brokers", metavar="HOST:PORT", help="run the tests of awoke's fixtures on these brokers")
    group.addoption("--awoke-seed", metavar="N", type=int, help="the seed of what awoke's fixtures draw by chance")
    text = "record the topics that apps of awoke_run read, each test in a folder of its own, for `awoke replay`"
    group.addoption("--awoke-record", metavar="FOLDER", type=Path, help=text)


def pytest_configure(config: pytest.Config) -> None:
    """Registers the marks of this plugin."""
    config.addinivalue_line("markers", "awoke_kafka: runs on Apache Kafka only (--awoke-brokers), else it is skipped")
    config.addinivalue_line("markers", "awoke_embedded: runs on embedded brokers, whatever --awoke-brokers says")


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Returns the options that were given, for the head of the report."""
    options = {name: config.getoption(f"--awoke-{name}") for name in ("brokers", "seed", "record")}
    given = [f"{name} {value}" for name, value in options.items() if value is not None]
    return [f"awoke: {', '.join(given)}"] if given else []


@pytest.fixture
def awoke_cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestCluster]:
    """Brokers of this test: topics of other tests are not on them."""
    from awoke.testing.cluster import EmbeddedTestCluster, OutsideTestCluster

    brokers: str | None = request.config.getoption("--awoke-brokers")
    if brokers is None and request.node.get_closest_marker("awoke_kafka") is not None:
        pytest.skip("needs Apache Kafka: --awoke-brokers HOST:PORT")
    cluster: TestCluster
    if brokers is None or request.node.get_closest_marker("awoke_embedded") is not None:
        cluster = EmbeddedTestCluster()
    else:  # The workers of xdist have folders of their own in one that they share.
        cluster = OutsideTestCluster(brokers, tmp_path_factory.getbasetemp().parent / "awoke-brokers.lock")
    yield cluster
    cluster.close()


@pytest.fixture
def awoke_run(request: pytest.FixtureRequest, awoke_cluster: TestCluster) -> Iterator[Runs]:
    """Runs apps on the brokers of this test: `awoke_run(app)` returns a probe.

    When the test has ended, its apps stop in reverse order. A failure that it did not look at, a message that was lost
    or repeated, a thread and a client that it left behind fail it.
    """
    from awoke.testing.runs import Runs

    runs = Runs(awoke_cluster)
    request.node.stash[RUNS] = runs
    yield runs
    runs.finish()


@pytest.fixture
def awoke_clock(request: pytest.FixtureRequest) -> Iterator[VirtualClock]:
    """awoke's clock stands still until the test moves it: see `VirtualClock`.

    Before each step, the messages that the brokers have come to the apps of this test.
    """
    from awoke.testing.clock import VirtualClock

    def at_rest() -> None:
        runs = request.node.stash.get(RUNS, None)
        if runs is not None:
            runs.wait_idle(REST_TIMEOUT_S, at_rest=True)

    with VirtualClock(at_rest=at_rest) as clock:
        yield clock


@pytest.fixture
def awoke_service(awoke_run: Runs) -> Callable[..., TestService]:
    """Runs services that answer with functions of the test: `awoke_service("payments", charge=lambda amount: True)`.

    The returned service records its calls.
    """
    from awoke.testing.service import TestService

    return lambda name, /, **functions: TestService(name, functions, awoke_run)


@pytest.fixture
def awoke_call() -> Callable[..., Any]:
    """Calls one handler, or one method, without brokers: `awoke.testing.call`."""
    from awoke.testing.calls import call

    return call


@pytest.fixture
def awoke_faults(request: pytest.FixtureRequest, awoke_cluster: TestCluster) -> Iterator[Faults]:
    """Faults of the embedded brokers of this test. One that was asked for and has not happened fails the test."""
    from awoke.testing.faults import Faults

    if awoke_cluster.embedded is None:
        pytest.skip("faults need embedded brokers: no --awoke-brokers, or the mark awoke_embedded")
    faults = Faults(awoke_cluster.embedded, request.config.getoption("--awoke-seed"))
    request.node.stash[FAULTS] = faults
    yield faults
    faults.check()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds the faults of a test, with their seed, to the report of its failure."""
    report = yield
    faults = item.stash.get(FAULTS, None)
    if faults is not None and report.failed:
        report.sections.append(("awoke faults", faults.report()))
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Limits the waits of a test, and stops its apps after its function, so that their problems fail the test."""
    from awoke.waiting import time

    before, time.patience = time.patience, time.Patience(threading.get_ident(), PATIENCE_S)
    try:
        return (yield from _run(item))
    finally:
        time.patience = before


def _run(item: pytest.Item) -> Generator[None, object, object]:
    runs = item.stash.get(RUNS, None)
    if runs is None:
        return (yield)
    runs.begin()
    try:
        result = yield
    except BaseException as error:
        for problem in finish(item, runs):
            error.add_note(problem)
        raise
    problems = finish(item, runs)
    if problems:
        pytest.fail("\n\n".join(problems), pytrace=False)
    return result


def finish(item: pytest.Item, runs: Runs) -> list[str]:
    """Records the topics of a test, if that is asked for, and stops its apps. Returns its problems as texts. Blocks."""
    folder: Path | None = item.config.getoption("--awoke-record")
    if folder is None:
        return runs.finish()
    problems = runs.record(folder / re.sub(r"[^\w.-]+", "-", item.nodeid).strip("-"))
    return problems + runs.finish()
