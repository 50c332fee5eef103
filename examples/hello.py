"""A function for each message, with typed values: `python examples/hello.py`."""

from __future__ import annotations

import logging
import queue

import msgspec

import awoke
from awoke.testing import EmbeddedCluster, running

WAIT_S = 30.0


class Signup(msgspec.Struct):
    """The values of topic `signups`: JSON, checked before the function is called."""

    name: str
    city: str


app = awoke.App("hello")
greetings: queue.SimpleQueue[str] = queue.SimpleQueue()


@app.on("signups", value=Signup)
def greet(message: awoke.Message[Signup]) -> None:
    """Called once for each message; several partitions at the same time."""
    signup = message.value
    greetings.put(f"Hello {signup.name} in {signup.city}! (offset {message.offset})")


def main() -> None:
    """Produce three messages, run the app beside them, and leave when all were greeted."""
    logging.basicConfig()  # Without it a handler's failure is not shown.
    with EmbeddedCluster() as cluster:
        cluster.create_topic("signups")
        with running(app, bootstrap_servers=cluster.bootstrap_servers):
            for name, city in (("Ada", "London"), ("Grace", "New York"), ("Emmy", "Göttingen")):
                app.producer.produce("signups", Signup(name, city), key=name)
            for _ in range(3):
                print(greetings.get(timeout=WAIT_S))


if __name__ == "__main__":
    main()
