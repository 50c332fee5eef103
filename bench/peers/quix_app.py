"""A Quix Streams application, at its default settings (at least once)."""

from __future__ import annotations

from quixstreams import Application  # type: ignore[import-not-found]

from bench.peers.common import Counter, task


def main() -> None:
    """Runs the application until the process is ended."""
    given = task()
    counter = Counter(given.messages, ends_process=not given.output)
    app = Application(
        broker_address=given.bootstrap_servers,
        consumer_group=given.group,
        auto_offset_reset="earliest",
        use_changelog_topics=False,
        auto_create_topics=False,
    )
    frame = app.dataframe(app.topic(given.topic, value_deserializer="bytes", key_deserializer="bytes"))

    def handle(value: bytes) -> bytes:
        counter.count()
        return value

    frame = frame.apply(handle)
    if given.output:
        frame = frame.to_topic(app.topic(given.output, value_serializer="bytes", key_serializer="bytes"))
    app.run(frame)


if __name__ == "__main__":
    main()
