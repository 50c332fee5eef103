"""An app that runs beside a block."""

from __future__ import annotations

import awoke
from awoke.testing import EmbeddedCluster, running


def test_an_app_runs_in_the_block_and_has_stopped_after_it() -> None:
    app = awoke.App("shop")
    app.on("orders")(lambda message: None)
    with EmbeddedCluster() as cluster:
        cluster.create_topic("orders")
        with running(app, bootstrap_servers=cluster.bootstrap_servers) as runner:
            assert not runner.has_ended
        assert runner.has_ended
