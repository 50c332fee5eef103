"""`awoke asyncapi`: prints the AsyncAPI document of an app, and compares two of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from awoke.cli.commands import Section, group
from awoke.cli.options import AsJson, Target
from awoke.cli.output import say, say_json, say_styled
from awoke.cli.tables import plural
from awoke.errors import ConfigError
from awoke.text.exit_codes import EXIT_FAILED

app = group("asyncapi", "Describe the interface of an app by AsyncAPI 3.0.", Section.TOOLS)


@app.command("export")
def export(
    target: Target,
    version: Annotated[str, typer.Option(help="The version of the app, for `info`.")] = "0.0.0",
) -> None:
    """Print the AsyncAPI document of an app as JSON. Asks no broker."""
    from awoke.app.application import find_app
    from awoke.operate.asyncapi import document_of

    found = find_app(target)
    document = document_of(found, version, found.settings.group)
    say(json.dumps(document, indent=2, ensure_ascii=True), keep="\n")


@app.command("diff")
def diff(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="The file with the earlier document, as JSON.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="The file with the later one.")],
    as_json: AsJson = False,
) -> None:
    """Show the changes that break programs which send to an app or read from it. Exit code 1 if there are any."""
    from awoke.operate.asyncapi import changes

    found = changes(_read(old), _read(new))
    for each in found:
        if as_json:
            parts = {"is_breaking": each.is_breaking, "place": each.place, "text": each.text}
            say_json(json.dumps(parts))
            continue
        say_styled(
            f"{'breaking' if each.is_breaking else 'new'}: {each.place}: {each.text}",
            "red" if each.is_breaking else "",
        )
    count = sum(each.is_breaking for each in found)
    say(plural(count, "breaking change") if count else "no breaking change", err=as_json)
    if count:
        raise typer.Exit(EXIT_FAILED)


def _read(file: Path) -> dict[str, Any]:
    try:
        document = json.loads(file.read_text())
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}", str(file)) from None
    except ValueError as error:
        raise ConfigError(f"{file}: is no JSON: {error}", str(file)) from None
    if not isinstance(document, dict) or not str(document.get("asyncapi", "")).startswith("3."):
        raise ConfigError(f"{file}: is no document of AsyncAPI 3", str(file))
    return document
