"""The options of a command that writes keys and values in schemas of a registry, and the encoders for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

if TYPE_CHECKING:
    from awoke.cli.encoding.documents import SubjectWriters, WriteDocument
    from awoke.payloads.registry.schema import Part

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
