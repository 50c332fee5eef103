"""Turns what a route's function returns into records: a value, an `awoke.Record`, or several of them."""

from __future__ import annotations

import collections.abc
import contextlib
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from awoke._native import DeliveryHandle, Message
from awoke.drive import drive
from awoke.handlers import check_ran
from awoke.message import Headers, Record
from awoke.routing import Route
from awoke.runtime.context import OutputContext
from awoke.runtime.transactions import TransactionEntry
from awoke.tracing import Tracer

Sent = tuple[int, DeliveryHandle, Any, bytes | str | None, Headers | None, int | None, int | None]
"""A produced record, where one job of a partition runs at a time: offset of its message, handle, parts of a `Record`.

A plain tuple, because one is made for each message.
"""

Answer = Record | list[Record]
"""The records of one message."""

MANY = (list, tuple, *(getattr(collections.abc, name) for name in ("Sequence", "Collection", "Iterable", "Iterator")))


class Outputs:
    """Makes the records of one route. Any thread."""

    def __init__(self, route: Route, tracer: Tracer | None) -> None:
        self._tracer = tracer
        self._name = route.name
        self._forwarded = route.forward_headers
        self._is_always_many = returns_records(route.function)
        self.is_plain = not self._forwarded and not self._is_always_many
        """True if a result that is no record, list or tuple is sent as it is, under its message's key and without
        headers."""

    def answer(self, message: Message[Any], result: Any) -> Answer | None:
        """Returns the records of a message; None when its function returned nothing.

        Raises:
            TypeError: of several results, one is no `awoke.Record`; HandlerDidNotRun: it is a coroutine or the like.
        """
        if result is None:
            return None
        if type(result) is Record:
            return self._complete(message, result)
        if self._is_always_many or (type(result) in (list, tuple) and result and type(result[0]) is Record):
            return [self._complete(message, each) for each in records_in(result)]
        check_ran(result, self._name)
        return Record(result, message.key, self.headers(message, None))

    def headers(self, message: Message[Any], own: Headers | None) -> Headers | None:
        """Returns the headers of a record: those forwarded from its message, its own, and those of the trace."""
        if self._forwarded:
            own = [*self._forwarded_headers(message, own), *pairs_of(own)]
        return own if self._tracer is None else self._tracer.headers(pairs_of(own))

    def _complete(self, message: Message[Any], record: Record) -> Record:
        if not self._forwarded and self._tracer is None:
            return record
        return record._replace(headers=self.headers(message, record.headers))

    def _forwarded_headers(self, message: Message[Any], own: Headers | None) -> list[tuple[str, bytes | None]]:
        """Returns the message's headers that the route forwards, without those that the record sets itself."""
        taken = {name for name, _ in pairs_of(own)}
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


def sender(route: Route, context: OutputContext) -> Callable[[Message[Any], Any], Sent | list[Sent] | None]:
    """Returns what produces a message's result to the output of its route. It blocks while the producer's queue is
    full."""
    output = route.output
    assert output is not None
    outputs = Outputs(route, context.tracer)
    is_plain, tracer, name = outputs.is_plain, context.tracer, route.name

    def produce(offset: int, record: Record) -> Sent:
        value, key, headers, partition, timestamp_ms = record
        handle = context.producer.produce(
            output, value, key=key, headers=headers, partition=partition, timestamp_ms=timestamp_ms
        )
        return offset, handle, value, key, headers, partition, timestamp_ms

    def send(message: Message[Any], result: Any) -> Sent | list[Sent] | None:
        if is_plain and result is not None and type(result) not in NOT_PLAIN:  # As below, in less time.
            check_ran(result, name)
            headers = None if tracer is None else tracer.headers()
            key = message.key
            handle = context.producer.produce(output, result, key=key, headers=headers)
            return message.offset, handle, result, key, headers, None, None
        answer = outputs.answer(message, result)
        if answer is None or isinstance(answer, Record):
            return None if answer is None else produce(message.offset, answer)
        return [produce(message.offset, each) for each in answer]

    return send


NOT_PLAIN = frozenset({Record, list, tuple})
NO_SPAN: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()


def answering(route: Route, tracer: Tracer | None) -> Callable[[Message[Any], Any], Answer | None]:
    """Returns what makes the records of a message of its result."""
    return Outputs(route, tracer).answer


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


def pairs_of(headers: Headers | None) -> list[tuple[str, bytes | str | None]]:
    """Returns headers as pairs, in order."""
    if headers is None:
        return []
    return list(headers.items()) if isinstance(headers, Mapping) else list(headers)
