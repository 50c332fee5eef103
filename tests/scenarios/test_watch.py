"""`awoke run --watch`: a saved file is new code, a broken one changes nothing, and no message is lost or repeated."""

from __future__ import annotations

import os
import signal
import threading
from collections import defaultdict
from pathlib import Path

import awoke
from tests.support.clusters import Cluster, MockCluster, RealCluster, unique
from tests.support.line_files import whole_lines
from tests.support.processes import Process
from tests.support.waiting import wait_until

CODE = """
import os
import awoke

LOG = os.open("done", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
app = awoke.App(os.environ["TOPIC"])

@app.on(os.environ["TOPIC"])
def {handler}(message):
    os.write(LOG, f"{version} {{message.partition}} {{message.offset}} {{os.getpid()}}\\n".encode())
"""
BROKEN = "import awoke\n\nthis_name_does_not_exist_yet()\n"


class Project:
    """A folder with an app that writes down what it has processed, and a process that watches it."""

    def __init__(self, folder: Path, cluster: Cluster, partitions: int) -> None:
        self.folder, self.cluster, self.partitions, self.topic = folder, cluster, partitions, unique("watched")
        self.sent = 0
        cluster.create_topic(self.topic, partitions)

    def save(self, version: str, handler: str = "handle") -> None:
        (self.folder / "shop.py").write_text(CODE.format(version=version, handler=handler))

    def run(self, *options: str) -> Process:
        socket = str(self.folder / "socket")
        arguments = ("run", "shop:app", "--watch", "--socket", socket, "-b", self.cluster.bootstrap_servers, *options)
        return Process(*arguments, env={"TOPIC": self.topic}, cwd=self.folder)

    def send(self, count: int) -> None:
        with awoke.Producer(self.cluster.bootstrap_servers) as producer:
            for _ in range(count):
                producer.produce(self.topic, b"x", partition=self.sent % self.partitions)
                self.sent += 1

    def done(self) -> list[tuple[str, int, int, int]]:
        """The version, the partition, the offset and the process of each message that was processed, in order."""
        file = self.folder / "done"
        words = [line.split() for line in (whole_lines(file) if file.exists() else [])]
        return [(each[0], int(each[1]), int(each[2]), int(each[3])) for each in words]

    def wait_for_all(self) -> None:
        wait_until(lambda: len(self.done()) >= self.sent, f"{self.sent} messages", 60, every_s=0.02)

    def check(self) -> None:
        """Each message was processed once, in the order of its partition."""
        offsets = defaultdict(list)
        for _, partition, offset, _ in self.done():
            offsets[partition].append(offset)
        assert sum(map(len, offsets.values())) == self.sent
        assert all(found == list(range(len(found))) for found in offsets.values())


def test_a_saved_file_is_new_code_and_a_broken_one_changes_nothing(mock_cluster: MockCluster, tmp_path: Path) -> None:
    project = Project(tmp_path, mock_cluster, 2)
    project.save("v1")
    with project.run() as process:
        process.wait_for("watching")
        project.send(10)
        project.wait_for_all()
        (tmp_path / "shop.py").write_text(BROKEN)
        process.wait_for("the swarm goes on with the old code")
        assert "line 3, in <module>" in process.output
        project.send(10)
        project.wait_for_all()
        project.save("version2", handler="renamed")
        process.wait_for("the new code runs")
        project.send(10)
        project.wait_for_all()
        process.signal(signal.SIGTERM)
        assert process.wait() == 0
    assert [each[0] for each in project.done()] == ["v1"] * 20 + ["version2"] * 10
    project.check()


WAITS = """
import pathlib
print("importing", flush=True)
pathlib.Path("gate").read_bytes()
"""


def test_a_file_that_is_saved_before_there_are_nodes_is_reloaded(mock_cluster: MockCluster, tmp_path: Path) -> None:
    """The first import has read the old code, and goes on only after the save was seen."""
    project = Project(tmp_path, mock_cluster, 1)
    project.save("v1")
    file = tmp_path / "shop.py"
    file.write_text(file.read_text() + WAITS)
    os.mkfifo(tmp_path / "gate")
    with project.run() as process:
        process.wait_for("importing")

        def is_seen() -> bool:
            project.save("version2")  # Again if the library was not ready: it does not tell when it is.
            return process.says("changed: shop.py", 5)

        wait_until(is_seen, "a change that was seen", 60)
        (tmp_path / "gate").write_bytes(b"")
        process.wait_for("the new code runs")
        project.send(10)
        project.wait_for_all()
        process.signal(signal.SIGTERM)
        assert process.wait() == 0
    assert [each[0] for each in project.done()] == ["version2"] * 10
    project.check()


def test_four_nodes_under_load_lose_and_repeat_nothing_and_keep_their_partitions(
    real_cluster: RealCluster, tmp_path: Path
) -> None:
    project, stop = Project(tmp_path, real_cluster, 8), threading.Event()
    project.save("v1")

    def send_always() -> None:
        with awoke.Producer(real_cluster.bootstrap_servers) as producer:
            while not stop.is_set():
                awoke.wait_all([producer.produce(project.topic, b"x", partition=each) for each in range(8)], 60)
                project.sent += 8

    def partitions_of(version: str) -> set[frozenset[int]]:
        """The partitions of each process that ran this version, from each partition's last message."""
        last = {partition: pid for found, partition, _, pid in project.done() if found == version}
        return {frozenset(each for each in last if last[each] == pid) for pid in last.values()}

    def wait_until_all_run(version: str) -> None:
        def is_so() -> bool:
            return {partition for found, partition, _, _ in project.done() if found == version} == set(range(8))

        wait_until(is_so, f"{version} in every partition", 60, every_s=0.05)

    with project.run("--nodes", "4") as process:
        process.wait_until(lambda lines: sum("is up after" in line for line in lines) == 4)
        sender = threading.Thread(target=send_always)
        sender.start()
        try:
            wait_until(lambda: len(partitions_of("v1")) == 4, "messages in all nodes", 60, every_s=0.05)
            (tmp_path / "shop.py").write_text(BROKEN)
            process.wait_for("the swarm goes on with the old code")
            before = partitions_of("v1")
            project.save("second", handler="renamed")
            process.wait_for("the new code runs")
            wait_until_all_run("second")
        finally:
            stop.set()
            sender.join()
        project.wait_for_all()
        assert partitions_of("second") == before
        process.signal(signal.SIGTERM)
        assert process.wait() == 0
    project.check()
