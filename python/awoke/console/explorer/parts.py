"""Decodes keys, values and headers of messages: by the route's type, by the registry, or as the text that they are.

Content is shown only where it is allowed. What is hidden is neither decoded nor kept.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping
from types import TracebackType
from typing import Any, NamedTuple, Self

import msgspec

from awoke._native import Message
from awoke.console.explorer.views import Content, MessageView, ShownHeader
from awoke.declare.annotations import type_name
from awoke.declare.secret_topics import NO_SECRETS, Form, SecretPart, SecretTopics, fits, masked, masked_json
from awoke.payloads.decoding.registered import Decoded, RegisteredFormat, names_schema, reason
from awoke.payloads.formats.format import BYTES, Decode, Format, Headers, format_of, reader_of, type_of
from awoke.payloads.registry import wire_format
from awoke.payloads.registry.schema import Part
from awoke.payloads.registry.schemas import Schemas, loading, open_registry
from awoke.payloads.secret_fields import paths_of
from awoke.payloads.secret_paths import SecretPaths
from awoke.settings import Settings
from awoke.text.printable import harmless_json, printable
from awoke.text.secrets import key_hash

TEXT_MAX = 20_000
"""The characters of one content that a page shows."""
BYTES_MAX = 1_000_000
"""Larger content is not decoded for a page; a download has it as it is."""
BYTES_SHOWN = 256
"""The bytes of content that is no text, of which a page shows the number of each."""
KEPT = "\n\t"
FORMS: tuple[Form, Form] = ("json", "registry")
NO_PATHS = SecretPaths()


class Document(NamedTuple):
    """Content as JSON."""

    json: str
    decoder: str | None = None
    """The name of the type, or `registry`."""
    schema: int | str | None = None


class RouteDecoders(NamedTuple):
    """The decoders of one route. Both take headers, too, and load the schemas that they need."""

    decode_value: Decode | None
    """None where values stay bytes."""
    decode_key: Decode | None
    reads_headers: bool
    """True if values can't be read without their headers."""
    key: str
    value: str
    """The names of the types, for people."""
    key_secrets: SecretPaths = NO_PATHS
    value_secrets: SecretPaths = NO_PATHS
    """The secrets of the types: what is decoded by them has these, and not those of another type."""

    @classmethod
    def of(cls, types: tuple[Any, Any], default: Format, topic: str, schemas: Schemas) -> RouteDecoders:
        """Returns the decoders for a topic whose values and keys have these types or formats."""
        value, key = map(type_of, types)
        of_value, of_key = (format_of(said, default) for said in types)
        return cls(
            None if of_value is BYTES else loading(reader_of(of_value, topic, "value", schemas)),
            None if of_key is BYTES else loading(reader_of(of_key, topic, "key", schemas)),
            of_value.reads_headers,
            key=type_name(key),
            value=type_name(value),
            key_secrets=paths_of(key),
            value_secrets=paths_of(value),
        )

    def knows(self, secrets: Iterable[SecretPart], part: Part) -> bool:
        """Tells whether the type has all of these secrets: another type may give their fields other names."""
        own: SecretPaths = getattr(self, f"{part}_secrets")
        return all(own.covers(each.paths) for each in secrets)


class DecodedParts:
    """Shows the parts of messages. Any thread. A context manager: leaving it closes the client of the registry.

    `routes` has the decoders by topic. Without `reveals` all contents are hidden. Content with secret fields is shown
    only decoded, with these fields masked; without a decoder of a route that has all of these fields, it is decoded as
    the form of its bytes says.
    """

    def __init__(
        self,
        settings: Settings,
        routes: Mapping[str, RouteDecoders] | None = None,
        secrets: SecretTopics = NO_SECRETS,
        *,
        reveals: bool = False,
    ) -> None:
        self._routes, self.secrets, self.reveals = routes or {}, secrets, reveals
        self._has_registry = settings.registry_url is not None
        self._schemas = Schemas(lambda: open_registry(settings))
        self._by_registry: dict[tuple[str, Part], Callable[[bytes, Headers], Decoded]] = {}

    def message(self, message: Message[Any, Any]) -> MessageView:
        """Returns the view of a message. Blocks for a schema that is not there yet."""
        key, value, headers = message.raw_key, message.raw_value, message.headers
        return MessageView(
            topic=message.topic,
            partition=message.partition,
            offset=message.offset,
            timestamp_ms=message.timestamp_ms,
            key_hash=key_hash(key),
            key=self.content(message.topic, "key", key, headers),
            value=self.content(message.topic, "value", value, headers),
            headers=[ShownHeader(name=printable(name), value=self.plain(each)) for name, each in headers],
        )

    def content(self, topic: str, part: Part, raw: bytes | None, headers: Headers) -> Content:
        """Returns a key or a value as it is shown. Blocks for a schema that is not there yet."""
        if raw is None or not self.reveals:
            return self.plain(raw)
        if self.is_masked(topic, part):
            return self._masked(topic, part, raw, headers)
        if len(raw) > BYTES_MAX:
            return noted(raw, f"it is not decoded here: it has {len(raw):,} bytes; a download has all")
        try:
            found = self.document(topic, part, raw, headers)
            return self.plain(raw) if found is None else from_json(raw, found)
        except Exception as error:  # The decoders are user code, and libraries that read foreign bytes.
            return noted(raw, f"it is not decoded: {printable(reason(error.__cause__ or error))[:500]}")

    def document(self, topic: str, part: Part, raw: bytes, headers: Headers) -> Document | None:
        """Returns a key or a value as JSON, decoded by its route or the registry; None where neither has a decoder.

        Secret fields are masked. Blocks for a schema that is not there yet. Raises any error of the decoder.
        """
        decoders = self._routes.get(topic)
        decode = None if decoders is None else getattr(decoders, f"decode_{part}")
        secrets = self.secrets.of(topic, part)
        if self.secrets.unknown_because is not None:
            return None
        if decoders is not None and decode is not None and decoders.knows(secrets, part):
            document = json_of(decode(raw, headers), secrets)
            return None if document is None else Document(document, decoder=getattr(decoders, part))
        is_json, is_registered = (not secrets or all(each.form == form for each in secrets) for form in FORMS)
        if is_registered and self._has_registry and names_schema_of(part, raw, headers):
            found = self._registered(topic, part)(raw, headers)
            document = masked_json(found.json.encode(), secrets) if secrets else found.json
            return None if document is None else Document(document, decoder="registry", schema=found.schema)
        document = masked_json(raw, secrets) if secrets and is_json else None
        return None if document is None else Document(document)

    def is_masked(self, topic: str, part: Part) -> bool:
        """Tells whether keys or values of a topic have secret fields: their bytes are never shown."""
        return self.secrets.hides(topic, part)

    def _masked(self, topic: str, part: Part, raw: bytes, headers: Headers) -> Content:
        try:
            found = self.document(topic, part, raw, headers) if len(raw) <= BYTES_MAX else None
        except Exception:  # The text of an error may quote a secret.
            found = None
        if found is not None:
            return from_json(raw, found)
        note = self.secrets.unknown_because or "it has secret fields, and is hidden because it can't be decoded here"
        return Content(form="hidden", size_bytes=len(raw), note=note)

    def plain(self, raw: bytes | None) -> Content:
        """Returns bytes as the JSON or the text that they are, or as bytes; hidden where that is not allowed."""
        if raw is None:
            return Content(form="none", size_bytes=0)
        return as_it_is(raw) if self.reveals else Content(form="hidden", size_bytes=len(raw))

    def _registered(self, topic: str, part: Part) -> Callable[[bytes, Headers], Decoded]:
        if (topic, part) not in self._by_registry:
            decode = RegisteredFormat(self._schemas).decoder(topic, part, self._schemas)
            self._by_registry[topic, part] = loading(decode)
        return self._by_registry[topic, part]

    def close(self) -> None:
        """Closes the client of the registry."""
        self._schemas.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def names_schema_of(part: Part, raw: bytes, headers: Headers) -> bool:
    """Tells whether a part looks as if it named a schema of a registry."""
    if part == "key":
        return names_schema(raw, headers)
    return raw[:1] == b"\0" or any(name == wire_format.HEADERS[part] for name, _ in headers)


def as_it_is(raw: bytes) -> Content:
    """Returns bytes as indented JSON, as text, or as the number of each byte."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return as_bytes(raw)
    if text[:1] in "{[" and len(raw) <= BYTES_MAX:
        try:
            return from_json(raw, Document(msgspec.json.encode(msgspec.json.decode(raw)).decode()))
        except (msgspec.MsgspecError, RecursionError, UnicodeError):
            pass  # It is text that begins with a bracket.
    return cut("text", raw, printable(text[: TEXT_MAX + 1], KEPT), is_cut=len(text) > TEXT_MAX)


def as_bytes(raw: bytes) -> Content:
    """Returns the numbers of the first bytes, for people."""
    return cut("bytes", raw, raw[:BYTES_SHOWN].hex(" "), is_cut=len(raw) > BYTES_SHOWN)


def from_json(raw: bytes, document: Document) -> Content:
    """Returns content as an indented JSON document."""
    lines = [harmless_json(line) for line in msgspec.json.format(document.json, indent=2).splitlines()]
    content = cut("json", raw, "\n".join(lines))
    content.schema, content.decoder = document.schema, document.decoder
    return content


def cut(form: Any, raw: bytes, text: str, *, is_cut: bool = False) -> Content:
    """Returns content with a text that is not too long for a page."""
    return Content(form=form, size_bytes=len(raw), text=text[:TEXT_MAX], is_cut=is_cut or len(text) > TEXT_MAX)


def noted(raw: bytes, note: str) -> Content:
    """Returns content as it is, with the reason why it is not decoded."""
    content = as_it_is(raw[:BYTES_MAX])
    content.size_bytes, content.note = len(raw), note
    content.is_cut = content.is_cut or len(raw) > BYTES_MAX
    return content


def json_of(value: Any, secrets: Collection[SecretPart] = ()) -> str | None:
    """Returns any decoded value as a JSON document without these secrets; a part that JSON has no form for as text.

    None for a text or a number where the type has secret fields: it may be a document that has them.
    """
    document = msgspec.to_builtins(value, str_keys=True, enc_hook=_builtin)
    if not isinstance(document, dict | list | None) and not fits(document, secrets):
        return None
    return msgspec.json.encode(masked(document, secrets)).decode()


def _builtin(value: Any) -> Any:
    if hasattr(value, "model_dump"):  # Of pydantic.
        return value.model_dump(mode="json")
    if hasattr(value, "DESCRIPTOR"):  # Of protobuf.
        from google.protobuf.json_format import MessageToDict

        return MessageToDict(value, preserving_proto_field_name=True)
    return dataclasses.asdict(value) if dataclasses.is_dataclass(value) else str(value)  # type: ignore[arg-type]
