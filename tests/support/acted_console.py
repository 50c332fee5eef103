"""Serves the console of an app that runs beside it, for acts in a browser: `python -m tests.support.acted_console`.

With the argument `letters` its topic of dead letters has some, and no message of the app fails. It writes its address
to standard output, then a line for each event of the app and `ready`, and ends with its standard input.
"""

from __future__ import annotations

import sys

import awoke
from awoke.console import Role, asgi
from awoke.console.process_commands import commands_of
from awoke.console.web.serving import Server
from awoke.observe.events import Event
from awoke.payloads import dead_letter
from awoke.settings import load
from awoke.testing import EmbeddedCluster, running

APP, ORDERS, DEAD = "shop", "orders", "orders.dead"
EVENTS = (
    "job.failed",
    "message.dead_lettered",
    "message.skipped",
    "partition.paused",
    "partition.resumed",
    "app.stopped",
)
LETTERS = 400
VALUES = (b"good", b"bad-1", b"bad-2", b"bad-3")


def app_of(servers: str) -> awoke.App:
    """An app that fails at values which begin with `bad`, and tries them again after long."""
    app = awoke.App(APP, bootstrap_servers=servers, console=True, console_commands=True)

    @app.on(ORDERS, start=0, retry=awoke.Retry(backoff_s=(600.0, 600.0)), dead_letter=DEAD)
    def handle(message: awoke.Message[bytes]) -> None:
        say("handled", message.value.decode())
        if message.value.startswith(b"bad"):
            raise ValueError("no good")

    def tell(event: Event) -> None:
        say(event.name)

    for name in EVENTS:
        app.events.subscribe(name, tell)
    return app


def letters(producer: awoke.Producer) -> list[awoke.DeliveryHandle]:
    """Sends dead letters whose messages the app handles."""
    said = {
        dead_letter.TOPIC: ORDERS,
        **dict.fromkeys((dead_letter.TIMESTAMP, dead_letter.ERROR_TEXT), ""),
        dead_letter.PARTITION: "0",
        dead_letter.GROUP: APP,
        dead_letter.ATTEMPTS: "1",
        dead_letter.ERROR_TYPE: "builtins.ValueError",
        dead_letter.FAILED_AT: "0",
        dead_letter.HANDLER: "handle",
    }
    return [
        producer.produce(DEAD, b"again-%d" % number, headers=[*said.items(), (dead_letter.OFFSET, str(number))])
        for number in range(LETTERS)
    ]


def orders(producer: awoke.Producer) -> list[awoke.DeliveryHandle]:
    """Sends the messages of which some fail."""
    return [producer.produce(ORDERS, value, partition=0) for value in VALUES]


def say(*words: str) -> None:
    """Writes a line."""
    sys.stdout.write(" ".join(words) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Runs the app and its console until the input ends."""
    with EmbeddedCluster() as cluster:
        for topic in (ORDERS, DEAD):
            cluster.create_topic(topic, 1)
        settings = load({"bootstrap_servers": cluster.bootstrap_servers}).values
        app = app_of(cluster.bootstrap_servers)
        web = asgi(app, policy=lambda scope: Role.ADMIN, verbs=["*"], payloads=True, settings=settings)
        server = Server(web, "127.0.0.1", 0)
        with running(app) as runner:
            server.start()
            say(server.url)
            assert commands_of(runner).wait_open(60)
            awoke.wait_all((letters if sys.argv[1:] == ["letters"] else orders)(app.producer), 30)
            with awoke.Admin(cluster.bootstrap_servers) as admin:
                admin.alter_group_offsets("old", {(ORDERS, 0): 3})
            say("ready")
            sys.stdin.read()
        server.close()


if __name__ == "__main__":
    main()
