"""Compares the price of each format per message with that of its library alone, in one process.

The order has three lines and some 100 bytes. awoke's side is the decoder and the encoder as a route and a topic call
them, with the schema cached. The library's side makes and reads the same bytes: fastavro to and from dicts, the others
to and from the class.
"""

from __future__ import annotations

import argparse
import functools
import gc
import io
import json
import statistics
import time
import uuid
from collections.abc import Callable
from typing import Any, NamedTuple

import fastavro
import msgspec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

import awoke
from awoke.payloads.formats.avro_types import schema_of
from awoke.payloads.formats.by_type import BY_TYPE
from awoke.payloads.formats.format import decoder_of, encoder_of, format_of
from tests.support.known_schemas import KnownSchemas
from tests.support.protobuf_classes import Amount
from tests.support.protobuf_classes import Line as LinePb
from tests.support.protobuf_classes import Order as OrderPb


class Line(msgspec.Struct):
    """A line of an order."""

    sku: str
    count: int
    price: float


class Order(msgspec.Struct):
    """An order."""

    id: int
    customer: str
    lines: list[Line]
    note: str | None = None
    is_paid: bool = False


ORDER = Order(4711, "c-123456", [Line("apple", 1, 2.5), Line("pear", 2, 3.5), Line("plum", 3, 0.5)])
MESSAGE = OrderPb(id=4711, lines=[LinePb(sku=each.sku) for each in ORDER.lines], price=Amount(cents=950))
PLAIN: Any = msgspec.to_builtins(ORDER)
KEY = b"k" * 32


class Row(NamedTuple):
    """A format, and what its library does alone."""

    name: str
    form: Any
    value: Any
    write: Callable[[], object]
    read: Callable[[], object]


def rows() -> list[Row]:
    """Returns the formats that are compared."""
    schema = fastavro.parse_schema(schema_of(Order))
    avro, written = io.BytesIO(), MESSAGE.SerializeToString()
    fastavro.schemaless_writer(avro, schema, PLAIN)
    data, packed = msgspec.json.encode(ORDER), msgspec.msgpack.encode(ORDER)
    read_json, read_packed = msgspec.json.Decoder(Order).decode, msgspec.msgpack.Decoder(Order).decode
    write_json, write_packed = msgspec.json.Encoder().encode, msgspec.msgpack.Encoder().encode
    cipher, nonce = AESGCM(KEY), uuid.uuid4().bytes[:12]
    sealed = cipher.encrypt(nonce, data, b"k")

    def write_avro() -> bytes:
        stream = io.BytesIO()
        fastavro.schemaless_writer(stream, schema, PLAIN)
        return stream.getvalue()

    return [
        Row("JSON (msgspec)", Order, ORDER, lambda: write_json(ORDER), lambda: read_json(data)),
        Row(
            "MessagePack (msgspec)",
            awoke.msgpack(Order),
            ORDER,
            lambda: write_packed(ORDER),
            lambda: read_packed(packed),
        ),
        Row(
            "JSON Schema (msgspec)", awoke.json_schema(Order), ORDER, lambda: write_json(ORDER), lambda: read_json(data)
        ),
        Row(
            "Avro (fastavro, dicts)",
            awoke.avro(schema=schema_of(Order)),
            PLAIN,
            write_avro,
            lambda: fastavro.schemaless_reader(io.BytesIO(avro.getvalue()), schema, None),
        ),
        Row(
            "Avro (fastavro, class)",
            awoke.avro(Order),
            ORDER,
            write_avro,
            lambda: fastavro.schemaless_reader(io.BytesIO(avro.getvalue()), schema, None),
        ),
        Row(
            "Protobuf", awoke.protobuf(OrderPb), MESSAGE, MESSAGE.SerializeToString, lambda: OrderPb.FromString(written)
        ),
        Row(
            "encrypted JSON (AES-256-GCM)",
            awoke.encrypted(Order, keys={"k": KEY}, current="k"),
            ORDER,
            lambda: cipher.encrypt(nonce, write_json(ORDER), b"k"),
            lambda: read_json(cipher.decrypt(nonce, sealed, b"k")),
        ),
        Row(
            "CloudEvent, binary (msgspec)",
            awoke.cloudevents(Order),
            awoke.CloudEvent(data=ORDER, type="order.placed", source="/shop"),
            lambda: write_json(ORDER),
            lambda: read_json(data),
        ),
    ]


def median_us(call: Callable[[], object], runs: int, calls: int) -> float:
    """Returns the median time of a call, in microseconds, over several runs of many calls."""
    found = []
    for _ in range(runs):
        gc.collect()
        began_s = time.perf_counter()
        for _ in range(calls):
            call()
        found.append((time.perf_counter() - began_s) / calls * 1e6)
    return statistics.median(found)


def measured(row: Row, runs: int, calls: int) -> list[str]:
    """Returns a line of the table: for reading and for writing awoke, the library alone, and the ratio."""
    format, schemas = format_of(row.form, BY_TYPE), KnownSchemas()
    encode: Any = encoder_of(row.form, "orders", "value", BY_TYPE, schemas) or BY_TYPE.encode
    encoded = encode(row.value)
    data, headers = (encoded, ()) if isinstance(encoded, bytes) else encoded
    decode = decoder_of(format, "orders", "value", schemas)
    assert decode is not None
    read = functools.partial(decode, data, list(headers)) if format.reads_headers else functools.partial(decode, data)
    pairs = [(read, row.read), (functools.partial(encode, row.value), row.write)]
    cells = [row.name]
    for ours, theirs in pairs:
        ours_us, theirs_us = median_us(ours, runs, calls), median_us(theirs, runs, calls)
        cells += [f"{ours_us:.2f}", f"{theirs_us:.2f}", f"{ours_us / theirs_us:.2f}"]
    return cells


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--messages", type=int, default=50_000)
    parser.add_argument("--json", action="store_true", help="one document a line")
    parser.add_argument("--bootstrap-servers", help="not used: it needs no broker")
    options = parser.parse_args()
    names = ["format", "read us", "alone us", "ratio", "write us", "alone us", "ratio"]
    found = [measured(row, options.runs, options.messages) for row in rows()]
    if options.json:
        for cells in found:
            print(json.dumps(cells))
        return
    print("| " + " | ".join(names) + " |")
    print("|" + "---|" * len(names))
    for cells in found:
        print("| " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
