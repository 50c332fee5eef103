"""Keeps Django's database connections from being used after they broke, were left open, or came through a fork."""

from __future__ import annotations

from asgiref.sync import sync_to_async
from django.db import close_old_connections, connections


def close_old() -> None:
    """Closes the connections of this thread that are broken or too old, as Django does between requests.

    `CONN_MAX_AGE` and `CONN_HEALTH_CHECKS` say which: without them, each connection is closed.
    """
    close_old_connections()


async def aclose_old() -> None:
    """As `close_old`, on the thread on which Django runs the ORM for `async def` code."""
    await sync_to_async(close_old_connections)()


def close_all() -> None:
    """Closes all connections of this thread. A forked process must not use those of its parent."""
    connections.close_all()
