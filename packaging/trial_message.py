"""Sends a message through embedded brokers to a handler: the proof that an installed awoke works. Prints its version.

It runs with the installed package alone, in an environment that has nothing else.
"""

import platform
import threading

import awoke
from awoke.testing import EmbeddedCluster, running

WAIT_S = 60
app = awoke.App("trial")
seen: list[bytes] = []
handled = threading.Event()


@app.on("trials")
def note(message: awoke.Message[bytes]) -> None:
    """Keeps the value, and wakes the main thread."""
    seen.append(message.value)
    handled.set()


def main() -> None:
    """Ends with an error if the message is not handled in time."""
    with EmbeddedCluster() as cluster:
        cluster.create_topic("trials")
        with running(app, bootstrap_servers=cluster.bootstrap_servers):
            app.producer.produce("trials", b"a message").wait(WAIT_S)
            assert handled.wait(WAIT_S), "the message was not handled"
    assert seen == [b"a message"]
    print(f"{platform.python_version()} {platform.machine()}: a message went through awoke {awoke.__version__}")


if __name__ == "__main__":
    main()
