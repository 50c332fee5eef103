"""Uses of a delivery handle: wait, wait for many, time out, be called back.

`python examples/delivery_handles.py`, on a broker inside the process.
"""

from __future__ import annotations

import queue

import awoke
from awoke.testing import EmbeddedCluster

TOPIC = "letters"
WAIT_S = 30.0


def wait_for_one(producer: awoke.Producer) -> None:
    """The handle says where the broker put the message."""
    delivery = producer.produce(TOPIC, {"text": "hello"}, key="ada").wait(timeout_s=WAIT_S)
    print(f"wait: partition {delivery.partition}, offset {delivery.offset}")


def wait_for_many(producer: awoke.Producer) -> None:
    """Send first and wait afterwards, once: the messages travel together."""
    handles = producer.produce_many(TOPIC, [f"letter {number}" for number in range(10_000)])
    deliveries = awoke.wait_all(handles, timeout_s=WAIT_S)
    print(f"wait_all: {len(deliveries)} messages are there")


def be_called_back(producer: awoke.Producer) -> None:
    """The callback runs on a thread of awoke's and gets the handle, well delivered or not."""
    answered: queue.SimpleQueue[awoke.DeliveryHandle] = queue.SimpleQueue()
    producer.produce(TOPIC, "call me back").add_done_callback(answered.put)
    handle = answered.get(timeout=WAIT_S)
    if handle.exception() is None:
        print(f"callback: delivered at offset {handle.result().offset}")


def time_out(producer: awoke.Producer, cluster: EmbeddedCluster) -> None:
    """A timeout ends the wait, not the message: once the broker is back, it arrives."""
    cluster.set_broker_up(1, False)
    handle = producer.produce(TOPIC, "may linger")
    try:
        handle.wait(timeout_s=0.2)
    except awoke.DeliveryTimeout as error:
        print(f"timeout: {error}")
    cluster.set_broker_up(1, True)
    print(f"timeout: arrived after all at offset {handle.wait(timeout_s=WAIT_S).offset}")


def meet_a_full_queue(cluster: EmbeddedCluster) -> None:
    """A producer that may hold two messages refuses the third at once, if it may not wait for room."""
    limits = {"queue.buffering.max.messages": 2, "linger.ms": 1_000}
    with awoke.Producer(cluster.bootstrap_servers, kafka=limits) as producer:
        try:
            for number in range(3):
                producer.produce(TOPIC, f"letter {number}", timeout_s=0)
        except awoke.QueueFull as error:
            print(f"queue full: {error}")


def main() -> None:
    """Show one after the other."""
    with EmbeddedCluster() as cluster:
        cluster.create_topic(TOPIC, partitions=2)
        with awoke.Producer(cluster.bootstrap_servers, kafka={"reconnect.backoff.max.ms": 100}) as producer:
            wait_for_one(producer)
            wait_for_many(producer)
            be_called_back(producer)
            time_out(producer, cluster)
        meet_a_full_queue(cluster)


if __name__ == "__main__":
    main()
