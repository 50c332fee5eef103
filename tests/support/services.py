"""Services that run, and callers of them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import awoke
from awoke import rpc
from awoke.testing import running
from tests.support.clusters import Cluster, unique

WITHIN_S = 30.0


def new_app(cluster: Cluster, **options: Any) -> awoke.App:
    app = awoke.App(unique("shop"), bootstrap_servers=cluster.bootstrap_servers, kafka=cluster.properties)
    app.rpc.options(**options)
    return app


@contextlib.contextmanager
def calling(app: awoke.App, **options: Any) -> Iterator[rpc.Caller]:
    """The app runs, and a caller of it is open."""
    options = {"timeout_s": WITHIN_S, "kafka": app.settings.kafka, **options}
    with running(app), rpc.Caller(app.name, app.settings.bootstrap_servers, **options) as caller:
        caller.wait_until_served()
        yield caller
        assert caller.open_calls() == 0, "calls are left in the table"
