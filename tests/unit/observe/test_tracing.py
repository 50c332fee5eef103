"""The spans of messages and batches, in both versions of the conventions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Literal

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import messaging_attributes

from awoke.observe.tracing import LINKS_MAX, NAMES, Conventions, Tracer

Version = pytest.mark.parametrize("version", ["1.24", "1.44"])


def message(offset: int, trace_id: int = 0) -> Any:
    headers = [("traceparent", f"00-{trace_id:032x}-{offset + 1:016x}-01".encode())] if trace_id else []
    return SimpleNamespace(topic="orders", partition=3, offset=offset, headers=headers)


class Batch(list[Any]):
    topic, partition = "orders", 3


def span_of(conventions: Conventions, *handled: Any) -> ReadableSpan:
    """Returns the span of a message, or of a batch of several."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = Tracer("shop", "audit", conventions)
    tracer._tracer = provider.get_tracer("awoke")
    batch: Any = Batch(handled)
    with tracer.message(handled[0], "charge") if len(handled) == 1 else tracer.batch(batch, "charge"):
        pass
    (span,) = exporter.get_finished_spans()
    return span


def test_a_span_of_the_present_conventions() -> None:
    span = span_of("1.44", message(7))
    assert span.name == "process orders"
    assert dict(span.attributes or {}) == {
        "messaging.system": "kafka",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.client.id": "shop",
        "messaging.consumer.group.name": "audit",
        "messaging.destination.name": "orders",
        "messaging.destination.partition.id": "3",
        "messaging.kafka.offset": 7,
        "code.function.name": "charge",
    }


def test_a_span_of_the_old_conventions() -> None:
    span = span_of("1.24", message(7))
    assert span.name == "orders process"
    assert dict(span.attributes or {}) == {
        "messaging.system": "kafka",
        "messaging.operation": "process",
        "messaging.client_id": "shop",
        "messaging.kafka.consumer.group": "audit",
        "messaging.destination.name": "orders",
        "messaging.kafka.destination.partition": 3,
        "messaging.kafka.message.offset": 7,
        "code.function": "charge",
    }


def test_opentelemetry_knows_the_names_of_the_present_conventions() -> None:
    known = {value: name for name, value in vars(messaging_attributes).items() if name.startswith("MESSAGING_")}
    names = [name for name in NAMES["1.44"] if name.startswith("messaging.")]
    assert [name for name in names if name not in known] == []
    assert {name for name in NAMES["1.24"] if name in known} >= {"messaging.kafka.message.offset"}


@Version
def test_a_batch_links_to_the_producers_of_its_messages_each_once(version: Literal["1.24", "1.44"]) -> None:
    span = span_of(version, message(0, 0xA1), message(1, 0xA2), message(1, 0xA2), message(2))
    assert [link.context.trace_id for link in span.links] == [0xA1, 0xA2]
    assert (span.attributes or {})["messaging.batch.message_count"] == 4
    assert span.parent is None


def test_a_batch_has_a_bound_of_links() -> None:
    span = span_of("1.44", *(message(offset, 0xA1) for offset in range(LINKS_MAX + 9)))
    assert len(span.links) == LINKS_MAX
