"""A group's coordinator that moves while a client asks for the group's offsets does not end the process.

librdkafka (2.12.1) ends it by SIGSEGV there, because an admin client has no group of its own:
`crates/kafka/src/librdkafka/patches/0001_no_group.c`. So the client runs in a process of its own.
"""

from __future__ import annotations

import subprocess
import sys

ASK = """
import awoke
from awoke.testing import EmbeddedCluster

OFFSET_FETCH = 9
with EmbeddedCluster() as cluster, awoke.Admin(cluster.bootstrap_servers) as admin:
    cluster.create_topic("topic")
    cluster._native.inject("refuse_request", ["NOT_COORDINATOR"], [OFFSET_FETCH])
    print(admin.group_offsets("group"))
"""


def test_an_admin_asks_again_when_the_coordinator_of_a_group_has_moved() -> None:
    asked = subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True, timeout=60, check=False)
    assert (asked.returncode, asked.stdout.strip()) == (0, "{}"), asked.stderr
