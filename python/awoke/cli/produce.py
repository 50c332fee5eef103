"""`awoke produce`: sends messages to a topic: words of the command, or lines of a file or of standard input."""

from __future__ import annotations

import codecs
import contextlib
import os
import stat
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Literal, NamedTuple

import msgspec
import typer

import awoke
from awoke.cli.commands import Section, command
from awoke.cli.options import BootstrapServers, Kafka, Quiet, pairs
from awoke.cli.output import REFRESH_S, say, say_done
from awoke.cli.registry_options import RegistryUrl
from awoke.cli.tables import plural
from awoke.errors import AwokeError, ConfigError
from awoke.text.json_bytes import bytes_of_json

if TYPE_CHECKING:
    from awoke.cli.encoding.documents import SubjectWriters, WriteDocument
    from awoke.payloads.registry.schema import Part

WINDOW = 50_000
"""The most messages without an answer. At this number the command waits for the older half."""
EncodeValue = Annotated[
    bool, typer.Option("--encode", help="Each value is JSON, and is written in the latest schema of its subject.")
]
ValueSubject = Annotated[str | None, typer.Option(help="With --encode: the subject, if it is not TOPIC-value.")]
ValueMessage = Annotated[
    str | None, typer.Option(help="With --encode: the message of a Protobuf schema that has several.")
]
EncodeKey = Annotated[
    bool, typer.Option("--encode-key", help="Each key is JSON, and is written in the latest schema of its subject.")
]
KeySubject = Annotated[str | None, typer.Option(help="With --encode-key: the subject, if it is not TOPIC-key.")]
KeyMessage = Annotated[
    str | None, typer.Option(help="With --encode-key: the message of a Protobuf schema that has several.")
]


Format = Literal["text", "json", "envelope"]


class LineError(AwokeError):
    """A line that can't be sent."""


class Envelope(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A line that holds all parts of its message, as `awoke tail --json` prints it.

    Bytes that are no text are `{"base64": "…"}`, in the key, the value and the headers.
    """

    value: msgspec.Raw
    """The value as written; text without its quotes, null for a tombstone."""
    key: Any = None
    headers: dict[str, Any] | list[tuple[str, Any]] = {}
    """A list of pairs may have a name twice."""
    partition: Annotated[int, msgspec.Meta(ge=0)] | None = None
    timestamp_ms: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """Milliseconds since 1970; null or nothing for the present time. librdkafka takes 0 for that, so 0 is refused."""
    topic: str | None = None
    """This and the rest say where `awoke tail` has read the message, and how; they are not sent."""
    offset: int | None = None
    key_schema: Any = None
    value_schema: Any = None
    key_note: str | None = None
    value_note: str | None = None


class Shape(msgspec.Struct, frozen=True):
    """The rules by which a line becomes a message."""

    format: Format = "text"
    key: str | None = None
    """The key of every message."""
    key_field: str | None = None
    key_separator: str | None = None
    headers: dict[str, str] = {}
    encoders: Mapping[str, WriteDocument] = {}
    """The functions that write a `key`, or a `value`, in a schema. Without one it is sent as it is."""

    def record(self, line: bytes) -> awoke.Record:
        """Returns the message of one line.

        Raises:
            ValueError: The line does not follow the rules; the text says why.
        """
        if self.format == "envelope":
            return self._envelope(line)
        if self.format == "json":
            return self._json(line)
        if self.key_separator is None:
            return awoke.Record(self._encoded("value", line), key=self._fixed_key(), headers=self.headers or None)
        key, found, value = line.partition(self.key_separator.encode())
        if not found:
            raise ValueError(f"has no key separator {self.key_separator!r}")
        key, value = self._encoded("key", key), self._encoded("value", value)
        return awoke.Record(value, key=key, headers=self.headers or None)

    def _json(self, line: bytes) -> awoke.Record:
        try:
            document: Any = msgspec.json.decode(line)
        except msgspec.DecodeError as error:
            raise ValueError(f"is no JSON: {error}") from None
        key = self._fixed_key()
        if self.key_field is not None:
            if not isinstance(document, dict) or self.key_field not in document:
                raise ValueError(f"has no field {self.key_field!r}")
            key = self._key(document[self.key_field])
        return awoke.Record(self._encoded("value", line), key=key, headers=self.headers or None)

    def _envelope(self, line: bytes) -> awoke.Record:
        try:
            parts = msgspec.json.decode(line, type=Envelope)
            value: Any = bytes(parts.value)
            if value == b"null" or ("value" not in self.encoders and stands_for_bytes(value)):
                document = msgspec.json.decode(value)
                value = bytes_of_json(document) if isinstance(document, dict) else document
        except (msgspec.DecodeError, ValueError) as error:
            raise ValueError(f"is no envelope: {error}") from None
        value = value if value is None else self._encoded("value", value)
        own = parts.headers.items() if isinstance(parts.headers, dict) else parts.headers
        headers: list[tuple[str, str | bytes | None]] = []
        headers += [pair for pair in self.headers.items() if pair[0] not in dict(own)]
        headers += [(name, header_value(name, each)) for name, each in own]
        return awoke.Record(value, self._key(parts.key), headers or None, parts.partition, parts.timestamp_ms)

    def _fixed_key(self) -> Any:
        return None if self.key is None else self._encoded("key", self.key.encode(errors="surrogateescape"))

    def _key(self, value: Any) -> str | bytes | None:
        is_encoded = value is not None and "key" in self.encoders
        return self._encoded("key", msgspec.json.encode(value)) if is_encoded else key_of(value)

    def _encoded(self, part: Part, data: Any) -> Any:
        encode = self.encoders.get(part)
        return data if encode is None else encode(data)


def stands_for_bytes(value: bytes) -> bool:
    """Returns whether JSON is the text of a message, or its bytes as base64, and not the message itself."""
    return value[:1] == b'"' or (b'"base64"' in value and is_base64(msgspec.json.decode(value)))


def is_base64(document: Any) -> bool:
    """Returns whether a JSON value stands for bytes that are no text."""
    return isinstance(document, dict) and document.keys() == {"base64"}


def key_of(value: Any) -> str | bytes | None:
    """Returns the key of a JSON value: text and bytes as they are, none for null, JSON for other values."""
    if value is None or isinstance(value, str):
        return value
    return bytes_of_json(value) if is_base64(value) else msgspec.json.encode(value).decode()


def header_value(name: str, value: Any) -> str | bytes | None:
    """Returns the value of a header.

    Raises:
        ValueError: It is neither text, bytes nor null, or its name can't be sent.
    """
    if "\0" in name:
        raise ValueError(f"header {name!r}: Kafka's C client ends a name at a zero byte")
    try:
        return value if isinstance(value, str) else bytes_of_json(value)
    except ValueError as error:
        raise ValueError(f"header {name!r}: {error}") from None


@command(Section.MESSAGES)
def produce(
    topic: Annotated[str, typer.Argument(help="The topic to send to.")],
    messages: Annotated[
        list[str] | None, typer.Argument(metavar="MESSAGE", help="A message. Without one, lines are read.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", help="Send each line of this file. By default of standard input.")
    ] = None,
    key: Annotated[str | None, typer.Option("--key", "-k", help="The key of each message.")] = None,
    format: Annotated[
        Format,
        typer.Option(
            metavar="text|json|envelope",
            help="The form of each message: text is sent as it is; json is checked; an envelope is JSON with value, "
            "key, headers, partition and timestamp_ms, as `awoke tail --json` prints it.",
        ),
    ] = "text",
    key_field: Annotated[str | None, typer.Option(help="With --format json: the field whose value is the key.")] = None,
    key_separator: Annotated[
        str | None, typer.Option(metavar="TEXT", help="With --format text: the text between key and value.")
    ] = None,
    header: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="A header of each message; may be repeated.")
    ] = None,
    encode: EncodeValue = False,
    value_subject: ValueSubject = None,
    value_message: ValueMessage = None,
    encode_key: EncodeKey = False,
    key_subject: KeySubject = None,
    key_message: KeyMessage = None,
    registry_url: RegistryUrl = None,
    bootstrap_servers: BootstrapServers = None,
    kafka: Kafka = None,
    quiet: Quiet = False,
) -> None:
    """Send messages, or each line as one, and wait until all are acknowledged. An empty line is an empty value."""
    check(format, key, key_field, key_separator)
    if encode_key and format != "envelope" and (key, key_field, key_separator) == (None, None, None):
        raise typer.BadParameter(
            "needs a key: --key, --key-field, --key-separator or envelopes", param_hint="--encode-key"
        )
    shape = Shape(format, key, key_field, key_separator, pairs(header, "--header"))
    properties = pairs(kafka, "--kafka")
    values = PartOptions("value", encode, value_subject, value_message)
    parts = encoded_parts(values, PartOptions("key", encode_key, key_subject, key_message))
    with (
        opened(messages or (), file) as stream,
        open_encoding(registry_url) if parts else contextlib.nullcontext() as encoding,
    ):
        with awoke.Admin(bootstrap_servers, kafka=properties) as admin:
            admin.describe_topic(topic)
        if encoding is not None:
            shape = msgspec.structs.replace(shape, encoders=encoders(encoding, topic, parts))
        with awoke.Producer(bootstrap_servers, kafka=properties) as producer:
            sent = SentLines()
            refused = send(producer, topic, stream, shape, sent)
            sent.wait(0)
    say_done(f"delivered {plural(sent.delivered, 'message')} to {topic}", is_quiet=quiet, err=True)
    problems = [str(error) for error in (refused, sent.failure()) if error is not None]
    if problems:
        raise AwokeError("; ".join(problems)) from (sent.first_error or refused)


def check(format: Format, key: str | None, key_field: str | None, key_separator: str | None) -> None:
    """Checks that the options do not contradict one another.

    Raises:
        typer.BadParameter: They do.
    """
    if key_field is not None and format != "json":
        raise typer.BadParameter("needs --format json", param_hint="--key-field")
    if key_separator is not None and format != "text":
        raise typer.BadParameter("is for --format text", param_hint="--key-separator")
    if key_separator == "":
        raise typer.BadParameter("must not be empty", param_hint="--key-separator")
    others = {"--key-field": key_field, "--key-separator": key_separator, "the envelopes": format == "envelope" or None}
    if key is not None and (found := [name for name, value in others.items() if value is not None]):
        raise typer.BadParameter(f"the key is given by {found[0]} already", param_hint="--key")


class MessageSource(NamedTuple):
    """The lines to send."""

    name: str
    lines: Iterable[bytes]
    unit: str = "line"
    total_bytes: int | None = None
    """None if it is not known."""


@contextlib.contextmanager
def opened(messages: Sequence[str], file: Path | None) -> Iterator[MessageSource]:
    """Opens what is sent: words of the command, a file, or standard input.

    Raises:
        ConfigError: There are both words and a file, or a word is the name of a file.
        LineError: The file can't be read.
    """
    if messages and file is not None:
        raise ConfigError("messages come from the command or from --file, not from both", "--file")
    for each in messages:
        if len(messages) == 1 and is_file(each):
            text = (
                f"{each} is a file; pass --file {each} to send its lines, or its name by: echo {each} | awoke produce"
            )
            raise ConfigError(f"{text} TOPIC", "--file")
    if messages:
        yield MessageSource("the command", [each.encode(errors="surrogateescape") for each in messages], "message")
    elif file is None or str(file) == "-":
        if sys.stdin.isatty():
            say("each line is a message; Ctrl-D ends", err=True)
        with open(sys.stdin.fileno(), "rb", closefd=False) as stream:
            yield MessageSource("standard input", stream)
    else:
        try:
            stream = file.open("rb")
        except OSError as error:
            raise LineError(f"{file}: {error.strerror}") from None
        with stream:
            yield MessageSource(str(file), stream, total_bytes=size_of(stream))


def is_file(word: str) -> bool:
    """Returns whether a word is the name of a file that exists."""
    try:
        return os.path.isfile(word)
    except ValueError:
        return False


def send(
    producer: awoke.Producer, topic: str, source: MessageSource, shape: Shape, sent: SentLines
) -> LineError | None:
    """Sends each line. Stops at a line that can't be sent, and returns an error with its file and number."""
    with progress(source.total_bytes) as advance:
        for number, line in enumerate(source.lines, 1):
            if number == 1:  # Editors of Windows begin a file with a byte order mark.
                line = line.removeprefix(codecs.BOM_UTF8)
            try:
                record = shape.record(line.removesuffix(b"\n").removesuffix(b"\r"))
                handle = producer.produce(topic, record.value, **record.options)
            except (ValueError, AwokeError) as error:
                at = f"{source.name}, {source.unit} {number}"
                return LineError(f"{at}: {error}; nothing from there on was sent")
            sent.add(handle)
            advance(len(line))
    return None


class SentLines:
    """The messages that were sent, and their results."""

    def __init__(self) -> None:
        self._handles: deque[awoke.DeliveryHandle] = deque()
        self.delivered = 0
        self.failed = 0
        self.first_error: BaseException | None = None

    def add(self, handle: awoke.DeliveryHandle) -> None:
        """Adds a message. Blocks if too many messages have no answer."""
        self._handles.append(handle)
        if len(self._handles) >= WINDOW:
            self.wait(WINDOW // 2)

    def wait(self, left: int) -> None:
        """Blocks until at most `left` messages have no answer."""
        oldest = [self._handles.popleft() for _ in range(len(self._handles) - left)]
        try:
            self.delivered += len(awoke.wait_all(oldest))
        except AwokeError:
            self._count(oldest)

    def _count(self, handles: list[awoke.DeliveryHandle]) -> None:
        for handle in handles:
            error = handle.exception()
            self.delivered += error is None
            self.failed += error is not None
            self.first_error = self.first_error or error

    def failure(self) -> str | None:
        """Returns the number of messages that were not delivered and the first error; `None` if all were."""
        return f"not delivered: {self.failed:,}; the first: {self.first_error}" if self.failed else None


@contextlib.contextmanager
def progress(total_bytes: int | None) -> Iterator[Callable[[int], None]]:
    """Shows a progress bar on a terminal; yields the function to call with the bytes of each message."""
    from rich.console import Console  # Here, because other commands show no progress.
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda size_bytes: None
        return
    rate = TextColumn("{task.fields[per_s]:,.0f} messages/s")
    columns = (TextColumn("sending"), BarColumn(), DownloadColumn(), rate, TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("sending", total=total_bytes, per_s=0.0)
        messages, sent_bytes, shown_s, begin_s = 0, 0, 0.0, time.monotonic()

        def advance(size_bytes: int) -> None:
            nonlocal messages, sent_bytes, shown_s
            messages, sent_bytes = messages + 1, sent_bytes + size_bytes
            if (now_s := time.monotonic()) - shown_s >= REFRESH_S:
                shown_s = now_s
                bar.update(task, completed=sent_bytes, per_s=messages / max(now_s - begin_s, 0.001))

        yield advance


def size_of(stream: BinaryIO) -> int | None:
    """Returns the size of a file in bytes; `None` for a pipe or a terminal."""
    status = os.fstat(stream.fileno())
    return status.st_size if stat.S_ISREG(status.st_mode) else None


class PartOptions(NamedTuple):
    """The options about the encoding of keys, or of values."""

    part: Part
    is_encoded: bool
    subject: str | None = None
    message: str | None = None

    def check(self) -> None:
        """Checks that the options do not contradict one another.

        Raises:
            typer.BadParameter: They do.
        """
        needed = "--encode" if self.part == "value" else "--encode-key"
        for name, given in (("subject", self.subject), ("message", self.message)):
            if given is not None and not self.is_encoded:
                raise typer.BadParameter(f"needs {needed}", param_hint=f"--{self.part}-{name}")


def encoded_parts(*options: PartOptions) -> list[PartOptions]:
    """Returns the options of the parts that are encoded.

    Raises:
        typer.BadParameter: Options contradict one another.
    """
    for each in options:
        each.check()
    return [each for each in options if each.is_encoded]


def open_encoding(registry_url: str | None) -> SubjectWriters:
    """Returns what encodes keys and values, as a context manager.

    Raises:
        ConfigError: No registry is set.
    """
    from awoke.cli.encoding.documents import SubjectWriters  # Here, because it loads HTTP and formats.

    return SubjectWriters(registry_url)


def encoders(encoding: SubjectWriters, topic: str, parts: list[PartOptions]) -> dict[str, WriteDocument]:
    """Returns the encoders for a topic. Blocks for the registry, which is asked once for each subject.

    Raises:
        AwokeError: The registry gives no schema, or the schema can't be used.
    """
    from awoke.cli.encoding.documents import WrittenSubject

    names = {each.part: each.subject or f"{topic}-{each.part}" for each in parts}
    return {each.part: encoding.writer(WrittenSubject(each.part, names[each.part], each.message)) for each in parts}
