"""A Faust agent (faust-streaming), at its default settings, on raw bytes."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator

import faust  # type: ignore[import-not-found]

from bench.peers.common import Counter, task


def main() -> None:
    """Runs the worker until the process is ended."""
    given = task()
    counter = Counter(given.messages, ends_process=not given.output)
    app = faust.App(
        given.group,
        broker=f"kafka://{given.bootstrap_servers}",
        value_serializer="raw",
        key_serializer="raw",
        topic_disable_leader=True,
        web_enabled=False,
        datadir=tempfile.mkdtemp(),
        consumer_auto_offset_reset="earliest",
    )
    source = app.topic(given.topic, value_serializer="raw", key_serializer="raw")
    sink = app.topic(given.output, value_serializer="raw", key_serializer="raw") if given.output else None

    @app.agent(source)  # type: ignore[untyped-decorator]
    async def handle(stream: AsyncIterator[bytes]) -> None:
        async for key, value in stream.items():  # type: ignore[attr-defined]
            counter.count()
            if sink is not None:
                await sink.send(key=key, value=value)

    app.finalize()
    faust.Worker(app, loglevel="error").execute_from_commandline()


if __name__ == "__main__":
    main()
