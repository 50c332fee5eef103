"""Topics that know the types of their keys and values, so that all who send to them or read them encode alike.

They may also declare how the topic shall be on its cluster (`awoke topics apply`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Self

from awoke.errors import ConfigError
from awoke.payloads.declared_topics.declaration import Declaration, declaration_of
from awoke.payloads.formats.format import DESCRIBING, EVENT, Coding, Encoder, Format, Part, Place, encoder_of
from awoke.payloads.message import Outgoing, header_pairs
from awoke.payloads.registry.schemas import SchemaNeeded, load_here
from awoke.preconditions import checks
from awoke.settings.config_values import ConfigValue


class Topic(str):
    """The name of a topic, with the types of its keys and values; it is used wherever a topic's name is.

    `value` and `key` are types or formats (`awoke.avro(Order)`), as in the options of a route. None: a route says it,
    and what is sent is encoded by its own type. `partitions`, `replication` and `config` declare the topic: an app
    compares them with its cluster at start, and `awoke topics apply` makes them so.
    """

    value: Any
    key: Any
    declaration: Declaration | None
    """The topic as it shall be on its cluster; None if that is not declared."""

    def __new__(
        cls,
        name: str,
        *,
        value: Any = None,
        key: Any = None,
        partitions: int | None = None,
        replication: int | None = None,
        config: Mapping[str, ConfigValue] | None = None,
    ) -> Self:
        if not isinstance(name, str) or not name:
            raise ConfigError(f"a topic needs a name, not {name!r}", "topic")
        checks.topic("a topic", "topic", name)
        self = super().__new__(cls, name)
        self.value, self.key = value, key
        self.declaration = declaration_of(name, partitions, replication, config)
        return self

    @property
    def partitions(self) -> int | None:
        """The declared number of partitions; None if the brokers choose."""
        return None if self.declaration is None else self.declaration.partitions

    @property
    def replication(self) -> int | None:
        """The declared number of replicas of each partition; None if the brokers choose."""
        return None if self.declaration is None else self.declaration.replication

    @property
    def config(self) -> Mapping[str, str] | None:
        """The declared settings, as Kafka writes them; None if nothing is declared."""
        return None if self.declaration is None else self.declaration.config

    def prefixed(self, prefix: str) -> Self:
        """Returns the topic with a prefix before its name, with the same types and the same declaration."""
        return type(self)(prefix + str(self), **self._options())

    def _options(self) -> dict[str, Any]:
        declared = {} if self.declaration is None else self.declaration._asdict()
        return {"value": self.value, "key": self.key, **declared}

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, Any]]:
        return (str(self),), self._options()


class TopicEncoder:
    """Encodes what is sent to topics that have types; the last step of outgoing messages. Any thread.

    Bytes and None are sent as they are, unless the format says otherwise. What a format needs of the registry is
    loaded on the thread that sends. A thread with a running event loop must not wait: there it raises `SchemaNeeded`.
    """

    def __init__(self, topics: Iterable[str], coding: Coding) -> None:
        self._coding = coding
        self._parts: dict[str, list[_Part]] = {}
        """The parts of messages that are encoded, by topic."""
        for topic in topics:
            self.add(topic)

    def __bool__(self) -> bool:
        return bool(self._parts)

    def add(self, topic: str) -> None:
        """Adds a topic, if it has types that need an encoder of their own."""
        if not isinstance(topic, Topic):
            return
        parts: tuple[Part, ...] = ("key", "value")
        made = [
            _Part(part, form, encoder) for part in parts for form, encoder in [self._encoder(topic, part)] if encoder
        ]
        if made:
            self._parts[str(topic)] = made

    def _encoder(self, topic: Topic, part: Part) -> tuple[Any, Encoder | None]:
        form = getattr(topic, part)
        return form, encoder_of(form, Place(str(topic), part), self._coding)

    def __call__(self, message: Outgoing) -> Outgoing:
        """Returns the message with its key and value as bytes.

        Raises:
            EncodeError: One of them can't be encoded. RegistryError: The registry does not give a schema.
        """
        for each in self._parts.get(message.topic, ()):
            message = each.encoded(message)
        return message


class _Part(NamedTuple):
    """The keys, or the values, of one topic, and how they are encoded."""

    name: Part
    form: Any
    encode: Encoder

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
        if type(value) is not bytes or not isinstance(self.form, Format):
            return type(value) is bytes
        headers = [
            (name, each.encode() if isinstance(each, str) else each) for name, each in header_pairs(message.headers)
        ]
        return self.form.is_encoded(value, headers)


def _encoded(encode: Callable[[Any], Any], value: Any) -> Any:
    try:
        return encode(value)
    except SchemaNeeded as needed:
        return load_here(encode, needed, value)
