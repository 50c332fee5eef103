"""`awoke table`: lists the tables of an app, and reads their rows from the processes that have them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import msgspec
import typer

import awoke
from awoke.cli.app_types import KeepSecrets, check_keeps, shown_by, types_of
from awoke.cli.commands import Section, group
from awoke.cli.options import BootstrapServers, Kafka, pairs
from awoke.cli.output import say, say_json, show_table
from awoke.cli.tail import line_of
from awoke.errors import ConfigError
from awoke.payloads.topics import Topic
from awoke.text.json_bytes import json_of_bytes
from awoke.text.printable import printable

if TYPE_CHECKING:
    from awoke.console.explorer.parts import DecodedParts
    from awoke.payloads.decoding.registered import ShownPart

app = group("table", "List the tables of an app, and read their rows.", Section.MESSAGES)

OfApp = Annotated[
    str,
    typer.Argument(
        metavar="APP|MODULE:APP",
        help="The app's name; or the app itself, whose types decode rows and whose secret fields are masked.",
    ),
]
Named = Annotated[str, typer.Argument(metavar="TABLE", help="The table's name.")]
Partition = Annotated[int | None, typer.Option(help="The partition; by default that of the key, or all.")]
Stale = Annotated[bool, typer.Option("--stale", help="Read what is there while a partition is being restored.")]
Group = Annotated[str | None, typer.Option(help="The group of the table's route, if it is not the app's name.")]
Secret = Annotated[
    str | None, typer.Option(envvar="AWOKE_RPC_SECRET", help="The secret that signs calls; better in the environment.")
]
Timeout = Annotated[float, typer.Option(help="Seconds to wait for each answer, and for the scan of a partition.")]
SCAN_S = 600.0
"""The default time for the scan of a partition."""


class RowBytes(NamedTuple):
    """A row, as the decoders of messages take it."""

    topic: str
    raw_key: bytes
    raw_value: bytes
    headers: tuple[tuple[str, bytes | None], ...] = ()


class OpenTable(NamedTuple):
    """A table to read, with what is known of its types."""

    table: awoke.Table
    topic: str
    key_type: Any
    parts: DecodedParts | None
    """None of an app that is only named."""

    def key(self, text: str) -> Any:
        """Returns a key as it is typed: text, or JSON for a table with keys of another type.

        Raises:
            ConfigError: it is not a key of the table.
        """
        if self.key_type in (None, str, bytes) or isinstance(self.key_type, awoke.Format):
            return text
        try:
            return msgspec.json.decode(text, type=self.key_type)
        except (msgspec.MsgspecError, TypeError) as error:
            raise ConfigError(f"the key {text!r} is not one of this table, as JSON: {error}", "key") from None

    def shown(self, key: bytes, value: bytes) -> list[ShownPart]:
        """Returns a row as it is printed: decoded and masked by the types of the app, or as bytes."""
        from awoke.payloads.decoding.registered import ShownPart  # It loads HTTP and formats.

        if self.parts is None:
            return [ShownPart("key", key), ShownPart("value", value)]
        return shown_by(self.parts, RowBytes(self.topic, key, value), "key", "value")  # type: ignore[arg-type]


@app.command("list")
def list_tables(
    of_app: OfApp,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, one document per line.")] = False,
    bootstrap_servers: BootstrapServers = None,
    kafka: Kafka = None,
) -> None:
    """Show rows, size and owner of each partition of an app's tables (needs console=True)."""
    from awoke.console.state import read_view

    name, settings = named(of_app, bootstrap_servers, kafka)
    found = []
    for node in read_view(name, settings).nodes:
        report = node.report()
        found += [] if report is None or report.state == "stopping" else [(each, node) for each in report.tables]
    found.sort(key=lambda pair: (pair[0].table, pair[0].partition, -pair[1].at_ms))
    if json:
        for each, node in found:
            say_json(msgspec.json.encode({**msgspec.structs.asdict(each), "process": node.node}).decode())
        return
    rows = [
        (
            each.table,
            str(each.partition),
            f"{each.rows:,}",
            f"{each.size_bytes:,}",
            f"{each.memory_bytes:,}",
            "silent" if node.is_silent else "restored" if each.is_restored else "being restored",
            node.node,
        )
        for each, node in found
    ]
    if not rows:
        say(f"no process of app {name} has reported a partition of a table", err=True)
        return
    show_table(("table", "partition", "rows", "bytes", "memory", "state", "process"), rows)


@app.command("get")
def get(
    of_app: OfApp,
    name: Named,
    key: Annotated[str, typer.Argument(help="The key: text, or JSON for keys of another type.")],
    partition: Partition = None,
    stale: Stale = False,
    keep_secrets: KeepSecrets = False,
    group: Group = None,
    secret: Secret = None,
    timeout_s: Timeout = 5.0,
    bootstrap_servers: BootstrapServers = None,
    kafka: Kafka = None,
) -> None:
    """Print the row of a key. Without one, the exit code is 1."""
    with opened(of_app, name, keep_secrets, group, secret, bootstrap_servers, kafka, by_key=True) as found:
        row = found.table.find(found.key(key), partition=partition, stale=stale, timeout_s=timeout_s)
        if row.value is None:
            at = f"partition {row.partition}, which {row.process} has" + (" and restores" if row.is_stale else "")
            raise awoke.rpc.NotFound(f"table {name!r} has no row {printable(key)!r} in {at}")
        _, value = found.shown(b"", row.value)
        say(line_of(value))


@app.command("scan")
def scan(
    of_app: OfApp,
    name: Named,
    partition: Partition = None,
    stale: Stale = False,
    keep_secrets: KeepSecrets = False,
    group: Group = None,
    secret: Secret = None,
    timeout_s: Timeout = SCAN_S,
    bootstrap_servers: BootstrapServers = None,
    kafka: Kafka = None,
) -> None:
    """Print the key and the value of each row, in no order."""
    with opened(of_app, name, keep_secrets, group, secret, bootstrap_servers, kafka) as found:
        for key, value in found.table.scan(partition, stale=stale, timeout_s=timeout_s):
            say("\t".join(map(line_of, found.shown(key, value))), keep="\t")


@app.command("export")
def export(
    of_app: OfApp,
    name: Named,
    partition: Partition = None,
    stale: Stale = False,
    keep_secrets: KeepSecrets = False,
    group: Group = None,
    secret: Secret = None,
    timeout_s: Timeout = SCAN_S,
    bootstrap_servers: BootstrapServers = None,
    kafka: Kafka = None,
) -> None:
    """Print each row as one JSON document with its key and its value."""
    with opened(of_app, name, keep_secrets, group, secret, bootstrap_servers, kafka) as found:
        for row in found.table.scan(partition, stale=stale, timeout_s=timeout_s):
            document = {each.name: document_of(each) for each in found.shown(*row)}
            say_json(msgspec.json.encode(document).decode())


def document_of(part: ShownPart) -> Any:
    """Returns a key or a value for a JSON document: decoded, or as text or base64."""
    return json_of_bytes(part.raw) if part.decoded is None else msgspec.Raw(part.decoded.json.encode())


def named(target: str, bootstrap_servers: str | None, kafka: list[str] | None) -> tuple[str, Any]:
    """Returns the name of an app, and the settings to connect with.

    Raises:
        AppNotFound: there is no such app in the module.
    """
    from awoke.app.application import find_app  # Here and below: they load the Kafka client.
    from awoke.settings import load

    properties = pairs(kafka, "--kafka")
    if ":" not in target:
        return target, load({"bootstrap_servers": bootstrap_servers, "kafka": properties}).values
    found = find_app(target)
    found.use(bootstrap_servers=bootstrap_servers, kafka=properties)
    return found.name, found.settings


@contextlib.contextmanager
def opened(
    target: str,
    name: str,
    keeps_secrets: bool,
    group: str | None,
    secret: str | None,
    bootstrap_servers: str | None,
    kafka: list[str] | None,
    *,
    by_key: bool = False,
) -> Iterator[OpenTable]:
    """Yields a table with values as bytes, and keys as well, or of its type where it is asked `by_key`.

    Raises:
        ConfigError: the app has no table of this name. UnknownTopic: the app does not answer queries of it.
    """
    of_app, settings = named(target, bootstrap_servers, kafka)
    key, topic = None, f"{of_app}.table.{name}"
    signed_by = None if secret is None else secret.encode()
    with contextlib.ExitStack() as stack:
        parts = None
        if ":" in target:
            found = _app_of(target)
            if name not in found.tables:
                known = ", ".join(found.tables) or "none"
                raise ConfigError(f"app {of_app!r} has no table {name!r}; its tables are: {known}", "table")
            changelog: Topic = found.tables[name].changelog
            key, topic = changelog.key, str(changelog)
            routes = [each for each in found.all_routes if found.tables[name] in each.written_tables]
            group = group or next((each.group for each in routes if each.group), None) or settings.group
            signed_by = signed_by or found.rpc.settings.secret
            parts = stack.enter_context(types_of(target, keeps_secrets))
        else:
            check_keeps(None, keeps_secrets)
        of_key = key if by_key else None
        table = awoke.Table(
            of_app, name, key=of_key, group=group, settings=settings, secret=signed_by, caller="awoke table"
        )
        yield OpenTable(stack.enter_context(table), topic, key, parts)


def _app_of(target: str) -> awoke.App:
    from awoke.app.application import find_app

    return find_app(target)
