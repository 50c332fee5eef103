"""OpenTelemetry spans that continue the trace of a message's producer. Needs the extra `otel`.

Only messages and batches have spans: waiting makes none. Names and attributes follow OpenTelemetry's
semantic conventions for messaging.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from awoke._native import Batch, Message
from awoke.errors import ConfigError

if TYPE_CHECKING:
    from opentelemetry.context import Context

LINKS_MAX = 128
"""The most producers' contexts that the span of a batch links to."""

Headers = Sequence[tuple[str, bytes | str | None]]

Conventions = Literal["1.24", "1.44"]
"""Versions of OpenTelemetry's semantic conventions. Between them, attributes got other names."""


class Names(NamedTuple):
    """The attributes of one version that the other names differently."""

    client: str
    group: str
    operation: str
    partition: str
    offset: str
    function: str


NAMES: dict[Conventions, Names] = {
    "1.24": Names(
        "messaging.client_id",
        "messaging.kafka.consumer.group",
        "messaging.operation",
        "messaging.kafka.destination.partition",
        "messaging.kafka.message.offset",
        "code.function",
    ),
    "1.44": Names(
        "messaging.client.id",
        "messaging.consumer.group.name",
        "messaging.operation.type",
        "messaging.destination.partition.id",
        "messaging.kafka.offset",
        "code.function.name",
    ),
}


class Tracer:
    """Makes the spans of one app. Any thread, and any task, may call everything here.

    Raises:
        ConfigError: OpenTelemetry is not installed.
    """

    def __init__(self, app: str, group: str, conventions: Conventions = "1.44") -> None:
        try:
            from opentelemetry import propagate, trace
        except ImportError:
            text = "tracing needs OpenTelemetry: pip install 'awoke[otel]', or set tracing to false"
            raise ConfigError(text, "tracing") from None
        self._trace = trace
        self._propagate = propagate
        self._names, self._is_old = NAMES[conventions], conventions == "1.24"
        schema = f"https://opentelemetry.io/schemas/{conventions}.0"
        self._tracer = trace.get_tracer("awoke", schema_url=schema)
        self._attributes = {
            "messaging.system": "kafka",
            self._names.group: group,
            self._names.client: app,
            self._names.operation: "process",
        }
        if not self._is_old:
            self._attributes["messaging.operation.name"] = "process"

    @contextlib.contextmanager
    def message(self, message: Message[Any], handler: str) -> Iterator[None]:
        """Opens a span for the processing of a message; its parent is the producer's span."""
        attributes = {
            **self._of(message.topic, message.partition, handler),
            self._names.offset: message.offset,
        }
        with self._tracer.start_as_current_span(
            self._span_name(message.topic),
            context=self._context(message),
            kind=self._trace.SpanKind.CONSUMER,
            attributes=attributes,
        ):
            yield

    @contextlib.contextmanager
    def batch(self, batch: Batch[Any], handler: str) -> Iterator[None]:
        """Opens a span for the processing of a batch, with links to the producers' spans of its messages."""
        attributes = {
            **self._of(batch.topic, batch.partition, handler),
            "messaging.batch.message_count": len(batch),
        }
        with self._tracer.start_as_current_span(
            self._span_name(batch.topic),
            kind=self._trace.SpanKind.CONSUMER,
            attributes=attributes,
            links=self._links(batch),
        ):
            yield

    def headers(self, headers: Headers = ()) -> list[tuple[str, bytes | str | None]]:
        """Returns headers for a message to be sent, in which the current context replaces another one."""
        carrier: dict[str, str] = {}
        self._propagate.inject(carrier)
        kept = [pair for pair in headers if pair[0] not in self._propagate.get_global_textmap().fields]
        return [*kept, *carrier.items()]

    def _of(self, topic: str, partition: int, handler: str) -> dict[str, Any]:
        return {
            **self._attributes,
            "messaging.destination.name": topic,
            self._names.partition: partition if self._is_old else str(partition),
            self._names.function: handler,
        }

    def _span_name(self, topic: str) -> str:
        return f"{topic} process" if self._is_old else f"process {topic}"

    def _context(self, message: Message[Any]) -> Context:
        carrier = {name: value.decode(errors="replace") for name, value in message.headers if value is not None}
        return self._propagate.extract(carrier)

    def _links(self, batch: Batch[Any]) -> list[Any]:
        found: dict[int, Any] = {}
        for message in batch:
            span = self._trace.get_current_span(self._context(message)).get_span_context()
            if span.is_valid:
                found.setdefault(span.span_id, self._trace.Link(span))
            if len(found) == LINKS_MAX:
                break
        return list(found.values())


@contextlib.contextmanager
def continued(carrier: Mapping[str, str]) -> Iterator[None]:
    """Continues the trace in the headers of a request within the block, unless a span is open already.

    Needs OpenTelemetry, as `Tracer` does.
    """
    from opentelemetry import context, propagate, trace

    if trace.get_current_span().get_span_context().is_valid:
        yield
        return
    token = context.attach(propagate.extract(carrier))
    try:
        yield
    finally:
        context.detach(token)
