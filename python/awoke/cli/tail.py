"""`awoke tail`: prints the messages of a topic."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import typer

import awoke
from awoke.cli.app_types import KeepSecrets, OfApp, check_keeps, check_with_app, shown_by, types_of
from awoke.cli.commands import Section, command
from awoke.cli.options import (
    AsJson,
    BootstrapServers,
    End,
    First,
    Kafka,
    Last,
    end_place,
    is_behind,
    pairs,
    place,
)
from awoke.cli.output import say, say_json, write_raw
from awoke.cli.registry_options import RegistryUrl, registry_at
from awoke.text.json_bytes import json_of_bytes
from awoke.text.printable import printable

if TYPE_CHECKING:
    from awoke.console.explorer.parts import DecodedParts
    from awoke.payloads.decoding.registered import ShownPart


Decode = Annotated[
    bool,
    typer.Option(
        "--decode",
        help="Decode keys and values by the schemas that the messages name in the registry: Avro, JSON, and Protobuf "
        "whose schema is registered as a serialized description.",
    ),
]


@command(Section.MESSAGES)
def tail(
    topic: Annotated[str, typer.Argument(help="The topic to read.")],
    begin: First = None,
    end: End = None,
    last: Last = None,
    count: Annotated[int | None, typer.Option(min=0, help="Stop after this many messages.")] = None,
    until_end: Annotated[bool, typer.Option("--until-end", help="Stop at the present end of the topic.")] = False,
    json: AsJson = False,
    keys: Annotated[bool, typer.Option("--keys", help="Print the key before the value.")] = False,
    raw: Annotated[
        bool, typer.Option("--raw", help="Print the bytes unchanged: for other programs, not for a terminal.")
    ] = False,
    of_app: OfApp = None,
    keep_secrets: KeepSecrets = False,
    decode: Decode = False,
    registry_url: RegistryUrl = None,
    bootstrap_servers: BootstrapServers = None,
    kafka: Kafka = None,
) -> None:
    """Print messages as they come, until Ctrl-C.

    Begins with the next message, or with the first one if --to or --until-end says where to stop. With --json, each
    message is a document with all its parts.
    """
    if raw and (json or decode or of_app is not None):
        raise typer.BadParameter("is not for JSON, and not for --decode and --app", param_hint="--raw")
    check_with_app(of_app, decode, registry_url)
    check_keeps(of_app, keep_secrets)
    stop, until_end = end_place(end), until_end or end is not None
    where: Any = -last if last is not None else place(begin or ("earliest" if until_end else "latest"))
    properties = pairs(kafka, "--kafka")
    with (
        decoded_topic(topic, registry_url) if decode else contextlib.nullcontext(topic) as named,
        contextlib.nullcontext() if of_app is None else types_of(of_app, keep_secrets) as parts,
        awoke.Reader(named, bootstrap_servers=bootstrap_servers, start=where, kafka=properties) as reader,
    ):
        messages = reader.read_until_end() if until_end else iter(reader)
        messages = (each for each in messages if not is_behind(each, stop))
        with contextlib.suppress(KeyboardInterrupt):
            show(messages, count, writer_of(json, keys, parts, decode) or writer(json, raw, keys))


Write = Callable[[Any], object]
"""Prints a message. Its type is not named here: that would load the Kafka client for every command."""


def writer_of(as_json: bool, with_keys: bool, parts: DecodedParts | None, decode: bool) -> Write | None:
    """Returns the function that decodes a message and prints it; None where nothing is to be decoded."""
    if parts is not None:
        return decoding_writer(as_json, with_keys, functools.partial(shown_by, parts))
    return decoding_writer(as_json, with_keys, decoded) if decode else None


def writer(as_json: bool, is_raw: bool, with_keys: bool) -> Write:
    """Returns the function that prints a message."""
    if as_json:
        return lambda message: say_json(document(message))
    if is_raw:
        return lambda message: write_raw(raw_of(message, with_keys))
    return lambda message: say(plain(message, with_keys), keep="\t")


@contextlib.contextmanager
def decoded_topic(topic: str, registry_url: str | None) -> Iterator[str]:
    """Yields a topic whose messages are decoded by their schemas, inside the block.

    Raises:
        ConfigError: No registry is set.
    """
    from awoke.payloads.decoding.registered import RegisteredTopics  # Here, because it loads HTTP and formats.

    with RegisteredTopics(registry_at(registry_url)) as topics:
        yield topics.topic(topic)


def decoding_writer(as_json: bool, with_keys: bool, shown_of: Callable[..., list[ShownPart]]) -> Write:
    """Returns the function that prints a message of which `shown_of` gives the parts: `decoded`, for example."""

    def write(message: awoke.Message[Any]) -> None:
        if as_json:
            say_json(decoded_document(message, *shown_of(message, "key", "value")))
            return
        shown = shown_of(message, "key", "value") if with_keys else shown_of(message, "value")
        say_notes(message, *shown)
        say("\t".join(map(line_of, shown)), keep="\t")

    return write


def decoded(message: awoke.Message[Any], *names: Literal["key", "value"]) -> list[ShownPart]:
    """Returns these parts of a message of `decoded_topic`. Blocks for schemas that are not there yet.

    Raises:
        RegistryError: The registry does not answer, or does not let the command in.
    """
    from awoke.payloads.decoding.registered import part_of

    return [part_of(message, name) for name in names]


def say_notes(message: awoke.Message[Any], *parts: ShownPart) -> None:
    """Prints, to standard error, why parts of a message are not decoded."""
    for each in parts:
        if each.note is not None:
            at = f"{message.topic}[{message.partition}] offset {message.offset}"
            say(f"note: {at}: the {each.name} is not decoded: {each.note}", err=True)


def line_of(part: ShownPart) -> str:
    """Returns a key or a value as one line of text: JSON if it was decoded."""
    return printable(part.raw) if part.decoded is None else part.decoded.json


def decoded_document(message: awoke.Message[Any], key: ShownPart, value: ShownPart) -> str:
    """Returns all parts of a message as JSON, with the schemas of its key and value, and notes about them."""
    parts = parts_of(message, key.raw, value.raw)
    for each in (key, value):
        if each.decoded is not None:
            parts[each.name] = msgspec.Raw(each.decoded.json.encode())
            if each.decoded.schema is not None:
                parts[f"{each.name}_schema"] = each.decoded.schema
        elif each.note is not None:
            parts[f"{each.name}_note"] = each.note
    return msgspec.json.encode(parts).decode()


def show(messages: Iterator[awoke.Message[Any]], count: int | None, write: Write) -> None:
    """Prints at most `count` messages."""
    if count == 0:
        return
    for number, message in enumerate(messages, 1):
        write(message)
        if number == count:
            return


def plain(message: awoke.Message[Any], with_key: bool) -> str:
    """Returns the value as one line of text."""
    value = printable(message.value)
    return f"{printable(message.key)}\t{value}" if with_key else value


def raw_of(message: awoke.Message[Any], with_key: bool) -> bytes:
    """Returns the value unchanged, after the key if that is wanted."""
    value = message.value or b""
    return (message.key or b"") + b"\t" + value if with_key else value


def document(message: awoke.Message[Any]) -> str:
    """Returns all parts of a message as JSON."""
    return msgspec.json.encode(parts_of(message, message.key, message.value)).decode()


def parts_of(message: awoke.Message[Any], key: bytes | None, value: bytes | None) -> dict[str, Any]:
    """Returns all parts of a message, as its documents have them; `awoke produce --format envelope` reads them."""
    return {
        "topic": message.topic,
        "partition": message.partition,
        "offset": message.offset,
        "timestamp_ms": message.timestamp_ms,
        "key": json_of_bytes(key),
        "headers": [[name, json_of_bytes(each)] for name, each in message.headers],
        "value": json_of_bytes(value),
    }
