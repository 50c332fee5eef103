"""Every way into awoke that connects to brokers, each as a function that a test can expect an error of."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import awoke
from awoke.runtime.process.runner import AppRunner
from awoke.testing import running
from tests.support.clusters import unique

WITHIN_S = 10.0
"""The wait of an entrance whose default time-out is not 10 s."""
ENDS_WITHIN_S = 60.0


class Client(NamedTuple):
    """The connection settings of a client."""

    servers: str
    kafka: Mapping[str, str]
    oauth_token: Any = None

    @property
    def arguments(self) -> dict[str, Any]:
        """Returns the arguments of every class that connects."""
        return {"bootstrap_servers": self.servers, "kafka": self.kafka, "oauth_token": self.oauth_token}


def start_app(client: Client, topic: str) -> None:
    """Starts an app that reads a topic, and stops it."""
    app = awoke.App(unique("app"), **client.arguments)
    app.on(topic)(lambda message: None)
    with running(app):
        pass


def produce(client: Client, topic: str) -> None:
    """Produces one message and waits for its delivery."""
    with awoke.Producer(**client.arguments) as producer:
        producer.produce(topic, b"value").wait(WITHIN_S)


def produce_and_flush(client: Client, topic: str) -> None:
    """Produces one message that no thread waits for, until the producer is closed."""
    producer = awoke.Producer(**client.arguments)
    handle = producer.produce(topic, b"value")
    producer.close(WITHIN_S)
    handle.result()


def begin_transaction(client: Client, topic: str) -> None:
    """Produces one message in a transaction."""
    with (
        awoke.Producer(**client.arguments, transactional_id=unique("tx")) as producer,
        producer.transaction(WITHIN_S) as transaction,
    ):
        transaction.produce(topic, b"value")


def read(client: Client, topic: str) -> None:
    """Reads a topic to its end."""
    with awoke.Reader(topic, **client.arguments) as reader:
        list(reader.read_until_end(30))


def ask(client: Client, topic: str) -> None:
    """Asks for the brokers."""
    with awoke.Admin(**client.arguments) as admin:
        admin.brokers()


def change(client: Client, topic: str) -> None:
    """Creates a topic, without another question before."""
    with awoke.Admin(**client.arguments) as admin:
        admin.create_topic(unique("created"))


def call(client: Client, topic: str) -> None:
    """Opens a caller of a service."""
    with awoke.rpc.Caller(unique("service"), **client.arguments, create_topics=True):
        pass


ENTRANCES: list[Callable[[Client, str], None]] = [
    start_app,
    produce,
    produce_and_flush,
    begin_transaction,
    read,
    ask,
    change,
    call,
]


def try_all(client: Client, topic: str) -> dict[str, BaseException | None]:
    """Tries every entrance, all at once; returns the error of each."""

    def attempt(entrance: Callable[[Client, str], None]) -> BaseException | None:
        try:
            entrance(client, topic)
        except BaseException as error:
            return error
        return None

    with ThreadPoolExecutor(len(ENTRANCES), "entrance") as pool:
        errors = list(pool.map(attempt, ENTRANCES))
    return {entrance.__name__: error for entrance, error in zip(ENTRANCES, errors, strict=True)}


def doctor(client: Client, *options: str) -> subprocess.CompletedProcess[str]:
    """Runs `awoke doctor`."""
    kafka = [part for name, value in client.kafka.items() for part in ("--kafka", f"{name}={value}")]
    command = [sys.executable, "-m", "awoke", "doctor", "--bootstrap-servers", client.servers, *kafka, *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


__all__ = ["ENTRANCES", "Client", "doctor", "try_all"]


def error_of(app: awoke.App) -> BaseException:
    """Starts an app that must end by itself; returns the error with which it does."""
    over, errors = threading.Event(), list[BaseException]()

    def on_fatal_error(error: BaseException) -> None:
        errors.append(error)
        over.set()

    server = AppRunner(app, on_fatal_error)
    try:
        server.start()
        assert over.wait(ENDS_WITHIN_S), "it goes on as if nothing were wrong"
    except awoke.AwokeError as error:
        errors.append(error)
    finally:
        server.stop()
    return errors[0]
