"""`awoke docs`: prints the documentation of this version, which is in the package as Markdown."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Annotated

import typer

from awoke.cli.commands import Section, command
from awoke.cli.output import say
from awoke.errors import ConfigError

PAGES = Path(__file__).parents[1] / "pages"
"""`make docs` writes it, and wheels and source distributions have it."""
INDEX = "llms.txt"
"""The list of all pages."""
SUGGESTIONS_MAX = 5


@command(Section.TOOLS)
def docs(
    page: Annotated[
        str,
        typer.Argument(
            help="A page, as in errors/UnknownTopic or how_to/retry. By default the list of all.",
            autocompletion=lambda: sorted(file.relative_to(PAGES).as_posix() for file in PAGES.rglob("*.md")),
        ),
    ] = "",
) -> None:
    """Print a page of the documentation of this version, or the list of pages."""
    if not (PAGES / INDEX).exists():
        raise ConfigError("this awoke was built without its documentation; run `make docs`")
    file = page_file(PAGES, page) if page else PAGES / INDEX
    say(file.read_text().rstrip("\n"), keep="\n")


def page_file(pages: Path, name: str) -> Path:
    """Returns the file of a page, from what a user calls it: `errors/UnknownTopic`, `docs/rpc.md`.

    Raises:
        ConfigError: There is no such page; the text names those whose names are similar.
    """
    wanted = name.strip("/").removesuffix(".md").lower()
    names = {file.relative_to(pages).as_posix().removesuffix(".md"): file for file in pages.rglob("*.md")}
    by_name = {name.lower(): file for name, file in names.items()}
    file = by_name.get(wanted) or by_name.get(f"docs/{wanted}")
    if file is not None:
        return file
    short = {name.removeprefix("docs/").lower(): name.removeprefix("docs/") for name in names}
    close = difflib.get_close_matches(wanted, short, SUGGESTIONS_MAX, 0.5)
    hint = f": did you mean {', '.join(short[name] for name in close)}?" if close else "; `awoke docs` lists all pages"
    raise ConfigError(f"there is no page {name!r}{hint}")
