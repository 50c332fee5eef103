"""Shows the console of a swarm in the browser, with something to see: `python -m examples.flights.console`.

1. Start embedded brokers, or take those of `--bootstrap-servers`, and create the topics, also those of the console.
2. Run `examples.flights.console_app` in a swarm of two processes.
3. Send it flights, bags and calls, until Ctrl-C.
4. Serve its console, and open it.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import itertools
import subprocess
import sys
import threading
import webbrowser
from collections.abc import Iterator

import awoke
from awoke import rpc
from awoke.console import Role, asgi
from awoke.console.topics import ConsoleTopics, ensure
from awoke.console.web.serving import Server
from awoke.settings import load
from awoke.testing import EmbeddedCluster
from examples.flights.console_app import BAGS, FLIGHTS, INSPECTIONS, TOPICS
from examples.flights.data import load_flights

ROWS = 20_000
NODES = 2
EACH_S = 0.25
CALL_EACH_S, CALL_TIMEOUT_S = 0.1, 5.0
AIRPORTS = ("EWR", "JFK", "LGA", "JFK", "LAX")
"""The airports that are asked for; the app has no gate of the last one."""
FLIGHTS_EACH, BAGS_EACH = 50, 2
CREATED_WITHIN_S = 60.0


def main() -> int:
    """Show the console until Ctrl-C; the exit code."""
    parser = argparse.ArgumentParser("python -m examples.flights.console", description="The console of a swarm.")
    parser.add_argument("--bootstrap-servers", help="brokers to use; embedded ones when left out")
    parser.add_argument("--port", type=int, default=8686, help="default: %(default)s")
    parser.add_argument("--no-browser", action="store_true", help="do not open a browser")
    args = parser.parse_args()
    stopped = threading.Event()
    with contextlib.suppress(KeyboardInterrupt), brokers(args.bootstrap_servers) as servers, swarm(servers):
        threads = [threading.Thread(target=each, args=(servers, stopped), name=each.__name__) for each in (send, call)]
        for each in threads:
            each.start()
        settings = load({"bootstrap_servers": servers}).values
        web = asgi("flights", policy=lambda scope: Role.ADMIN, verbs=["*"], payloads=True, settings=settings)
        server = Server(web, "127.0.0.1", args.port)
        say(f"the console is at {server.url}; Ctrl-C ends it")
        if not args.no_browser:
            webbrowser.open(server.url)
        try:
            server.run()
        finally:
            stopped.set()
            for each in threads:
                each.join()
    return 0


@contextlib.contextmanager
def brokers(servers: str | None) -> Iterator[str]:
    """Brokers with the topics."""
    if servers is not None:
        with awoke.Admin(servers) as admin:
            known = {each.name for each in admin.topics()}
            for topic, partitions in TOPICS.items():
                if topic not in known:
                    admin.create_topic(topic, partitions=partitions)
        create_console_topics(servers)
        yield servers
        return
    with EmbeddedCluster() as cluster:
        for topic, partitions in TOPICS.items():
            cluster.create_topic(topic, partitions=partitions)
        create_console_topics(cluster.bootstrap_servers)
        yield cluster.bootstrap_servers


def create_console_topics(servers: str) -> None:
    """Creates the topics of the console, which looks for them before a process has created them."""
    topics = ConsoleTopics.of("flights")
    with awoke.Admin(servers) as admin:
        ensure(admin, {**topics.configs, **topics.command_configs}, CREATED_WITHIN_S)


def say(text: str) -> None:
    """Prints a line with the time."""
    print(f"{datetime.datetime.now():%H:%M:%S} {text}", flush=True)


@contextlib.contextmanager
def swarm(servers: str) -> Iterator[None]:
    """The app in processes of its own, until the end of the block."""
    command = [sys.executable, "-m", "awoke", "run", "examples.flights.console_app:app", "--nodes", str(NODES)]
    options = ["--bootstrap-servers", servers, "--log-level", "error", "--drain-timeout-s", "5"]
    with subprocess.Popen([*command, *options], start_new_session=True) as running:
        say(f"{NODES} processes start: they import the app, join their group, and are in the console then")
        try:
            yield
        finally:
            running.terminate()


def send(servers: str, stopped: threading.Event) -> None:
    """Sends flights and bags at a steady speed, and two inspections."""
    flights = itertools.cycle(load_flights(ROWS))
    with awoke.Producer(servers) as producer:
        for number in range(2):
            producer.produce(INSPECTIONS, next(flights), partition=number)
        while not stopped.wait(EACH_S):
            for topic, count in ((FLIGHTS, FLIGHTS_EACH), (BAGS, BAGS_EACH)):
                for flight in itertools.islice(flights, count):
                    producer.produce(topic, flight, key=flight.route)


def call(servers: str, stopped: threading.Event) -> None:
    """Asks the app for gates, again from the start where its topics are not there yet."""
    while not stopped.wait(CALL_EACH_S):
        with contextlib.suppress(awoke.BrokerUnreachable, awoke.UnknownTopic):
            ask(servers, stopped)


def ask(servers: str, stopped: threading.Event) -> None:
    """Asks for the gate of one airport after another."""
    airports = itertools.cycle(AIRPORTS)
    with rpc.Caller("flights", servers, name="airport") as service:
        while not stopped.wait(CALL_EACH_S):
            with contextlib.suppress(awoke.RpcError):  # No gate, or no process yet.
                service.call("gate", next(airports), timeout_s=CALL_TIMEOUT_S)


if __name__ == "__main__":
    sys.exit(main())
