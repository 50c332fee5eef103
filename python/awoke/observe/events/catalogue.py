"""The catalogue of awoke's own events: every class, by section and by name, and the tables of docs/events.md."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

from awoke.errors import ConfigError
from awoke.observe.events import application, calls, clients, group, messages
from awoke.observe.events.event import Counter, Event, NamedEvent
from awoke.text.secrets import without_userinfo

SECTIONS: Mapping[str, ModuleType] = {
    "The app": application,
    "The group and its partitions": group,
    "Messages and jobs": messages,
    "Clients": clients,
    "Calls": calls,
}
"""The files of the catalogue, by the heading of their table."""


def _events_of(section: ModuleType) -> Iterator[type[Event]]:
    """Yields the events of a section in the order of its file, without the bases that only share fields."""
    for value in vars(section).values():
        is_class = inspect.isclass(value) and issubclass(value, Event)
        if is_class and value.__module__ == section.__name__ and hasattr(value, "name"):
            yield value


CATALOGUE: Mapping[str, type[Event]] = {
    event.name: event for section in SECTIONS.values() for event in _events_of(section)
}
"""All of awoke's own events by name."""


def counters() -> list[Counter]:
    """Returns the counters of all events, each once, in the order of the catalogue."""
    found = [event.counter for event in CATALOGUE.values() if event.counter is not None]
    return list({counter.name: counter for counter in found}.values())


def from_engine(client: str, name: str, fields: Mapping[str, Any]) -> Event:
    """Returns the event that the engine tells of. The only place where the engine's events become classes.

    librdkafka's texts quote addresses, whose user and password are cut out here.
    """
    safe = {key: without_userinfo(value) if isinstance(value, str) else value for key, value in fields.items()}
    return CATALOGUE[name](client=client, **safe)


def user_event(name: str, fields: Mapping[str, Any]) -> Event:
    """Returns an event of user code.

    Raises:
        ConfigError: The name is one of awoke's own events.
    """
    if name in CATALOGUE:
        raise ConfigError(f"{name!r} is an event of awoke's own, {CATALOGUE[name].__name__}; choose another name", name)
    return NamedEvent(name=name, values=fields)


def as_markdown() -> str:
    """Returns the catalogue as the tables of docs/events.md, one for each section."""
    return "\n".join(_section_as_markdown(heading, section) for heading, section in SECTIONS.items())


def _section_as_markdown(heading: str, section: ModuleType) -> str:
    rows = "".join(_row(event) for event in _events_of(section))
    return f"## {heading}\n\n| Event | Level | Fields | When | What to do |\n|---|---|---|---|---|\n{rows}"


def _row(event: type[Event]) -> str:
    level = "its own" if event.name == "client.log" else logging.getLevelName(event.usual_level).lower()
    fields = " ".join(f"`{each}`" for each in event.__struct_fields__)
    when = " ".join((inspect.getdoc(event) or "").split())
    return f"| `{event.name}` | {level} | {fields} | {when} | {event.advice} |\n"
