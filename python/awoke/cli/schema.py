"""`awoke schema`: lists, shows, checks, compares and registers the schemas of a registry."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
import typer

from awoke.cli.commands import Section, group
from awoke.cli.options import AsJson
from awoke.cli.output import KEPT, say, say_json, show_list
from awoke.cli.registry_options import RegistryUrl, registry_at
from awoke.cli.schema_check import Verdict, check
from awoke.cli.schema_texts import Kind, Side, described, difference, name_of, pretty, references_in, schema_in, text_in
from awoke.errors import ConfigError
from awoke.text.exit_codes import EXIT_FAILED

if TYPE_CHECKING:
    from awoke.payloads.registry.client import SchemaRegistry
    from awoke.payloads.registry.schema import RegisteredSchema, Schema

app = group("schema", "List, show, check, compare and register the schemas of a registry.", Section.CLUSTER)

REQUESTS_MAX = 8
"""A list asks the registry for this number of subjects at once."""

Subject = Annotated[str, typer.Argument(help="The subject, as orders-value.")]
File = Annotated[Path, typer.Argument(help="The file with the schema; - for standard input.")]
KindOption = Annotated[
    Kind | None,
    typer.Option(
        "--kind",
        metavar="avro|json|protobuf",
        case_sensitive=False,
        help="The kind of schema, for a name that does not end with .avsc, .json or .proto.",
    ),
]
References = Annotated[
    list[str] | None,
    typer.Option(
        "--reference", metavar="NAME=SUBJECT:VERSION", help="A schema that this one refers to; may be repeated."
    ),
]


@app.command("list")
def list_subjects(
    prefix: Annotated[str, typer.Argument(help="Only the subjects that begin so.")] = "",
    as_json: AsJson = False,
    registry_url: RegistryUrl = None,
) -> None:
    """List subjects with their latest version, its id and its kind."""
    with registry_at(registry_url) as registry:
        rows = [(each.subject or "", each.version, each.id, each.schema.kind) for each in latest(registry, prefix)]
    show_list(("subject", "version", "id", "kind"), rows, as_json)


@app.command("show")
def show(
    subject: Annotated[str | None, typer.Argument(help="The subject, as orders-value.")] = None,
    version: Annotated[str | None, typer.Option(help="The version: its number, or latest, as by default.")] = None,
    schema_id: Annotated[
        int | None, typer.Option("--id", min=0, help="The schema of this id, as messages have it, of any subject.")
    ] = None,
    as_json: AsJson = False,
    registry_url: RegistryUrl = None,
) -> None:
    """Show a schema. Its head goes to standard error, so that standard output has the schema only."""
    if (subject is None) == (schema_id is None) or (schema_id is not None and version is not None):
        raise ConfigError("say a SUBJECT, with --version or without, or an --id alone", "--id")
    wanted = version_in(version or "latest")
    with registry_at(registry_url) as registry:
        found = registry.version(subject, wanted) if subject is not None else registry.schema(schema_id or 0)
    if as_json:
        say_json(document(found))
        return
    for line in head(found):
        say(line, err=True)
    say(pretty(found.schema).rstrip("\n"), keep=KEPT)


@app.command("check")
def check_schema(
    subject: Subject,
    file: File,
    version: Annotated[
        str | None,
        typer.Option(help="Compare with a number, latest or all. By default as the level does when one registers."),
    ] = None,
    kind: KindOption = None,
    reference: References = None,
    as_json: AsJson = False,
    registry_url: RegistryUrl = None,
) -> None:
    """Check whether a schema is compatible with a subject. Exit code 1 if it is not."""
    wanted = "all" if version == "all" else None if version is None else version_in(version, ", latest or all")
    schema = schema_in(file, kind, reference)
    with registry_at(registry_url) as registry:
        verdict = check(registry, subject, schema, wanted)
    if as_json:
        say_json(verdict.document())
    else:
        say_verdict(verdict, file)
    fail_unless(verdict.is_compatible)


@app.command("diff")
def diff(
    subject: Subject,
    other: Annotated[
        str,
        typer.Argument(metavar="FILE|VERSION", help="The other schema: a file, - for standard input, or a version."),
    ],
    version: Annotated[str, typer.Option(help="The version to compare with: its number, or latest.")] = "latest",
    registry_url: RegistryUrl = None,
) -> None:
    """Compare a version with a file, or with another version, the older one first. Exit code 1 if they differ."""
    wanted = version_in(version)
    with registry_at(registry_url) as registry:
        old = Side.of(registry.version(subject, wanted))
        if is_version(other):
            new = Side.of(registry.version(subject, version_in(other)))
            old, new = sorted((old, new), key=lambda side: side.version or 0)
        else:
            text = text_in(Path(other), old.schema.kind)
            new = Side(name_of(Path(other)), old.schema._replace(text=text))
    found = difference(old, new)
    for line in found:
        say(line, keep="\t")
    if not found:
        say(f"{old.name} and {new.name} are equal", err=True)
    fail_unless(not found)


@app.command("register")
def register(
    subject: Subject,
    file: File,
    kind: KindOption = None,
    reference: References = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check only, and register nothing.")] = False,
    registry_url: RegistryUrl = None,
) -> None:
    """Register a schema as the next version of a subject, if it is compatible. Exit code 1 if it is not."""
    schema = schema_in(file, kind, reference)
    with registry_at(registry_url) as registry:
        present = look_up(registry, subject, schema)
        if present is not None:
            say(f"{subject} has this schema already: version {present.version}, id {present.id}")
            return
        verdict = check(registry, subject, schema)
        if dry_run or not verdict.is_compatible:
            say_verdict(verdict, file)
            say("nothing was registered", err=True)
            fail_unless(verdict.is_compatible)
            return
        made = registry.register(subject, schema)
    say(f"{subject}: registered {name_of(file)} as version {made.version}, id {made.id}")


def latest(registry: SchemaRegistry, prefix: str) -> Iterator[RegisteredSchema]:
    """Yields the latest version of each subject with this prefix. Blocks; asks for several at once."""
    from concurrent.futures import ThreadPoolExecutor  # Here, because `--help` needs neither threads nor HTTP.

    from awoke.payloads.registry.errors import SchemaNotFound

    def of(subject: str) -> RegisteredSchema | None:
        try:
            return registry.latest(subject)
        except SchemaNotFound:  # It was deleted meanwhile.
            return None

    with ThreadPoolExecutor(REQUESTS_MAX, "awoke-schema-list") as pool:
        yield from (each for each in pool.map(of, registry.subjects(prefix)) if each is not None)


def look_up(registry: SchemaRegistry, subject: str, schema: Schema) -> RegisteredSchema | None:
    """Returns the version of a subject that has this schema; None if none has. Blocks."""
    from awoke.payloads.registry.errors import SchemaNotFound

    try:
        return registry.look_up(subject, schema)
    except SchemaNotFound:
        return None


def is_version(word: str) -> bool:
    """Returns whether a word is a version, and not the name of a file."""
    return word == "latest" or word.isdecimal()


def version_in(word: str, others: str = " or latest") -> int | Literal["latest"]:
    """Returns the version that a word means.

    Raises:
        ConfigError: It is neither `latest` nor a number from 1.
    """
    if word == "latest":
        return "latest"
    if not word.isdecimal() or int(word) < 1:
        raise ConfigError(f"a version is a number from 1{others}, not {word!r}", "--version")
    return int(word)


def head(found: RegisteredSchema) -> Iterator[str]:
    """Yields the lines that tell what a schema is, without those that the registry does not tell."""
    parts = {"subject": found.subject, "version": found.version, "id": found.id, "guid": found.guid}
    for name, value in {**parts, "kind": found.schema.kind}.items():
        if value is not None:
            yield f"{name}: {value}"
    for each in references_in(found.schema):
        yield f"reference: {each}"
    if found.schema.kind == "PROTOBUF" and described(found.schema.text) is not None:
        yield "form: a serialized description, shown in protobuf's text format"


def document(found: RegisteredSchema) -> str:
    """Returns a schema with all its parts as JSON."""
    text, kind, references = found.schema
    parts = {"subject": found.subject, "version": found.version, "id": found.id, "guid": found.guid, "kind": kind}
    return msgspec.json.encode(
        {**parts, "references": [each._asdict() for each in references], "schema": text}
    ).decode()


def say_verdict(verdict: Verdict, file: Path) -> None:
    """Prints a verdict about the schema of a file."""
    for line in verdict.lines(name_of(file)):
        say(line)


def fail_unless(is_good: bool) -> None:
    """Ends the command with exit code 1 if the answer is no.

    Raises:
        typer.Exit: It is no.
    """
    if not is_good:
        raise typer.Exit(EXIT_FAILED)
