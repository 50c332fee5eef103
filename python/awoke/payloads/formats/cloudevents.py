"""CloudEvents: events with a type, a source and an id, in binary or in structured mode.

Source: the CloudEvents specification 1.0.2, its JSON format, and its binding to Kafka. In binary mode the attributes
are headers (`ce_id`, `ce_type`, …) and the value is the data. In structured mode the value is one JSON document with
the attributes and the data. Both are read.
"""

from __future__ import annotations

import base64
import datetime
import uuid
from collections.abc import Mapping
from typing import Any, Generic, Literal, TypeVar

import msgspec

from awoke.errors import ConfigError
from awoke.payloads.formats import protobuf_classes
from awoke.payloads.formats.by_type import BY_TYPE
from awoke.payloads.formats.format import (
    Decode,
    Description,
    Encode,
    Format,
    Headers,
    Payload,
    format_of,
    reader_of,
    takes_none,
    type_of,
    writer_of,
)
from awoke.payloads.registry.schema import Part
from awoke.payloads.registry.schemas import Schemas

Data = TypeVar("Data")
Mode = Literal["binary", "structured"]

PREFIX = "ce_"
CONTENT_TYPE = "content-type"
STRUCTURED = "application/cloudevents+json"
JSON_TYPE = "application/json"
VERSION = "1.0"
ATTRIBUTES = ("id", "source", "type", "subject", "time", "dataschema", "datacontenttype")
"""The attributes that the specification names, beside `specversion`."""
OLDER = ("0.1", "0.2", "0.3")
DATA = ("data", "data_base64")
TEXTS = (str, bytes, str | None, bytes | None)
"""The types whose bytes are not JSON."""


ENVELOPE = ("id", "source", "specversion", "type")
"""The attributes that each event has."""


class CloudEvent(msgspec.Struct, Generic[Data], kw_only=True):
    """One event.

    Raises:
        ConfigError: An attribute that every event has is empty.
    """

    data: Data
    type: str
    """The kind of the event, as `com.shop.order.placed`."""
    source: str
    """The place where it has happened: a URI, or a part of one, as `/shop/checkout`."""
    id: str = msgspec.field(default_factory=lambda: str(uuid.uuid4()))
    """With the source it is unique."""
    subject: str | None = None
    time: datetime.datetime | None = msgspec.field(default_factory=lambda: datetime.datetime.now(datetime.UTC))
    dataschema: str | None = None
    datacontenttype: str | None = JSON_TYPE
    extensions: dict[str, str] = {}
    """Further attributes, by their names in small letters and digits."""

    def __post_init__(self) -> None:
        for name in ("id", "source", "type"):
            if not getattr(self, name):
                raise ConfigError(f"CloudEvent: {name} must not be empty", name)


class CloudEventFormat(Format):
    """CloudEvents whose data is of a type or a format; made by `awoke.cloudevents`."""

    reads_headers = True

    def __init__(self, data: Any, mode: Mode) -> None:
        self._data, self._mode = data, mode
        """The type or the format of the data."""
        self.value_type = CloudEvent[type_of(data)]  # type: ignore[misc]
        self.needs_registry = isinstance(data, Format) and data.needs_registry
        self.is_encrypted = isinstance(data, Format) and data.is_encrypted
        self._default: Format = BY_TYPE

    def is_encoded(self, value: Any, headers: Headers) -> bool:
        """Tells whether a value is an event as bytes; where the data is encrypted, whether that is known to be so."""
        return self._data.is_encoded(value, headers) if self.is_encrypted else isinstance(value, bytes)

    def within(self, default: Format) -> CloudEventFormat:
        """Returns the same format for an app with this default, which is that of data of a plain type in binary mode.

        In structured mode the data is a part of a JSON document, and is JSON.
        """
        return self._with(_default=default)

    def description(self) -> Description:
        """Returns the data in binary mode, whose attributes are headers; else the document around it."""
        if self._mode == "binary":
            return format_of(self._data, self._default).description()
        return Description("application/cloudevents+json", {"type": "object", "required": list(ENVELOPE)})

    def check_loaded(self, topic: str, part: Part, schemas: Schemas) -> None:
        """As the format inside does it."""
        format_of(self._data, self._default).check_loaded(topic, part, schemas)

    def decoder(self, topic: str, part: Part, schemas: Schemas) -> Decode:
        """Returns the function that reads an event in the mode that its headers tell."""
        _check_part(topic, part)
        decode = reader_of(format_of(self._data, self._default), topic, part, schemas)
        decode_json = reader_of(format_of(self._data, BY_TYPE), topic, part, schemas)
        is_optional = takes_none(type_of(self._data))

        def decode_event(value: bytes, headers: Headers) -> CloudEvent[Any]:
            said = {name.lower(): text(each) for name, each in headers if each is not None}
            data: bytes | None = value
            is_structured = said.get(CONTENT_TYPE, "").startswith(STRUCTURED)
            if is_structured:
                attributes, data = opened(value, self._data)
            else:
                attributes = attributes_of(said)
            if data is None and not is_optional:
                raise ValueError("the event has no data")
            read = decode_json if is_structured else decode
            return made(attributes, None if data is None else read(data, headers))

        return decode_event

    def encoder(self, topic: str, part: Part, schemas: Schemas) -> Encode:
        """Returns the function that writes an event in the format's mode."""
        _check_part(topic, part)
        default = BY_TYPE if self._mode == "structured" else self._default
        encode = writer_of(self._data, topic, part, default, schemas)

        def encode_event(event: CloudEvent[Any]) -> Payload:
            if not isinstance(event, CloudEvent):
                raise TypeError("send an awoke.CloudEvent, which has the data and its attributes")
            data, headers = encode(event.data)
            named = {name: each for name in ATTRIBUTES if (each := getattr(event, name)) is not None}
            attributes = {name: each if isinstance(each, str) else stamp(each) for name, each in named.items()}
            attributes = {"specversion": VERSION, **attributes, **checked(event.extensions)}
            if self._mode == "structured":
                more = ((CONTENT_TYPE, f"{STRUCTURED}; charset=UTF-8".encode()),)
                return closed(attributes, event.data, data), (*headers, *more)
            content_type = attributes.pop("datacontenttype", None)
            pairs = [(PREFIX + name, each.encode()) for name, each in attributes.items()]
            pairs += [] if content_type is None else [(CONTENT_TYPE, content_type.encode())]
            return data, (*headers, *pairs)

        return encode_event


def _check_part(topic: str, part: Part) -> None:
    if part == "key":
        raise ConfigError(f"topic {topic!r}: a key is no event; events are values", "key")


def cloudevents(data: Any = dict, *, mode: Mode = "binary") -> CloudEventFormat:
    """Returns the format of CloudEvents: values are `awoke.CloudEvent`, whose data is of this type or format.

    `mode` says how events are sent: `binary`, or `structured` for data that is JSON or bytes. Both are read.

    Raises:
        ConfigError: There is no such mode, or the data can't be in it.
    """
    if mode not in ("binary", "structured"):
        raise ConfigError(f"awoke.cloudevents: mode is 'binary' or 'structured', not {mode!r}", "mode")
    if mode == "structured" and isinstance(data, Format):
        text = "awoke.cloudevents: in structured mode the data is of a type, which is JSON; use mode='binary'"
        raise ConfigError(text, "mode")
    return CloudEventFormat(data, mode)


def attributes_of(headers: Mapping[str, str]) -> dict[str, str]:
    """Returns the attributes of an event in binary mode, by its headers.

    Raises:
        ValueError: The message is no event.
    """
    found = {name.removeprefix(PREFIX): each for name, each in headers.items() if name.startswith(PREFIX)}
    if "specversion" not in found:
        raise ValueError(f"the message is no CloudEvent: it has neither a header 'ce_specversion' nor {STRUCTURED!r}")
    if CONTENT_TYPE in headers:
        found["datacontenttype"] = headers[CONTENT_TYPE]
    return found


def made(attributes: dict[str, Any], data: Any) -> CloudEvent[Any]:
    """Returns an event of its attributes.

    Raises:
        ValueError: One that every event has is missing; the version is another; the time is none.
    """
    version = str(attributes.get("specversion", ""))
    if not version.startswith("1."):
        shown = repr(version) if version in OLDER else "unknown"
        raise ValueError(f"the event is of version {shown} of CloudEvents, not of 1.0")
    missing = [name for name in ("id", "source", "type") if not attributes.get(name)]
    if missing:
        raise ValueError(f"the event has no attribute {missing[0]!r}")
    known = {name: attributes.get(name) for name in ATTRIBUTES}
    if known["time"] is not None:
        known["time"] = msgspec.convert(known["time"], datetime.datetime)
    others = {name: str(each) for name, each in attributes.items() if name not in (*ATTRIBUTES, "specversion")}
    return CloudEvent(data=data, extensions=others, **known)  # type: ignore[arg-type]


def opened(value: bytes, data_type: Any) -> tuple[dict[str, Any], bytes | None]:
    """Returns the attributes and the data of an event in structured mode; a text in it as its own bytes.

    Raises:
        ValueError: The value is no JSON object.
    """
    document = msgspec.json.decode(value, type=dict[str, msgspec.Raw])
    attributes = {name: msgspec.json.decode(each) for name, each in document.items() if name not in DATA}
    if "data_base64" in document:
        return attributes, base64.b64decode(msgspec.json.decode(document["data_base64"], type=str), validate=True)
    data = document.get("data")
    if data is not None and data_type in TEXTS and bytes(data).startswith(b'"'):
        return attributes, msgspec.json.decode(data, type=str).encode()
    return attributes, None if data is None else bytes(data)


def closed(attributes: Mapping[str, str], value: Any, data: bytes) -> bytes:
    """Returns an event in structured mode: a text and a value as JSON; bytes, and messages of protobuf, in base64."""
    if isinstance(value, str):
        return msgspec.json.encode({**attributes, "data": value})
    if isinstance(value, bytes) or protobuf_classes.is_message(type(value)):  # type: ignore[arg-type]
        return msgspec.json.encode({**attributes, "data_base64": data})
    return msgspec.json.encode({**attributes, "data": msgspec.Raw(data)})


def checked(extensions: Mapping[str, str]) -> Mapping[str, str]:
    """Returns further attributes, if their names are such.

    Raises:
        ValueError: A name has other characters than small letters and digits, or is that of a known attribute.
    """
    for name in extensions:
        is_plain = name.isascii() and name.isalnum() and name == name.lower()
        if not is_plain or name in (*ATTRIBUTES, *DATA, "specversion"):
            raise ValueError(f"an event can't have an extension named {name!r}: use small letters and digits")
    return extensions


def stamp(moment: datetime.datetime) -> str:
    """Returns a time as RFC 3339 writes it.

    Raises:
        ValueError: It does not know its time zone.
    """
    if moment.tzinfo is None:
        raise ValueError("the event's time needs a time zone")
    return moment.isoformat()


def text(value: bytes) -> str:
    """Returns the text of a header."""
    return value.decode(errors="replace")
