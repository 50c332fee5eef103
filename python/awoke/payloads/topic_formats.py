"""The formats of topics, applied to what is sent to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from awoke.errors import ConfigError, EncodeError
from awoke.payloads.formats.format import DESCRIBING, EVENT, Encode, Format, Payload, encoder_of
from awoke.payloads.message import Outgoing, header_pairs
from awoke.payloads.registry.cache import BoundedDict, Counts
from awoke.payloads.registry.schema import Part
from awoke.payloads.registry.schemas import SchemaNeeded, Schemas, load_here
from awoke.payloads.topics import Topic

PARTS: tuple[Part, Part] = ("key", "value")
"""In this order: a value may be bound to its message's key as bytes."""


class TopicFormats:
    """The formats of the topics that have some: the last step of outgoing messages. Any thread.

    A topic has the format of the object that is passed, or else what the program says of its name: the formats by which
    it is sent to, and those by which it is read. So no value leaves without the format of its topic. Bytes and None are
    sent as they are, unless the format says otherwise. What a format needs of the registry is loaded on the thread that
    sends. A thread with a running event loop must not wait: there it raises `SchemaNeeded`.
    """

    def __init__(self, topics: Iterable[str], default: Format, schemas: Schemas) -> None:
        self._default, self._schemas = default, schemas
        self._sent: dict[str, dict[Part, _Kind]] = {}
        """What topics are said to be sent as, by their names."""
        self._read: list[tuple[Callable[[str], bool], dict[Part, _Kind]]] = []
        """The formats by which topics are read, and which topics these are."""
        self._of_names: dict[str, list[_SentPart]] = BoundedDict(Counts())
        """The parts of messages that are encoded, by topic."""
        self._of_objects: dict[str, tuple[Topic, list[_SentPart]]] = BoundedDict(Counts())
        """The same for the object that was passed last."""
        for topic in topics:
            self.add(topic)

    def __bool__(self) -> bool:
        return bool(self._sent or self._read)

    def add(self, topic: str) -> None:
        """Adds a topic, if it has types that need an encoder of their own.

        Raises:
            ConfigError: One of its formats can't be there; another object says that the topic is encrypted.
        """
        if not isinstance(topic, Topic):
            return
        kinds = self._kinds(topic)
        if not kinds:
            return
        name = str(topic)
        for part, kind in self._sent.get(name, {}).items():
            kinds[part] = _stricter(name, kinds[part], kind) if part in kinds else kind
        self._sent[name] = kinds
        self._forget()

    def add_read(self, matches: Callable[[str], bool], value: Any, key: Any) -> None:
        """Adds the types by which some topics are read: what is sent to these has the same formats."""
        said: tuple[tuple[Part, Any], ...] = (("key", key), ("value", value))
        kinds = {part: _Kind(each) for part, each in said if isinstance(each, Format)}
        if kinds:
            self._read.append((matches, kinds))
            self._forget()

    def value_format(self, topic: str) -> Format | None:
        """Returns the format of a topic's values; None if they are sent as the producer's default writes them."""
        parts = self._of_name(str(topic))
        return next((each.kind for each in parts if each.name == "value" and isinstance(each.kind, Format)), None)

    def needs(self, topic: str) -> bool:
        """Tells whether a message to this topic passes here; so does any, once there is a format."""
        return bool(self) or type(topic) is not str

    def __call__(self, message: Outgoing) -> Outgoing:
        """Returns the message with its key and value as bytes.

        Raises:
            EncodeError: One of them can't be encoded. RegistryError: The registry does not give a schema.
            ConfigError: The topic is encrypted by one format, and not by another.
        """
        topic = message.topic
        parts = self._of_names.get(topic) if type(topic) is str else None
        if parts is None:
            parts = self._of_topic(topic) if isinstance(topic, Topic) else self._of_name(str(topic))
        for part in parts:
            message = part.encoded(message)
        return message

    def _of_name(self, name: str) -> list[_SentPart]:
        found = self._of_names.get(name)
        if found is None:
            found = self._of_names[name] = self._parts(name, {})
        return found

    def _of_topic(self, topic: Topic) -> list[_SentPart]:
        if topic.value is None and topic.key is None:
            return self._of_name(str(topic))
        known, found = self._of_objects.get(topic, (None, []))
        if known is None or known.value is not topic.value or known.key is not topic.key:
            found = self._parts(str(topic), self._kinds(topic))
            self._of_objects[str(topic)] = topic, found
        return found

    def _kinds(self, topic: Topic) -> dict[Part, _Kind]:
        said: tuple[tuple[Part, Any], ...] = (("key", topic.key), ("value", topic.value))
        found = {}
        for part, kind in said:
            encode = encoder_of(kind, str(topic), part, self._default, self._schemas)
            if encode is not None:
                found[part] = _Kind(kind, encode)
        return found

    def _parts(self, name: str, own: dict[Part, _Kind]) -> list[_SentPart]:
        """Returns the parts of a topic that are encoded: by its own formats, those of its name, or its readers'."""
        known = [own, self._sent.get(name, {}), *(kinds for matches, kinds in self._read if matches(name))]
        parts = []
        for part in PARTS:
            said = [kinds[part] for kinds in known if part in kinds]
            if not said:
                continue
            chosen = said[0]
            for other in said[1:]:
                chosen = _stricter(name, chosen, other)
            parts.append(_SentPart(part, chosen.format, chosen.encode or self._encoder(chosen.format, name, part)))
        return parts

    def _encoder(self, kind: Any, name: str, part: Part) -> Encode:
        try:
            encode = encoder_of(kind, name, part, self._default, self._schemas)
        except (TypeError, NotImplementedError) as error:
            why = f": {error}" if str(error) else ""
            text = f"topic {name!r} is read in a format that {part}s can't be written in{why}"
            raise EncodeError(f"{text}; say how they are sent, by app.topic()") from None
        assert encode is not None
        return encode

    def _forget(self) -> None:
        self._of_names.clear()
        self._of_objects.clear()


class _Kind(NamedTuple):
    """What the keys, or the values, of a topic are said to be: a type or a format."""

    format: Any
    encode: Encode | None = None
    """None where it was not made yet: a topic that is read is seldom sent to."""

    @property
    def is_encrypted(self) -> bool:
        """True if the bytes are encrypted."""
        return isinstance(self.format, Format) and self.format.is_encrypted


def _stricter(name: str, chosen: _Kind, other: _Kind) -> _Kind:
    """Returns the first of what is said of a topic.

    Raises:
        ConfigError: One is encrypted, and the other is a format without encryption.
    """
    if chosen.is_encrypted == other.is_encrypted:
        return chosen
    if not isinstance(chosen.format, Format) or not isinstance(other.format, Format):
        return chosen if chosen.is_encrypted else other  # A type says nothing of the bytes.
    text = f"topic {name!r} is encrypted by one of its formats, and not by another"
    raise ConfigError(f"{text}; use one awoke.Topic for it everywhere", "topic")


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
        is_bound = self.name == "value" and isinstance(self.kind, Format) and self.kind.binds_key
        data, headers = _encoded(self.encode, value, *([message.key] if is_bound else []))
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
        if not isinstance(value, bytes) or not isinstance(self.kind, Format):
            return isinstance(value, bytes)
        headers = [
            (name, each.encode() if isinstance(each, str) else each) for name, each in header_pairs(message.headers)
        ]
        return self.kind.is_encoded(value, headers)


def _encoded(encode: Encode, *arguments: Any) -> Payload:
    try:
        return encode(*arguments)
    except SchemaNeeded as needed:
        payload: Payload = load_here(encode, needed, *arguments)
        return payload
