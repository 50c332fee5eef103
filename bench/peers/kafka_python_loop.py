"""A loop over kafka-python's consumer, as its documentation has it."""

from __future__ import annotations

from kafka import KafkaConsumer, KafkaProducer  # type: ignore[import-not-found]

from bench.peers.common import Counter, task


def main() -> None:
    """Runs the loop until the process is ended."""
    given = task()
    counter = Counter(given.messages, ends_process=not given.output)
    servers = given.bootstrap_servers.split(",")
    consumer = KafkaConsumer(given.topic, bootstrap_servers=servers, group_id=given.group, auto_offset_reset="earliest")
    producer = KafkaProducer(bootstrap_servers=servers, linger_ms=5) if given.output else None
    for message in consumer:
        counter.count()
        if producer is not None:
            producer.send(given.output, message.value, message.key)


if __name__ == "__main__":
    main()
