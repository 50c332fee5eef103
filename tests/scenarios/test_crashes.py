"""A message that kills its process after each restart ends in the dead letter topic; the others are processed."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

import awoke
from awoke.payloads import dead_letter
from tests.support.clusters import RealCluster, unique
from tests.support.processes import Process
from tests.support.waiting import wait_until

STARTS_MAX = 6
KILLED = -9


@pytest.mark.parametrize("lanes", ["", "several"], ids=["in the handler", "in the decoder of lanes"])
def test_a_deadly_message_is_recognised_after_restarts(real_cluster: RealCluster, tmp_path: Path, lanes: str) -> None:
    topic, dead, log = unique("deadly"), unique("dead"), tmp_path / "done"
    for name in (topic, dead):
        real_cluster.create_topic(name)
    values = [str(number).encode() for number in range(100)]
    values[57] = b"deadly"
    with awoke.Producer(real_cluster.bootstrap_servers) as producer:
        written = {value: b'{"text":"%s"}' % value if lanes else value for value in values}
        awoke.wait_all([producer.produce(topic, written[value], key=value) for value in values], 30)
    group, at_the_end = unique("group"), {(topic, 0): len(values)}
    env = {
        "AWOKE_BOOTSTRAP_SERVERS": real_cluster.bootstrap_servers,
        "AWOKE_GROUP": group,
        "DEADLY_TOPIC": topic,
        "DEADLY_DEAD_LETTER": dead,
        "DEADLY_LOG": str(log),
        "DEADLY_LANES": lanes,
    }
    deaths = 0
    with (
        awoke.Admin(real_cluster.bootstrap_servers) as admin,
        awoke.Reader(dead, bootstrap_servers=real_cluster.bootstrap_servers) as reader,
    ):
        letters = iter(reader)
        for _ in range(STARTS_MAX):
            with Process(
                "run", "tests.scenarios.deadly_app:app", "--workers", "4" if lanes else "1", env=env
            ) as process:
                if process.says("message.dead_lettered"):
                    # Not by the file: what an earlier process wrote down runs again in this one.
                    wait_until(lambda: admin.group_offsets(group) == at_the_end, "all are committed", 30, every_s=0.1)
                    process.signal(signal.SIGTERM)
                    assert process.wait() == 0, process.output
                    break
                deaths += 1
                assert process.wait() == KILLED, process.output
        else:
            raise AssertionError(f"still deadly after {STARTS_MAX} starts")
        letter = next(letters)
        assert admin.group_offsets(group) == at_the_end
    assert deaths >= 2
    assert set(log.read_bytes().split()) == set(values) - {b"deadly"}
    origin = dead_letter.origin(letter)
    assert origin is not None
    assert (letter.key, origin.offset, origin.attempts) == (b"deadly", 57, 2)
    assert origin.error_type.endswith("ProcessDied")
