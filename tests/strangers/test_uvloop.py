"""uvloop as the policy of the app: handlers run on it, and signals are heard."""

from __future__ import annotations

from pathlib import Path

from tests.support.clusters import MockCluster
from tests.support.three_modes import in_three_modes, stop_all

APP = """
import asyncio
import uvloop

asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())


@app.on(TOPIC)
async def handle(message: awoke.Message[bytes]) -> None:
    process = await asyncio.create_subprocess_exec("true")
    loop = type(asyncio.get_running_loop()).__module__
    note("handled", value=int(message.value), loop=loop, ended=await process.wait())
"""


def test_handlers_run_on_uvloop(mock_cluster: MockCluster, tmp_path: Path) -> None:
    with in_three_modes(tmp_path, mock_cluster, APP) as runs:
        stop_all(runs)
    for run in runs:
        assert {each["loop"] for each in run.notes("handled")} == {"uvloop"}, run.mode
        assert {each["ended"] for each in run.notes("handled")} == {0}, run.mode
