"""awoke, at its default settings."""

from __future__ import annotations

import awoke
from bench.peers.common import Counter, task


def main() -> None:
    """Runs the app until the process is ended."""
    given = task()
    counter = Counter(given.messages, ends_process=not given.output)
    app = awoke.App("bench", group=given.group, kafka={"compression.type": "none"})

    def handle(message: awoke.Message[bytes]) -> bytes | None:
        counter.count()
        return message.value if given.output else None

    app.on(given.topic, **({"output": given.output} if given.output else {}))(handle)
    app.run(bootstrap_servers=given.bootstrap_servers)


if __name__ == "__main__":
    main()
