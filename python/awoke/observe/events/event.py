"""The base of all events: a name, a log level, typed fields, and the counter that counts it.

To add an event, write its class in the file of its section (`application`, `group`, `messages`, `clients`, `calls`),
name it in that file's `__all__`, and emit it. Its row in docs/events.md, its log line and its metric are made from the
class.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import msgspec


class Counter(NamedTuple):
    """A Prometheus counter that an event increments."""

    name: str
    text: str
    """The thing that it counts, with its unit."""
    labels: Mapping[str, str] = {}
    """The event's attribute that holds the value of each label, by the label's name."""


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened inside awoke, or in user code that emits it.

    The attributes of a subclass are the event's fields. The first paragraph of its docstring says when it happens.
    """

    name: ClassVar[str]
    """`app.started`, `job.failed`, `partitions.assigned`, …"""
    usual_level: ClassVar[int] = logging.DEBUG
    """The level of the log line, see `log_level`."""
    advice: ClassVar[str] = ""
    """The advice to an operator, for docs/events.md."""
    is_of_user_code: ClassVar[bool] = False
    """True: user code has raised `error`, and the log line has its traceback."""
    counter: ClassVar[Counter | None] = None
    """The metric that counts these events; None for events that are not counted."""

    @property
    def fields(self) -> Mapping[str, Any]:
        """The fields by name, in the order of the class."""
        return msgspec.structs.asdict(self)

    @property
    def log_level(self) -> int:
        """The level of this event's log line; some events are less, or more, than `usual_level`."""
        return self.usual_level

    @property
    def is_traced(self) -> bool:
        """True if the log line has the traceback of `error`."""
        return self.is_of_user_code

    @property
    def increment(self) -> int:
        """The number that this event adds to `counter`."""
        return 1

    @property
    def label_values(self) -> tuple[str, ...]:
        """The values of the counter's labels, in order."""
        return () if self.counter is None else tuple(str(getattr(self, each)) for each in self.counter.labels.values())


class NamedEvent(Event, frozen=True, kw_only=True):
    """An event that has no class of its own: user code has emitted it by name."""

    name: str  # type: ignore[misc]
    values: Mapping[str, Any]

    @property
    def fields(self) -> Mapping[str, Any]:
        """The fields by name, in the order in which they were given."""
        return self.values
