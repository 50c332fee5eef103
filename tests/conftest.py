"""Brokers for the tests, topics and groups of their own, and a watch over what they leave behind."""

from __future__ import annotations

import compileall
import os
import random
import re
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from awoke.testing import EmbeddedRegistry
from awoke.testing.runs import CALLBACKS_S, OF_CALLBACKS
from tests.again import LONGEST, Again, seed_of_run
from tests.support.apicurio import JAVA_LEAST, Apicurio, newest_java
from tests.support.clusters import Cluster, MockCluster, RealCluster, unique
from tests.support.waiting import became

# Few examples, always the same; in a soak many, by chance: `AWOKE_FUZZ_EXAMPLES=1000000 pytest tests/security -k fuzz`.
EXAMPLES = int(os.environ.get("AWOKE_FUZZ_EXAMPLES", "0"))
settings.register_profile(
    "awoke",
    max_examples=EXAMPLES or 100,
    derandomize=not EXAMPLES,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
settings.load_profile("awoke")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options of this suite."""
    parser.addoption("--embedded-only", action="store_true", help="no test that needs Kafka outside of the process")
    parser.addoption("--again", action="store_true", help="run each test that failed again, alone: see tests/again.py")


IMPORTED_BY_PROCESSES = ("python/awoke", "tests/support", "tests/scenarios", "tests/history", "examples")


def pytest_configure(config: pytest.Config) -> None:
    """Prepares the run. Each worker is configured, too."""
    seed_of_run()
    if config.getoption("--again") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Again(config), "again")
    keep_bytecode(config)


def keep_bytecode(config: pytest.Config) -> None:
    """Has bytecode kept, also where `PYTHONDONTWRITEBYTECODE` says that nothing keeps it.

    The tests start hundreds of processes, each of which would compile the package. Each worker would rewrite the
    assertions of all tests: see `pytest_collection_finish`.
    """
    if not sys.dont_write_bytecode:
        return
    if not hasattr(config, "workerinput"):
        for folder in IMPORTED_BY_PROCESSES:
            compileall.compile_dir(Path(__file__).parents[1] / folder, quiet=2)
    config.stash[KEEPS_NO_BYTECODE] = True
    sys.dont_write_bytecode = False


KEEPS_NO_BYTECODE = pytest.StashKey[bool]()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Gives each test random numbers that the seed of the run and its name decide."""
    random.seed(f"{seed_of_run()} {item.nodeid}")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Goes back to what the environment says: a test may import a file, change it, and import it again."""
    if KEEPS_NO_BYTECODE in session.config.stash:
        sys.dont_write_bytecode = True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The longest files first, so that no worker ends long after the others. A worker takes a whole file."""
    if config.getoption("--embedded-only"):
        config.hook.pytest_deselected(items=[item for item in items if needs_kafka(item)])
        items[:] = [item for item in items if not needs_kafka(item)]
    lines = (config.rootpath / LONGEST).read_text().splitlines()
    places = {line.partition(" ")[2]: place for place, line in enumerate(lines)}
    items.sort(key=lambda item: places.get(item.nodeid.partition("::")[0], len(places)))


def needs_kafka(item: pytest.Item) -> bool:
    """Tells whether a test uses the broker of Apache Kafka, or a schema registry outside of the process."""
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    names = getattr(item, "fixturenames", ())
    is_outside = "apicurio" in names or parameters.get("registry_url") == "apicurio"
    place = parameters.get("place")  # Brokers and a kind of route, in `test_outputs`.
    is_real = parameters.get("cluster") == "real" or (isinstance(place, tuple) and place[:1] == ("real",))
    return "real_cluster" in names or is_real or is_outside


@pytest.fixture(scope="session")
def real_cluster() -> Iterator[RealCluster]:
    """One broker of Apache Kafka for the whole run."""
    cluster = RealCluster()
    yield cluster
    cluster.close()


@pytest.fixture(scope="session")
def apicurio() -> Iterator[Apicurio]:
    """One Apicurio Registry for the whole run. Skips its tests where no Java is new enough for it."""
    if newest_java() is None:
        pytest.skip(f"Apicurio needs Java {JAVA_LEAST} or later")
    with Apicurio() as started:
        yield started


@pytest.fixture(params=["embedded", "apicurio"])
def registry_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """Runs a test on the embedded schema registry and on Apicurio."""
    if request.param == "embedded":
        with EmbeddedRegistry() as embedded:
            yield embedded.url
        return
    started: Apicurio = request.getfixturevalue("apicurio")
    yield started.url


@pytest.fixture(scope="session")
def mock_cluster() -> Iterator[MockCluster]:
    """One embedded broker for the whole run."""
    cluster = MockCluster()
    yield cluster
    cluster.close()


@pytest.fixture(params=["mock", "real"])
def cluster(request: pytest.FixtureRequest) -> Cluster:
    """Both kinds of brokers, one after the other."""
    found: Cluster = request.getfixturevalue(f"{request.param}_cluster")
    return found


@pytest.fixture
def topic(cluster: Cluster) -> Callable[..., str]:
    """Creates topics that no other test has."""

    def create(word: str = "topic", partitions: int = 1) -> str:
        name = unique(word)
        cluster.create_topic(name, partitions)
        return name

    return create


@pytest.fixture(autouse=True)
def nothing_left_behind(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fails a test that leaves a thread of Python's or of librdkafka's behind."""
    for name in ("cluster", "real_cluster", "mock_cluster", "secure_broker"):
        if name in request.fixturenames:
            request.getfixturevalue(name)  # Its own threads are not the test's.
    before = {thread.ident for thread in threading.enumerate()}
    tasks_before = len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else None
    yield
    left = [thread.name for thread in threading.enumerate() if thread.ident not in before and not is_ending(thread)]
    assert not left, f"threads left behind: {left}"
    if tasks_before is not None:
        # The admins of both clusters may connect to a broker that they had not talked to yet.
        tasks = native_threads(at_most=tasks_before + 3)
        assert tasks <= tasks_before + 3, f"{tasks - tasks_before} native threads left behind"


OF_BROKERS = re.compile(r"kafka-\d+-log")
"""The names of the threads that read the logs of brokers: one that is started again has a new one."""


def is_ending(thread: threading.Thread) -> bool:
    """Tells whether a thread ends without the test: that of callbacks after the last one, for which it waits, and that
    of a broker's log with the broker, which may be the module's. Blocks."""
    if OF_BROKERS.fullmatch(thread.name):
        return True
    if thread.name == OF_CALLBACKS:
        thread.join(CALLBACKS_S)
    return not thread.is_alive()


def native_threads(at_most: int, within_s: float = 2.0) -> int:
    """Returns the number of tasks of the process. The kernel wakes a joining thread just before it removes the task."""
    became(lambda: len(os.listdir("/proc/self/task")) <= at_most, within_s, every_s=0.01)
    return len(os.listdir("/proc/self/task"))
