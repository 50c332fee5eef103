"""Shows the console of a swarm in the browser, with something to see: `python -m examples.flights.console`.

1. Start embedded brokers, or take those of `--bootstrap-servers`.
2. Load the console on a thread, `site`. It listens as soon as it can, opens the browser, and shows what it waits for.
3. Create the topics, also those of the console, and run `examples.flights.console_app` in a swarm of two processes.
4. Send it flights, bags and calls until a signal comes or the terminal closes. Then end all of that.

Each step is a line with its time. Modules are imported where they are needed: on a busy machine that takes seconds.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import sys
import threading
import time
from typing import TYPE_CHECKING

from examples.flights.ending import Ending, Signals

if TYPE_CHECKING:
    from awoke.console.web.live import Live
    from awoke.console.web.serving import Server
    from awoke.console.web.steps import StepState
    from awoke.settings import Settings

BEGAN_S = time.monotonic()
CREATED_WITHIN_S = 60.0
LOADED_WITHIN_S = 120.0
ENDED_WITHIN_S = 10.0


def main() -> int:
    """Show the console until a signal comes; the exit code."""
    parser = argparse.ArgumentParser("python -m examples.flights.console", description="The console of a swarm.")
    parser.add_argument("--bootstrap-servers", help="brokers to use; embedded ones when left out")
    parser.add_argument("--port", type=int, default=8686, help="default: %(default)s")
    parser.add_argument("--no-browser", action="store_true", help="do not open a browser")
    args = parser.parse_args()
    from awoke.errors import AwokeError

    signals = Signals()
    signals.open()
    try:
        with contextlib.ExitStack() as ends:
            ends.callback(say, "all has ended")
            try:
                return show(args, signals, ends)
            finally:
                signals.end()
                say("it ends: the swarm gives back its partitions")
    except Ending:
        return 0
    except AwokeError as error:
        say(str(error))
        return 1


def show(args: argparse.Namespace, signals: Signals, ends: contextlib.ExitStack) -> int:
    """Starts all, and waits. What it has started is ended by `ends`, the last one first; the exit code."""
    say("it starts: brokers, console, topics, swarm")
    servers = args.bootstrap_servers or embedded_brokers(ends)
    from awoke.console.web.live import Live
    from awoke.console.web.steps import StepState
    from awoke.settings import load
    from examples.flights.console_swarm import Swarm

    settings = load({"bootstrap_servers": servers}).values
    live = Live("flights", settings)
    ends.callback(live.close)

    def tell(name: str, state: StepState, text: str) -> None:
        with signals.held():
            say(f"{name.lower()}: {text}")
            live.note(name, state, text)

    site = Site(live, settings, args, signals)
    ends.callback(site.close)
    site.start()
    tell("Topics", StepState.WAITING, "they are made")
    tell("Topics", StepState.DONE, f"{create_topics(servers)} topics are there")
    with signals.held():
        live.start()
    if site.error is not None:  # Its port is in use, for example.
        raise site.error
    traffic = Traffic(servers)
    ends.callback(traffic.join)
    with signals.held():
        swarm = Swarm(servers, tell)
        ends.callback(swarm.close)
    swarm.start()
    follow(live, ends)
    site.wait_loaded()
    if site.error is None:
        ends.callback(traffic.stop)
        traffic.start()
        signals.wait()
    if site.error is not None:
        raise site.error
    return 0


def embedded_brokers(ends: contextlib.ExitStack) -> str:
    """Starts brokers within this process, and returns their address."""
    from awoke.runtime.process.embedded import EmbeddedCluster

    cluster = ends.enter_context(EmbeddedCluster())
    say(f"brokers: embedded ones listen at {cluster.bootstrap_servers}")
    return cluster.bootstrap_servers


def create_topics(servers: str) -> int:
    """Creates the topics of the app and of its console that do not exist, and returns the number of all."""
    import awoke
    from awoke.console.topics import ConsoleTopics, ensure
    from examples.flights.console_app import TOPICS

    topics = ConsoleTopics.of("flights")
    configs = {**topics.configs, **topics.command_configs}
    with awoke.Admin(servers) as admin:
        known = {each.name for each in admin.topics()}
        for topic, partitions in TOPICS.items():
            if topic not in known:
                admin.create_topic(topic, partitions=partitions)
        ensure(admin, configs, CREATED_WITHIN_S)
    return len(TOPICS) + len(configs)


def say(text: str) -> None:
    """Prints a line with the time, and the time since the start."""
    with contextlib.suppress(OSError):  # The terminal has closed.
        print(f"{datetime.datetime.now():%H:%M:%S} {time.monotonic() - BEGAN_S:6.1f} s  {text}", flush=True)


def joined(thread: threading.Thread) -> bool:
    """Waits for the end of a thread, for ten seconds; tells whether it has ended, or never began."""
    if thread.ident is not None:
        thread.join(ENDED_WITHIN_S)
    return not thread.is_alive()


class Site:
    """The console, loaded on a thread of its own and served on another."""

    def __init__(self, live: Live, settings: Settings, args: argparse.Namespace, signals: Signals) -> None:
        self._live, self._settings, self._args, self._signals = live, settings, args, signals
        self.loaded = threading.Event()
        self.error: Exception | None = None
        self._server: Server | None = None
        self._thread = threading.Thread(target=self._load, name="site", daemon=True)

    def start(self) -> None:
        """Begins to load. Does not block."""
        self._thread.start()

    def wait_loaded(self) -> None:
        """Blocks until it listens, or `error` says why it does not.

        Raises:
            OperationTimeout: It is still being loaded after two minutes.
        """
        if not self.loaded.wait(LOADED_WITHIN_S):
            from awoke.errors import OperationTimeout

            raise OperationTimeout(
                f"the console was not loaded within {LOADED_WITHIN_S:.0f} s: the machine is too busy"
            )

    def close(self) -> None:
        """Ends it. Blocks for ten seconds at most: a browser of the terminal ends when its user closes it."""
        if not joined(self._thread):
            what = "the browser still runs" if self.loaded.is_set() else "it is still being loaded"
            say(f"console: {what}, and is left alone")
        if self._server is not None:
            self._server.close()

    def _load(self) -> None:
        try:
            self._serve()
        except Exception as error:  # The main thread raises it.
            self.error = error
            self._signals.wake()
        finally:
            self.loaded.set()

    def _serve(self) -> None:
        from awoke.console import Role
        from awoke.console.web.application import application
        from awoke.console.web.grants import Rights
        from awoke.console.web.serving import Server

        rights = Rights(lambda scope: Role.ADMIN, ["*"], True)
        web = application(self._live.app, self._settings, self._live, rights, ())
        self._server = Server(web, "127.0.0.1", self._args.port)
        self._server.start()
        say(f"console: it listens at {self._server.url}; Ctrl-C ends all")
        self.loaded.set()
        if not self._args.no_browser:
            import webbrowser

            webbrowser.open(self._server.url)


def follow(live: Live, ends: contextlib.ExitStack) -> None:
    """Tells on a thread of each node that reports for the first time, until all have."""
    from examples.flights.console_swarm import NODES

    changed, ended = threading.Event(), threading.Event()

    def wait() -> None:
        seen = set[str]()
        while not ended.is_set() and len(seen) < NODES:
            changed.wait()
            changed.clear()
            for node in sorted(set(live.snapshot(0.0).reports) - seen):
                seen.add(node)
                say(f"console: the first report of {node} has come; {len(seen)} of {NODES} nodes have reported")
        unsubscribe()

    def end() -> None:
        unsubscribe()
        ended.set()
        changed.set()
        if not joined(thread):
            say("reports: their thread has not ended; it ends with this program")

    unsubscribe = live.subscribe(changed.set)
    thread = threading.Thread(target=wait, name="reports", daemon=True)
    ends.callback(end)
    thread.start()


class Traffic:
    """Sends flights, bags and calls on two threads."""

    def __init__(self, servers: str) -> None:
        self._servers, self._stopped = servers, threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(name,), name=name, daemon=True) for name in ("send", "call")
        ]

    def start(self) -> None:
        """Begins to send. Does not block."""
        for each in self._threads:
            each.start()

    def stop(self) -> None:
        """Begins to end. Does not block."""
        self._stopped.set()

    def join(self) -> None:
        """Waits for the end of the threads, or for ten seconds each."""
        for each in self._threads:
            if not joined(each):
                say(f"traffic: the thread {each.name!r} has not ended; it ends with this program")

    def _run(self, name: str) -> None:
        from examples.flights import traffic

        if not self._stopped.is_set():
            getattr(traffic, name)(self._servers, self._stopped)


if __name__ == "__main__":
    sys.exit(main())
