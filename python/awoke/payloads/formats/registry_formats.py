"""The part that all formats of a registry share: which schema a message has, and by which one a value is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from awoke.errors import EncodeError
from awoke.payloads.formats.format import Decode, Direction, Encode, Format, Headers, Payload, refusing_values
from awoke.payloads.registry import wire_format
from awoke.payloads.registry.schema import Part, RegisteredSchema, SubjectName, topic_name
from awoke.payloads.registry.schemas import Schemas, Wanted

Read = Callable[[bytes], Any]
"""Returns the value of a payload."""


class RegistryFormat(Format):
    """A format whose messages name the schema that they were written with."""

    reads_headers = True
    needs_registry = True
    has_indexes = False
    """True if the place of the message in its schema comes before the payload, as protobuf has it."""

    def __init__(
        self, value_type: Any, subject: SubjectName, wire: wire_format.Wire, direction: Direction = "both"
    ) -> None:
        self.value_type, self._subject, self._wire = value_type, subject, wire
        self._direction: Direction = direction

    def reader(self, registered: RegisteredSchema, schemas: Schemas) -> Read:
        """Returns the function that reads what was written with this schema; called once for each.

        Raises:
            ValueError: The schema is of another kind, or can't be read as the format's type. SchemaNeeded: One that
            it refers to is not loaded yet.
        """
        raise NotImplementedError

    def writer(self, value: Any, topic: str, part: Part, schemas: Schemas) -> Encode:
        """Returns the function that writes values of this value's class; called once for each.

        Raises:
            EncodeError: The format does not take the class. SchemaNeeded: Its schema is not loaded yet.
        """
        raise NotImplementedError

    def check_subject(self, registered: RegisteredSchema, topic: str, part: Part, schemas: Schemas) -> None:
        """Checks that messages of a topic may have this schema; once for each. By default they may have any.

        Raises:
            ValueError: They may not. SchemaNeeded: What tells it is not loaded yet.
        """

    def expected(self, topic: str, part: Part) -> Iterable[Wanted]:
        """Returns the schemas that values of the format's types are written by, where it knows them before a value."""
        return ()

    def check_loaded(self, topic: str, part: Part, schemas: Schemas) -> None:
        """Checks that what is written first can be written at once.

        Raises:
            SchemaNeeded: A schema is not loaded yet.
        """
        for wanted in self.expected(topic, part):
            schemas.for_writing(*wanted)

    def decoder(self, topic: str, part: Part, schemas: Schemas) -> Decode:
        """Returns the function that reads a message by the schema that it names."""
        if self._direction == "write":
            raise TypeError(f"the format of topic {topic!r} is declared with direction='write', and reads nothing")
        readers = schemas.kept()
        counts = readers.counts
        header = wire_format.HEADERS[part]
        schemas.is_required = True
        if self._subject is topic_name:
            schemas.expect(topic_name(topic, part, None))

        def decode(data: bytes, headers: Headers) -> Any:
            if headers or data[:1] != b"\0" or len(data) < wire_format.PREFIX_BYTES:
                framed = wire_format.split(data, headers, header)
                number, payload = framed.schema, framed.payload
                if self.has_indexes and framed.indexes is not None:
                    payload = (framed.indexes or b"\0") + payload
            else:  # As below, in less time.
                number, payload = int.from_bytes(data[1:5]), data[5:]
            read = readers.get(number)
            if read is None:
                registered = schemas.by_id(number)
                self.check_subject(registered, topic, part, schemas)
                read = readers[number] = self.reader(registered, schemas)
            else:
                counts.hits += 1
            return read(payload)

        return decode

    def encoder(self, topic: str, part: Part, schemas: Schemas) -> Encode:
        """Returns the function that writes a value by the schema of its subject."""
        if self._direction == "read":
            return refusing_values(topic)
        writers = schemas.kept()
        counts = writers.counts
        schemas.is_required = True
        for wanted in self.expected(topic, part):
            schemas.expect(*wanted)

        def encode(value: Any) -> Payload:
            try:
                write = writers[type(value)]
                counts.hits += 1
            except KeyError:
                write = None
            if write is None:
                write = writers[type(value)] = self.writer(value, topic, part, schemas)
            payload: Payload = write(value)
            return payload

        return encode

    def framing(self, registered: RegisteredSchema, part: Part, indexes: bytes = b"") -> Payload:
        """Returns the bytes before a payload, and the headers beside it, that name its schema.

        Raises:
            EncodeError: The registry gives schemas no GUID, and the schema is to be named in a header.
        """
        if self._wire == "prefix":
            return wire_format.prefix(registered.id) + indexes, ()
        if registered.guid is None:
            raise EncodeError("this registry gives schemas no GUID, by which a header names them: use wire='prefix'")
        return b"", ((wire_format.HEADERS[part], wire_format.header_value(registered.guid) + indexes),)


def check_kind(registered: RegisteredSchema, kind: str) -> None:
    """Checks that a schema of the registry is of this kind.

    Raises:
        ValueError: It is of another.
    """
    if registered.schema.kind != kind:
        raise ValueError(f"schema {registered.id} of the registry is {registered.schema.kind}, not {kind}")
