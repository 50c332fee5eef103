"""Commands for a swarm that are acted in Chromium: each changes the swarm, and the console shows it."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from awoke.console.commands import Commander
from awoke.settings import load
from tests.support.browsers import act, needs_chromium, served
from tests.support.clusters import RealCluster, unique
from tests.support.swarms import Swarm

pytestmark = needs_chromium
SECRET = "of this test alone"
WITHIN_S = 120.0
"""A node takes commands a while after it is up: its topics are made, and its client has to connect."""


def node_of(swarm: Swarm) -> str:
    """Returns the name of the first node, as its reports and commands have it."""
    return f"{socket.gethostname()}.{swarm.pid_of(1)}.1"


def test_scale_reload_and_stop_have_their_effect_in_the_swarm(real_cluster: RealCluster, tmp_path: Path) -> None:
    topic, servers = unique("browsed"), real_cluster.bootstrap_servers
    app = unique("app")  # The reports of processes that were killed stay for a day: other tests kill those of "swarm".
    real_cluster.create_topic(topic, 2)
    commands = "scale,reload,stop,stacks"
    env = {"AWOKE_CONSOLE": "true", "AWOKE_CONSOLE_SECRET": SECRET, "AWOKE_CONSOLE_COMMANDS": commands}
    env["SWARM_APP"] = app
    settings = load({"bootstrap_servers": servers}).values
    with (
        Swarm(servers, topic, tmp_path, nodes=1, env=env) as swarm,
        Commander(app, settings=settings, secret=SECRET.encode()) as commander,
        ThreadPoolExecutor(1) as aside,  # The browser's driver has an event loop on this thread.
        served("tests.support.swarm_console", app, servers, SECRET) as site,
    ):
        page, wrong = site.page()

        def wait_shown(pids: list[int]) -> None:
            """Waits until the page of processes has exactly the nodes of the swarm, without loading it again."""
            page.goto(f"{site.url}/processes")
            for number, pid in enumerate(pids, 1):
                page.locator("tbody th a", has_text=f".{pid}.{number}").wait_for()
            page.locator("caption", has_text=f"{len(pids)} process").wait_for()

        def open_node() -> str:
            """Opens the page of the first node, once it takes commands, and returns its name."""
            name = node_of(swarm)
            sent: dict[str, Any] = {"who": "ann", "reason": "it is to be there", "timeout_s": WITHIN_S}
            aside.submit(commander.send, name, "stacks", **sent).result()
            page.goto(f"{site.url}/processes/{name}")
            page.locator("summary", has_text="Stop").wait_for()
            return name

        swarm.wait_up(1, assigned=2)
        wait_shown([swarm.pid_of(1)])
        first = open_node()
        act(page, "Scale", nodes="2")
        page.locator("p", has_text="the swarm goes to 2 nodes").wait_for()
        swarm.wait_up(2, assigned=2)
        swarm.wait_until(lambda found: not found["is_rolling"])
        before = [swarm.pid_of(1), swarm.pid_of(2)]
        wait_shown(before)
        page.locator(".tree", has_text="2 nodes").wait_for()

        assert open_node() == first
        act(page, "Reload")
        page.locator("p", has_text="the reload has begun").wait_for()
        swarm.wait_until(lambda found: [each["mold"] for each in found["nodes"]] == [2, 2])
        swarm.wait_up(2, assigned=2)
        swarm.wait_until(lambda found: not found["is_rolling"])
        after = [swarm.pid_of(1), swarm.pid_of(2)]
        assert not set(before) & set(after), "each node is another process"
        wait_shown(after)

        second = open_node()
        act(page, "Stop")
        page.locator("p", has_text="the swarm stops").wait_for()
        assert swarm.process.wait(WITHIN_S) == 0, swarm.process.output
        page.goto(f"{site.url}/processes")
        page.locator(".empty", has_text="No process").wait_for()

        page.goto(f"{site.url}/audit")
        page.locator("tbody tr").first.wait_for()
        rows = page.request.get(f"{site.url}/audit?format=json").json()["commands"]["rows"]
        # Other swarms on these brokers have records there, too.
        done = {
            (each["verb"], each["node"])
            for each in rows
            if each["result"] == "done" and each["node"] in (first, second)
        }
        assert ("scale", first) in done
        # The records of the others are sent by processes that are about to end, and don't wait long for brokers.
        assert done <= {("scale", first), ("reload", first), ("stop", second), ("stacks", first), ("stacks", second)}
        assert wrong == []
        page.context.close()
