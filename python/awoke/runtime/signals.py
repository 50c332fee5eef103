"""Runs an app until a signal comes: the first stops gracefully, the second waits for no job, the third ends at once.

The main thread waits on an inbox that signal handlers and other threads put words into. The stop runs on a thread of its
own, so that the main thread can hear the next signal.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from awoke import logs
from awoke.exit_codes import EXIT_AT_ONCE, EXIT_CLEAN, EXIT_GAVE_UP, EXIT_LATE
from awoke.runtime.inbox import Inbox
from awoke.settings import KafkaValue

if TYPE_CHECKING:
    from awoke.app import App
    from awoke.runtime.server import AppRunner

logger = logging.getLogger(__name__)

HEARD = {signal.SIGINT: "signal", signal.SIGTERM: "signal"}
"""The word for each signal."""


def run(
    app: App,
    *,
    bootstrap_servers: str | None,
    workers: int | None,
    embedded: bool,
    kafka: Mapping[str, KafkaValue] | None,
) -> int:
    """Run an app until a signal comes or it gives up; the exit code."""
    from awoke.runtime.server import AppRunner

    logs.set_up_if_mute()
    with contextlib.ExitStack() as stack:
        if embedded:
            bootstrap_servers = stack.enter_context(embedded_brokers(app))
        app.use(bootstrap_servers=bootstrap_servers, workers=workers, kafka=kafka)
        heard = stack.enter_context(contextlib.closing(Inbox()))
        server = AppRunner(
            app, on_give_up=lambda error: heard.put("gave up"), on_stop=lambda: heard.put("asked to stop")
        )
        stack.callback(heard.hear(HEARD))
        server.start()
        if server.has_ended:
            return EXIT_CLEAN
        return wait_and_stop(server, heard)


def wait_and_stop(server: AppRunner, heard: Inbox) -> int:
    """Wait for a reason to stop, then stop."""
    while (said := heard.get()) in ("quiet", "ignored"):
        if said == "quiet":
            server.quiet()
    if said == "signal":
        logger.info("stopping: running jobs finish; a second signal does not wait for them")
    is_clean: list[bool] = []

    def stop() -> None:
        try:
            is_clean.append(server.stop())
        finally:
            heard.put("stopped")

    thread = threading.Thread(target=stop, name="awoke-stopping", daemon=True)
    thread.start()
    signals = 0
    if said == "quick":
        hurry(server)
    while (said := heard.get()) != "stopped":
        if said in ("signal", "quick"):
            signals += 1
            hurry(server)
            if signals > 1:
                os._exit(EXIT_AT_ONCE)
    thread.join()  # It has nothing left to do.
    if server.given_up is not None:
        logger.error("the app gave up: %s", server.given_up)
        return EXIT_GAVE_UP
    return EXIT_CLEAN if is_clean == [True] else EXIT_LATE


def hurry(server: AppRunner) -> None:
    """Ends the wait for running jobs, and says so once."""
    if server.hurry():
        logger.warning("stopping at once: running jobs are not waited for, and their messages come again")


@contextlib.contextmanager
def embedded_brokers(app: App) -> Iterator[str]:
    """Brokers inside the process, with the topics of the app's routes."""
    from awoke.testing import EmbeddedCluster

    with EmbeddedCluster() as cluster:
        for route in app.routes.values():
            for topic in (route.topic, *route.topics_out):
                cluster.create_topic(topic, partitions=4)
        logger.info("embedded brokers at %s", cluster.bootstrap_servers)
        yield cluster.bootstrap_servers
