"""Queries while partitions move between processes: each answer is right, and comes from the owner at that time."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator

import awoke
from awoke.rpc.errors import DeadlineExceeded, Restoring
from tests.support.clusters import RealCluster, unique
from tests.support.processes import Process
from tests.support.waiting import wait_until

PARTITIONS, KEYS, EACH = 6, 60, 20
ROWS = {f"{key}": EACH for key in range(KEYS)}


class Asking:
    """A thread that asks for all keys, again and again."""

    def __init__(self, table: awoke.Table) -> None:
        self._table, self._is_over = table, threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.owners: dict[int, str] = {}
        """The process that answered last, by partition."""
        self.rounds, self.wrong = 0, list[object]()

    def _run(self) -> None:
        while not self._is_over.is_set():
            for key in ROWS:
                try:
                    found = self._table.find(key)
                except (Restoring, DeadlineExceeded):
                    continue
                except awoke.AwokeError as error:
                    self.wrong.append(error)
                    continue
                self.owners[found.partition] = found.process
                if found.value != EACH or found.is_stale:
                    self.wrong.append((key, found))
            self.rounds += 1

    @contextlib.contextmanager
    def going_on(self) -> Iterator[None]:
        """Asks within the block."""
        self._thread.start()
        try:
            yield
        finally:
            self._is_over.set()
            self._thread.join()

    def wait_for_owners(self, are_there: Callable[[dict[str, int]], bool], what: str) -> None:
        """Waits until each partition has been answered for by the process that is to have it."""

        def is_so() -> bool:
            owners = list(self.owners.copy().values())
            return len(owners) == PARTITIONS and are_there({name: owners.count(name) for name in owners})

        wait_until(is_so, what, 90.0)


def test_each_answer_is_right_while_partitions_move(real_cluster: RealCluster) -> None:
    app, topic = unique("totals"), unique("counted")
    real_cluster.create_topic(topic, PARTITIONS)
    with awoke.Producer(real_cluster.bootstrap_servers) as producer:
        awoke.wait_all([producer.produce(topic, b"", key=key) for key in ROWS for _ in range(EACH)], 30)
    env = {"TOTALS_APP": app, "TOTALS_TOPIC": topic}
    arguments = ("run", "tests.scenarios.totals_app:app", "--bootstrap-servers", real_cluster.bootstrap_servers)
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(Process(*arguments, env=env))
        wait_until(lambda: sum(real_cluster.admin.group_offsets(app).values()) == KEYS * EACH, "all are counted", 60.0)
        table = stack.enter_context(
            awoke.Table(app, "totals", key=str, value=int, bootstrap_servers=real_cluster.bootstrap_servers)
        )
        asking = Asking(table)
        with asking.going_on():
            asking.wait_for_owners(lambda owners: list(owners.values()) == [PARTITIONS], "the first answers for all")
            second = stack.enter_context(Process(*arguments, env=env))
            asking.wait_for_owners(lambda owners: sorted(owners.values()) == [3, 3], "each answers for its half")
            assert {name.rpartition(".")[2] for name in asking.owners.values()} == {f"{first.pid}", f"{second.pid}"}
            first.signal(signal.SIGKILL)
            asking.wait_for_owners(
                lambda owners: {name.rpartition(".")[2] for name in owners} == {f"{second.pid}"}, "the second has all"
            )
        assert asking.wrong == []
        assert table.many(ROWS) == ROWS
        assert dict(table.scan()) == ROWS
