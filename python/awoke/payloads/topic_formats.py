"""The formats of topics, applied to what is sent to them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from awoke.payloads.formats.format import DESCRIBING, EVENT, Encode, Format, Payload, encoder_of
from awoke.payloads.message import Outgoing, header_pairs
from awoke.payloads.registry.schema import Part
from awoke.payloads.registry.schemas import SchemaNeeded, Schemas, load_here
from awoke.payloads.topics import Topic


class TopicFormats:
    """The formats of the topics that have some: the last step of outgoing messages. Any thread.

    Bytes and None are sent as they are, unless the format says otherwise. What a format needs of the registry is
    loaded on the thread that sends. A thread with a running event loop must not wait: there it raises `SchemaNeeded`.
    """

    def __init__(self, topics: Iterable[str], default: Format, schemas: Schemas) -> None:
        self._default, self._schemas = default, schemas
        self._parts: dict[str, list[_SentPart]] = {}
        """The parts of messages that are encoded, by topic."""
        for topic in topics:
            self.add(topic)

    def __bool__(self) -> bool:
        return bool(self._parts)

    def add(self, topic: str) -> None:
        """Adds a topic, if it has types that need an encoder of their own."""
        if not isinstance(topic, Topic):
            return
        said: tuple[tuple[Part, Any], ...] = (("key", topic.key), ("value", topic.value))
        parts = []
        for part, kind in said:
            encode = encoder_of(kind, str(topic), part, self._default, self._schemas)
            if encode is not None:
                parts.append(_SentPart(part, kind, encode))
        if parts:
            self._parts[str(topic)] = parts

    def __call__(self, message: Outgoing) -> Outgoing:
        """Returns the message with its key and value as bytes.

        Raises:
            EncodeError: One of them can't be encoded. RegistryError: The registry does not give a schema.
        """
        for part in self._parts.get(message.topic, ()):
            message = part.encoded(message)
        return message


class _SentPart(NamedTuple):
    """The keys, or the values, of one topic, and how they are encoded."""

    name: Part
    kind: Any
    """Their type or format."""
    encode: Encode

    def encoded(self, message: Outgoing) -> Outgoing:
        """Returns the message with this part as bytes."""
        value = getattr(message, self.name)
        if value is None or self._is_encoded(value, message):
            return message
        data, headers = _encoded(self.encode, value)
        if headers or message.headers:
            # Headers that were carried on from another message tell how that one was to be read.
            old = {*DESCRIBING[self.name], *(name for name, _ in headers)}
            is_event = any(name.startswith(EVENT) for name in old)
            kept = [
                pair
                for pair in header_pairs(message.headers)
                if pair[0] not in old and not (is_event and pair[0].startswith(EVENT))
            ]
            message = message._replace(headers=[*kept, *headers])
        return message._replace(value=data) if self.name == "value" else message._replace(key=data)

    def _is_encoded(self, value: Any, message: Outgoing) -> bool:
        if type(value) is not bytes or not isinstance(self.kind, Format):
            return type(value) is bytes
        headers = [
            (name, each.encode() if isinstance(each, str) else each) for name, each in header_pairs(message.headers)
        ]
        return self.kind.is_encoded(value, headers)


def _encoded(encode: Encode, value: Any) -> Payload:
    try:
        return encode(value)
    except SchemaNeeded as needed:
        payload: Payload = load_here(encode, needed, value)
        return payload
