"""Runs an app until a signal comes: the first stops gracefully, the second waits for no job, the third ends at once.

The main thread waits for words in an inbox, from signals and other threads. The stop runs on a thread of its own, so
that the main thread can react to the next signal. The start runs on the main thread, as user code expects: the inbox is
read on a thread of its own meanwhile, because user code may never return from there.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
from collections.abc import Iterator, Mapping

from awoke.observe import logs
from awoke.runtime.process.context import RunnableApp
from awoke.runtime.process.embedded import EmbeddedCluster
from awoke.runtime.process.inbox import STOPS, Inbox, StartInterrupted
from awoke.runtime.process.joining import is_name_taken
from awoke.runtime.process.runner import AppRunner
from awoke.runtime.watch.stacks import Unfinished, stack_of
from awoke.settings import KafkaValue
from awoke.text.exit_codes import EXIT_AT_ONCE, EXIT_CLEAN, EXIT_CONFIGURATION, EXIT_FAILED, EXIT_LATE, code_of
from awoke.text.printable import shown, text_of
from awoke.waiting.green_threads import check_threads

logger = logging.getLogger(__name__)

HEARD = {signal.SIGINT: "signal", signal.SIGTERM: "signal"}
"""The word for each signal."""
REPORT_S = 2.0
"""The time that a third signal leaves for the log."""


def run(
    app: RunnableApp,
    *,
    bootstrap_servers: str | None,
    workers: int | None,
    embedded: bool,
    kafka: Mapping[str, KafkaValue] | None,
) -> int:
    """Runs an app until a signal or a fatal error ends it; returns the exit code. Blocks."""
    check_threads()
    logs.set_up_if_mute()
    with contextlib.ExitStack() as stack:
        if embedded:
            bootstrap_servers = stack.enter_context(embedded_brokers(app))
        app.use(bootstrap_servers=bootstrap_servers, workers=workers, kafka=kafka)
        heard = stack.enter_context(contextlib.closing(Inbox()))
        server = AppRunner(
            app, on_fatal_error=lambda error: heard.put("fatal error"), on_stop=lambda: heard.put("asked to stop")
        )
        stack.callback(heard.hear(HEARD))
        return wait_and_stop(server, heard) if start(server, heard) else EXIT_CLEAN


def start(server: AppRunner, heard: Inbox) -> bool:
    """Starts an app; returns false if it was stopped before it ran, by a signal or by `app.stop()`. Blocks.

    Raises what the start raises.
    """
    try:
        with StartWatch(server, heard), heard.interrupting():
            server.start()
    except StartInterrupted:
        server.stop()  # Where the signal came when all had started.
        return False
    return not server.has_ended


class StartWatch:
    """Reacts to signals while the main thread starts an app.

    The thread:
    1. wait for a word;
    2. at the second signal, log the code that does not return; at the third, end the process;
    3. end when the start has ended, and leave the words to what follows it.

    The first signal interrupts the main thread: see `Inbox.interrupting`.
    """

    def __init__(self, server: AppRunner, heard: Inbox) -> None:
        self._server, self._heard = server, heard
        self._words: list[str] = []
        self._thread = threading.Thread(target=self._watch, name="awoke-signals", daemon=True)

    def __enter__(self) -> None:
        if self._heard.is_hearing:
            self._thread.start()

    def __exit__(self, *_: object) -> None:
        if self._thread.ident is not None:
            self._heard.put("started")
            self._thread.join()
        for word in self._words:
            self._heard.put(word)

    def _watch(self) -> None:
        signals = 0
        while (said := self._heard.get()) != "started":
            self._words.append(said)
            if said not in STOPS:
                continue
            signals += 2 if said == "quick" and not signals else 1
            if signals == 1:
                logger.info("stopping: the start is interrupted; a second signal tells what does not end")
            elif signals == 2:
                self._server.stop_waiting()
                report_unfinished(self._server, "the start", threading.main_thread())
                logger.warning("the next signal ends the process at once")
            else:
                end_at_once(self._server, "the start", threading.main_thread())


def report_unfinished(server: AppRunner, otherwise: str, thread: threading.Thread) -> None:
    """Logs the user code that does not return, with its stack; if there is none, what a thread does instead."""
    for what, stack in server.unfinished() or [Unfinished(otherwise, stack_of(thread))]:
        logger.error("%s has not ended, it is at:\n%s", what, stack)


def end_at_once(server: AppRunner, otherwise: str, thread: threading.Thread) -> None:
    """Ends the process at a third signal, and logs what has not ended. A log that hangs does not hold it up long."""
    logs_it = threading.Thread(
        target=report_unfinished, args=(server, otherwise, thread), name="awoke-ending", daemon=True
    )
    logs_it.start()
    logs_it.join(REPORT_S)
    os._exit(EXIT_AT_ONCE)


def wait_and_stop(server: AppRunner, heard: Inbox) -> int:
    """Waits for a reason to stop, and stops; returns the exit code. Blocks."""
    while (said := heard.get()) in ("quiet", "ignored"):
        if said == "quiet":
            server.quiet()
    if said == "signal":
        logger.info("stopping: running jobs finish; a second signal does not wait for them, a third ends at once")
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
        stop_waiting(server)
    while (said := heard.get()) != "stopped":
        if said in ("signal", "quick"):
            signals += 1
            stop_waiting(server)
            if signals > 1:
                end_at_once(server, "the stop", thread)
    thread.join()  # It has nothing left to do.
    code = EXIT_CLEAN
    if isinstance(server.fatal_error, SystemExit):
        code = code_of(server.fatal_error)
        logger.log(logging.ERROR if code else logging.INFO, "the app was ended by %s", shown(server.fatal_error))
    elif server.fatal_error is not None:
        logger.error("the app stopped after a fatal error: %s", described(server.fatal_error))
        code = EXIT_CONFIGURATION if is_name_taken(server.fatal_error) else EXIT_FAILED
    return code or (EXIT_CLEAN if is_clean == [True] else EXIT_LATE)


def described(error: BaseException) -> str:
    """Returns the text of an error; that of a `KeyboardInterrupt` is mostly empty."""
    return text_of(error) if isinstance(error, Exception) else shown(error)


def stop_waiting(server: AppRunner) -> None:
    """Ends the wait for running jobs, and logs that once."""
    if server.stop_waiting():
        logger.warning("stopping at once: running jobs are not waited for, and their messages come again")


@contextlib.contextmanager
def embedded_brokers(app: RunnableApp) -> Iterator[str]:
    """Runs brokers inside the process, with the topics of the app's routes; gives their address."""
    with EmbeddedCluster() as cluster:
        read, written = list(app.read_topics), [topic for route in app.all_routes for topic in route.topics_out]
        named = {route.topic: 1 + max(route.partitions) for route in app.all_routes if route.partitions}
        for topic in dict.fromkeys([*read, *written]):
            cluster.create_topic(topic, partitions=getattr(topic, "partitions", None) or max(4, named.get(topic, 0)))
        logger.info("embedded brokers at %s", cluster.bootstrap_servers)
        yield cluster.bootstrap_servers
