"""Turns what a route's function returns into records: a value, an `awoke.Record`, or several of them."""

from __future__ import annotations

import collections.abc
import contextlib
import types
import typing
from collections.abc import Callable, Sequence
from typing import Any

from awoke._native import DeliveryHandle, Message
from awoke.drive import drive
from awoke.handlers import check_ran
from awoke.message import Headers, Outgoing, Record, header_pairs
from awoke.middleware import Middleware
from awoke.routing import Route
from awoke.runtime.context import OutputContext
from awoke.runtime.transactions import TransactionEntry
from awoke.tracing import Tracer

Sent = tuple[int, DeliveryHandle, Record]
"""A record that was sent: the offset of its message, and its handle."""

Answer = Record | list[Record]
"""The records of one message."""

PLAIN_MAX = 64
NOTHING: frozenset[type] = frozenset()
"""The types of results that are sent as they are, where all pass middleware."""
SEVERAL = (list, tuple)

MANY = (list, tuple, *(getattr(collections.abc, name) for name in ("Sequence", "Collection", "Iterable", "Iterator")))


class Outputs:
    """Makes the records of one route. Any thread."""

    def __init__(self, route: Route, tracer: Tracer | None) -> None:
        self._tracer = tracer
        self._name = route.name
        self._forwarded = route.forward_headers
        self._is_always_many = returns_records(route.function)
        is_plain = tracer is None and not self._forwarded and not self._is_always_many
        self.plain: set[type] = {bytes, str} if is_plain else set()
        """Types of results that are sent as they are, under their message's key and without headers. It grows."""

    def answer(self, message: Message[Any], result: Any) -> Answer | None:
        """Returns the records of a message; None when its function returned nothing.

        Raises:
            TypeError: of several results, one is no `awoke.Record`; HandlerDidNotRun: it is a coroutine or the like.
        """
        if result is None:
            return None
        if type(result) is Record:
            return self._complete(message, result)
        if self._is_always_many or (type(result) in SEVERAL and result and type(result[0]) is Record):
            return [self._complete(message, each) for each in records_in(result)]
        check_ran(result, self._name)
        if self.plain and len(self.plain) < PLAIN_MAX and not isinstance(result, SEVERAL):
            self.plain.add(type(result))
        return Record(result, message.raw_key, self.headers(message, None))

    def headers(self, message: Message[Any], own: Headers | None) -> Headers | None:
        """Returns the headers of a record: those forwarded from its message, its own, and those of the trace."""
        if self._forwarded:
            own = [*self._forwarded_headers(message, own), *header_pairs(own)]
        return own if self._tracer is None else self._tracer.headers(header_pairs(own))

    def _complete(self, message: Message[Any], record: Record) -> Record:
        if not self._forwarded and self._tracer is None:
            return record
        return record._replace(headers=self.headers(message, record.headers))

    def _forwarded_headers(self, message: Message[Any], own: Headers | None) -> list[tuple[str, bytes | None]]:
        """Returns the message's headers that the route forwards, without those that the record sets itself."""
        taken = {name for name, _ in header_pairs(own)}
        wanted = self._forwarded
        return [
            pair for pair in message.headers if pair[0] not in taken and (isinstance(wanted, bool) or pair[0] in wanted)
        ]


Then = Callable[[Message[Any], Any], Any]
"""Turns what a function returned for a message into what is handed on."""


def called(route: Route, tracer: Tracer | None, then: Then | None = None) -> Callable[..., Any]:
    """Returns what a strategy calls for each message: a route's function, its span around it, and `then` behind it.

    It returns a coroutine where the function is `async def`.
    """
    function, is_async, name = route.function, route.is_async, route.name
    if tracer is None and then is None:
        return function

    async def flow(message: Message[Any]) -> Any:
        with NO_SPAN if tracer is None else tracer.message(message, name):
            result = function(message)
            if is_async:
                result = await result
            return result if then is None else then(message, result)

    if is_async:
        return flow
    if tracer is None and then is not None:
        return lambda message: then(message, function(message))  # As `flow`, without a coroutine for each message.
    return lambda message: drive(flow(message))


def sender(
    route: Route, context: OutputContext, answer: Callable[[Message[Any], Any], Answer | None]
) -> Callable[[Message[Any], Any], Sequence[Sent]]:
    """Returns what sends the records of a message's result to the output of its route. It blocks while the producer's
    queue is full."""
    output = route.output
    assert output is not None

    def produce(offset: int, record: Record) -> Sent:
        return offset, context.producer.produce(output, record.value, **record.options), record

    def send(message: Message[Any], result: Any) -> Sequence[Sent]:
        records = answer(message, result)
        return () if records is None else [produce(message.offset, each) for each in records_of(records)]

    return send


NO_SPAN: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()


def answering(route: Route, tracer: Tracer | None) -> Callable[[Message[Any], Any], Answer | None]:
    """Returns what makes the records of a message of its result."""
    return Outputs(route, tracer).answer


def encodable(
    answer: Callable[[Message[Any], Any], Answer | None], route: Route, encode: Middleware
) -> Callable[[Message[Any], Any], Answer | None]:
    """Returns the same, but raises where a record can't be encoded now, as for a schema that is not loaded.

    A result that waits for its turn can't wait for a schema, too: results behind it would be sent before.
    """
    output = route.output
    assert output is not None

    def answer_encodable(message: Message[Any], result: Any) -> Answer | None:
        found = answer(message, result)
        for record in () if found is None else records_of(found):
            encode(Outgoing(output, *record))
        return found

    return answer_encodable


def add_answer(entry: TransactionEntry, topic: str, answer: Answer) -> None:
    """Adds the records of one message to a transaction: all, or none if one of them can't be sent. Does not block."""
    if isinstance(answer, list):
        entry.produce_all(topic, answer)
    else:
        entry.add(topic, answer)


def records_of(answer: Answer) -> Sequence[Record]:
    """Returns all records of an answer."""
    return (answer,) if isinstance(answer, Record) else answer


def records_in(results: Any) -> list[Record]:
    """Returns what a function returned as records.

    Raises:
        TypeError: one of them is no `awoke.Record`.
    """
    records = [results] if type(results) is Record else list(results)
    for each in records:
        if type(each) is not Record:
            text = f"a function that returns several records returns awoke.Record only, not {type(each).__qualname__}"
            raise TypeError(text)
    return records


def returns_records(function: Callable[..., Any]) -> bool:
    """Tells whether a function is annotated to return several records, so that an empty list sends nothing."""
    try:
        hint = typing.get_type_hints(function).get("return")
    except Exception:  # An annotation that cannot be read; only an empty list then has an unknown meaning.
        return False
    kinds = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    return any(typing.get_origin(kind) in MANY and Record in typing.get_args(kind) for kind in kinds)
