"""numpy and pandas: their native threads end at a fork, and each node draws numbers of its own."""

from __future__ import annotations

from pathlib import Path

from tests.support.clusters import MockCluster
from tests.support.three_modes import in_three_modes, stop_all

APP = """
import threading
import numpy
import pandas

weights = numpy.ones((200, 200))
weights @ weights  # OpenBLAS starts its threads.
note("imported", threads=len(os.listdir("/proc/self/task")))


@app.on(TOPIC)
def handle(message: awoke.Message[bytes]) -> None:
    product = float((weights @ weights)[0, 0])
    frame = pandas.DataFrame({"value": [int(message.value)] * 3})
    note("handled", value=int(frame["value"].mean()), product=product, drawn=float(numpy.random.random()))
"""


def test_an_app_with_numpy_and_pandas_is_forked(mock_cluster: MockCluster, tmp_path: Path) -> None:
    with in_three_modes(tmp_path, mock_cluster, APP) as runs:
        stop_all(runs)
    for run in runs:
        assert "can't share" not in run.process.output
        assert len(run.notes("imported")) == 1, "nodes are forked from one import"
        handled = run.notes("handled")
        assert {each["product"] for each in handled} == {200.0}
        assert len({each["drawn"] for each in handled}) == len(handled), "each node draws its own"
