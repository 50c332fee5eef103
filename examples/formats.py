"""One topic for each way to write values: JSON of several kinds of classes, MessagePack, text, Protobuf, CloudEvents,
and encrypted values.

Run it without anything else: `python -m examples.formats` brings its own broker. It needs the extras that the formats
need: `pip install awoke[pydantic,protobuf,encryption]`.
"""

from __future__ import annotations

import dataclasses
import os
import threading
from typing import Any

import msgspec
import pydantic
from google.protobuf.wrappers_pb2 import StringValue

import awoke
from awoke.testing import EmbeddedCluster, running


class Order(msgspec.Struct):
    """A class of msgspec's, the fastest to read as JSON."""

    article: str
    count: int


@dataclasses.dataclass
class Customer:
    """A dataclass."""

    name: str


class Address(pydantic.BaseModel):
    """A model of pydantic's, with a rule of its own."""

    city: str = pydantic.Field(min_length=1)


KEYS = {"2026": os.urandom(32)}
"""Take your own from where you keep secrets."""

app = awoke.App("formats")
examples: list[tuple[awoke.Topic, Any]] = [
    (app.topic("orders", value=Order), Order("tea", 3)),
    (app.topic("customers", value=Customer, key=int), Customer("Ada")),
    (app.topic("addresses", value=Address), Address(city="Paris")),
    (app.topic("packed", value=awoke.msgpack(Order)), Order("tea", 4)),
    (app.topic("notes", value=str), "all is well"),
    (app.topic("wrapped", value=StringValue), StringValue(value="as protobuf")),
    (
        app.topic("placed", value=awoke.cloudevents(Order)),
        awoke.CloudEvent(data=Order("tea", 5), type="order.placed", source="/shop"),
    ),
    (app.topic("patients", value=awoke.encrypted(Customer, keys=KEYS, current="2026")), Customer("Grace")),
]
left = {str(topic) for topic, _ in examples}
all_seen = threading.Event()


@app.on([topic for topic, _ in examples])
def show(message: awoke.Message[Any]) -> None:
    """Shows the value, and the bytes that were sent for it."""
    value = message.value.data if isinstance(message.value, awoke.CloudEvent) else message.value
    print(f"{message.topic}: {value!r} of {len(message.raw_value or b'')} bytes")
    left.discard(message.topic)
    if not left:
        all_seen.set()


def main() -> None:
    """Sends one value to each topic."""
    with EmbeddedCluster() as cluster:
        for topic, _ in examples:
            cluster.create_topic(topic)
        with running(app, bootstrap_servers=cluster.bootstrap_servers):
            for topic, value in examples:
                app.producer.produce(topic, value, key=1 if topic == "customers" else None)
            all_seen.wait(30)
    print("left:", sorted(left))


if __name__ == "__main__":
    main()
