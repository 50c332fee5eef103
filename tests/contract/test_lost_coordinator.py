"""A group's coordinator that goes away does not end the process of a client that asks it.

librdkafka (2.12.1) ends it by an assertion there: patch 0002 of `crates/kafka/src/librdkafka/patches`. So the client
runs in a process of its own.
"""

from __future__ import annotations

import subprocess
import sys

ASK = """
import contextlib
import awoke
from awoke.testing import EmbeddedCluster

with EmbeddedCluster() as cluster, awoke.Admin(cluster.bootstrap_servers) as admin:
    cluster.create_topic("topic")
    for number in range(200):
        cluster.set_broker_up(1, number % 2 == 0)
        group, calls = f"group-{number}", []
        requests = {
            "group_offsets": group,
            "describe_groups": [group],
            "delete_groups": [group],
            "delete_group_offsets": (group, [("topic", 0)]),
            "alter_group_offsets": (group, [("topic", 0, 1)]),
        }
        for kind, arguments in requests.items():
            calls += [admin._connection._native.request(kind, arguments, number / 2_000 * step) for step in range(3)]
        with contextlib.suppress(awoke.KafkaError):
            calls[-1].wait()
    cluster.set_broker_up(1, True)
    for call in calls:
        with contextlib.suppress(awoke.KafkaError):
            call.wait()
    print(admin.group_offsets("group"))
"""


def test_a_coordinator_that_goes_away_ends_no_process() -> None:
    asked = subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True, timeout=100, check=False)
    assert (asked.returncode, asked.stdout.strip()) == (0, "{}"), asked.stderr
