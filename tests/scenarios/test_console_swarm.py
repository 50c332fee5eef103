"""Commands of a console reach a swarm: a node takes them, and asks its supervisor."""

from __future__ import annotations

import os
import pwd
import socket
from pathlib import Path
from typing import Any

import msgspec
import pytest

import awoke
from awoke.cli.swarm import ask
from awoke.console.commands import Audit, Commander
from awoke.console.topics import ConsoleTopics
from awoke.errors import AwokeError, RpcError
from awoke.settings import load
from tests.support.clusters import RealCluster, unique
from tests.support.swarms import Swarm

SECRET = "of this test alone"
WITHIN_S = 120.0
"""A node takes commands a while after it is up: its topics are made, and its client has to connect."""
SENT: dict[str, Any] = {"who": "ann", "reason": "a test", "timeout_s": WITHIN_S}


def node_of(swarm: Swarm) -> str:
    """Returns the name of the first node, as its reports and commands have it."""
    return f"{socket.gethostname()}.{swarm.pid_of(1)}.1"


def test_signed_commands_scale_reload_and_stop_a_swarm(real_cluster: RealCluster, tmp_path: Path) -> None:
    topic, env = unique("console"), {"AWOKE_CONSOLE": "true", "AWOKE_CONSOLE_SECRET": SECRET}
    real_cluster.create_topic(topic, 2)
    env["AWOKE_CONSOLE_COMMANDS"] = "scale,reload,stop"
    settings = load({"bootstrap_servers": real_cluster.bootstrap_servers}).values
    with (
        Swarm(real_cluster.bootstrap_servers, topic, tmp_path, nodes=1, env=env) as swarm,
        Commander("swarm", settings=settings, secret=SECRET.encode()) as signed,
        Commander("swarm", settings=settings) as unsigned,
    ):
        swarm.wait_up(1, assigned=2)
        first = node_of(swarm)
        assert signed.send(first, "scale", nodes=2, **SENT).text == "the swarm goes to 2 nodes"
        swarm.wait_up(2, assigned=2)
        swarm.wait_until(lambda found: not found["is_rolling"])
        with pytest.raises(RpcError):
            unsigned.send(first, "stop", who="eve", reason="a test", timeout_s=5.0)
        assert signed.send(first, "reload", **SENT).text == "the reload has begun"
        swarm.wait_until(lambda found: [each["mold"] for each in found["nodes"]] == [2, 2])
        swarm.wait_up(2, assigned=2)
        swarm.wait_until(lambda found: not found["is_rolling"])
        second = node_of(swarm)
        assert second != first
        place: dict[str, Any] = {"topic": topic, "partition": 0, "reason": "by the socket"}
        paused = ask("tests.scenarios.swarm_app:app", swarm.socket, "pause", **place)
        assert paused["text"].startswith(f"{topic}[0] is paused")
        with pytest.raises(AwokeError, match="no message of"):
            ask("tests.scenarios.swarm_app:app", swarm.socket, "skip", offset=7, **place)
        assert ask("tests.scenarios.swarm_app:app", swarm.socket, "resume", **place)["done"] == "resume"
        stacks = ask("tests.scenarios.swarm_app:app", swarm.socket, "stacks", reason="by the socket")
        assert {each["node"] for each in stacks["stacks"]} == {1, 2}
        assert any("in wait" in line or ".py:" in line for each in stacks["stacks"] for line in each["lines"])
        assert signed.send(second, "stop", **SENT).text == "the swarm stops"
        assert swarm.process.wait(WITHIN_S) == 0, swarm.process.output
    with awoke.Reader(ConsoleTopics.of("swarm").audit, bootstrap_servers=real_cluster.bootstrap_servers) as reader:
        records = [msgspec.json.decode(each.value, type=Audit) for each in reader.read_until_end(30)]
    user = pwd.getpwuid(os.getuid()).pw_name
    here = [each for each in records if each.via == "socket"]
    assert [(each.verb, each.result, each.who, each.reason) for each in here] == [
        ("pause", "done", user, "by the socket"),
        ("skip", "failed_precondition", user, "by the socket"),
        ("resume", "done", user, "by the socket"),
        ("stacks", "done", user, "by the socket"),
    ]
    assert {each.node for each in here} == {f"supervisor {swarm.process.pid}"}
    found = [(each.node, each.verb, each.who, each.result) for each in records if each.node in (first, second)]
    # The records of the others are sent by processes that are about to end, and which don't wait long for brokers.
    assert found[0] == (first, "scale", "ann", "done")
    assert set(found) <= {(first, "reload", "ann", "done"), (second, "stop", "ann", "done"), found[0]}
