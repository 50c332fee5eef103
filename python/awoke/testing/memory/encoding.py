"""Encodes messages as their producers do: as the topic of a route says."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from awoke._native import Message
from awoke.app.app import App
from awoke.declare.routing import Route
from awoke.payloads.message import Outgoing
from awoke.payloads.topic_formats import TopicFormats
from awoke.payloads.topics import Topic
from awoke.testing.messages import MessageParts, ascending, headers_of, message, parts_of


def parts_for(app: App, route: Route, messages: Iterable[Any]) -> dict[int, list[MessageParts]]:
    """Returns messages as brokers keep them in the topic of a route, by partition. A value becomes a message.

    Raises:
        EncodeError: a value can't be encoded for the topic.
    """
    value, key = route.types
    formats = TopicFormats([Topic(str(route.topic), value=value, key=key)], app.format, app.schemas)
    found: dict[int, list[MessageParts]] = defaultdict(list)
    for each in messages:
        given = each if isinstance(each, Message) else message(each)
        found[given.partition].append(_encoded(app, formats, route, given))
    return {number: ascending(each) for number, each in found.items()}


def _encoded(app: App, formats: TopicFormats, route: Route, given: Message[Any, Any]) -> MessageParts:
    """Returns the bytes of a message, of which the value and the key that are no bytes are encoded."""
    parts, value, key = parts_of(given), given.value, given.key
    if _is_plain(value) and _is_plain(key):
        return parts
    made = formats(Outgoing(str(route.topic), value, key, parts.headers))
    data = made.value if _is_plain(made.value) else app.format.encode(made.value)
    return parts._replace(
        value=parts.value if _is_plain(value) else data,
        key=made.key if _is_plain(made.key) and not _is_plain(key) else parts.key,
        headers=headers_of(made.headers),
    )


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bytes)
