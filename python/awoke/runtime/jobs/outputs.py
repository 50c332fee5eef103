"""Turns what a route's function returns into records: a value, an `awoke.Record`, or several of them."""

from __future__ import annotations

import collections.abc
import types
import typing
from collections.abc import Callable, Sequence
from typing import Any

from awoke._native import DeliveryHandle, Message
from awoke.declare.annotations import contradicts, type_name
from awoke.declare.handlers import check_ran
from awoke.declare.routing import Route
from awoke.errors import EncodeError
from awoke.observe.tracing import Tracer
from awoke.payloads.message import Headers, Outgoing, Record, addressed, header_pairs
from awoke.runtime.process.context import Producing
from awoke.runtime.process.transactions import TransactionEntry

Result = Record | Outgoing
"""A record of the output, or of a topic of its own."""

Sent = tuple[int, DeliveryHandle, Result]
"""A record that was sent: the offset of its message, and its handle."""

Answer = Result | list[Result]
"""The records of one message."""

RECORDS = (Record, Outgoing)


class Yielded(list[Any]):
    """All that a generator has yielded for a message."""


PLAIN_MAX = 64
SEVERAL = (list, tuple)

MANY = (list, tuple, *(getattr(collections.abc, name) for name in ("Sequence", "Collection", "Iterable", "Iterator")))


class Outputs:
    """Makes the records of one route. Any thread."""

    def __init__(self, route: Route, tracer: Tracer | None) -> None:
        self._tracer = tracer
        self._name = route.name
        self._forwarded = route.forward_headers
        functions = [route.function] if route.handlers is None else [each.function for each in route.handlers.cases]
        many = [returns_records(each) for each in functions]
        self._is_always_many, self._may_be_many = all(many), any(many)
        is_plain = self._is_plain = tracer is None and not self._forwarded and not self._may_be_many
        self._said = None if self._may_be_many else route.result_type
        self._fitting: set[type] = set()
        """Types of results that suit the annotation. It grows."""
        self.plain: set[type] = {each for each in (bytes, str) if self._fits(each)} if is_plain else set()
        """Types of results that are sent as they are, under their message's key and without headers. It grows."""

    def answer(self, message: Message[Any], result: Any) -> Answer | None:
        """Returns the records of a message; None when its function returned nothing.

        Raises:
            TypeError: of several results, one is no `awoke.Record`; HandlerDidNotRun: it is a coroutine or the like.
            EncodeError: it is of another type than the function's annotation says.
        """
        if result is None:
            return None
        if type(result) in RECORDS:
            return self._complete(message, result)
        if type(result) is Yielded:
            return [self._complete(message, self._record(message, each)) for each in result if each is not None]
        if self._is_always_many or (type(result) in SEVERAL and self._are_records(result)):
            return [self._complete(message, each) for each in records_in(result)]
        check_ran(result, self._name)
        self._check_fits(result)
        if self._is_plain and len(self.plain) < PLAIN_MAX and not isinstance(result, SEVERAL):
            self.plain.add(type(result))
        return Record(result, message.raw_key, self.headers(message, None))

    def _fits(self, kind: type) -> bool:
        return self._said is None or kind in self._fitting or not contradicts(kind, self._said)

    def _check_fits(self, result: Any) -> None:
        kind = type(result)
        if not self._fits(kind):
            text = f"{self._name} returned a {kind.__qualname__}, and its annotation says {type_name(self._said)}"
            raise EncodeError(f"{text}: nothing is sent; correct one of them")
        if len(self._fitting) < PLAIN_MAX:
            self._fitting.add(kind)

    def headers(self, message: Message[Any], own: Headers | None) -> Headers | None:
        """Returns the headers of a record: those forwarded from its message, its own, and those of the trace."""
        if self._forwarded:
            own = [*self._forwarded_headers(message, own), *header_pairs(own)]
        return own if self._tracer is None else self._tracer.headers(header_pairs(own))

    def _are_records(self, results: Sequence[Any]) -> bool:
        return type(results[0]) in RECORDS if results else self._may_be_many

    def _record(self, message: Message[Any], result: Any) -> Result:
        if type(result) in RECORDS:
            return result  # type: ignore[no-any-return]
        self._check_fits(result)
        return Record(result, message.raw_key)

    def _complete(self, message: Message[Any], record: Result) -> Result:
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


def produce(producer: Producing, route: Route, result: Result) -> DeliveryHandle:
    """Sends a record to a route's output, or to its own topic."""
    assert route.output is not None
    topic, record = addressed(route.output, result)
    return producer.produce(topic, record.value, **record.options)


def add_answer(entry: TransactionEntry, topic: str, answer: Answer) -> None:
    """Adds the records of one message to a transaction: all, or none if one of them can't be sent. Does not block."""
    if isinstance(answer, list):
        entry.produce_all(addressed(topic, each) for each in answer)
    else:
        entry.add(*addressed(topic, answer))


def records_of(answer: Answer) -> Sequence[Result]:
    """Returns all records of an answer."""
    return answer if isinstance(answer, list) else (answer,)


def records_in(results: Any) -> list[Result]:
    """Returns what a function returned as records.

    Raises:
        TypeError: one of them is no `awoke.Record` and no `awoke.Outgoing`.
    """
    records = [results] if type(results) in RECORDS else list(results)
    for each in records:
        if type(each) not in RECORDS:
            text = f"a function that returns several records returns awoke.Record only, not {type(each).__qualname__}"
            raise TypeError(text)
    return records


def returns_records(function: Callable[..., Any]) -> bool:
    """Tells whether a function is annotated to return several records, so that an empty list sends nothing."""
    try:
        hint = typing.get_type_hints(function).get("return")
    except Exception:  # An annotation that cannot be read; only an empty list then has an unknown meaning.
        return False
    return any(
        typing.get_origin(kind) in MANY
        and any(each in RECORDS for part in typing.get_args(kind) for each in members(part))
        for kind in members(hint)
    )


def members(hint: Any) -> Sequence[Any]:
    """Returns the types of a union, and a type that is none as the only one."""
    return typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
