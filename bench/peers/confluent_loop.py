"""A loop around confluent-kafka's `poll`, as its documentation has it, with offsets committed in the background."""

from __future__ import annotations

from confluent_kafka import Consumer, Producer

from bench.peers.common import Counter, task


def main() -> None:
    """Runs the loop until the process is ended."""
    given = task()
    counter = Counter(given.messages, ends_process=not given.output)
    servers = {"bootstrap.servers": given.bootstrap_servers}
    consumer = Consumer({**servers, "group.id": given.group, "auto.offset.reset": "earliest"})
    producer = Producer(servers) if given.output else None
    consumer.subscribe([given.topic])
    while True:
        message = consumer.poll(1.0)
        if message is None or message.error():
            if producer is not None:
                producer.flush()
            continue
        counter.count()
        if producer is not None:
            while True:
                try:
                    producer.produce(given.output, message.value(), message.key())
                    break
                except BufferError:
                    producer.poll(0.01)
            producer.poll(0)


if __name__ == "__main__":
    main()
