"""The documentation that comes with awoke: the site in one archive in the package, read into memory.

`make docs` writes the archive, and wheels and source distributions have it.
"""

from __future__ import annotations

import difflib
import tarfile
from pathlib import Path

from awoke.errors import ConfigError

ARCHIVE = Path(__file__).parents[1] / "docs.tar.xz"
SUGGESTIONS_MAX = 5


def installed(archive: Path = ARCHIVE) -> Documentation:
    """Returns the documentation of this awoke.

    Raises:
        ConfigError: It has none.
    """
    try:
        with tarfile.open(archive) as opened:
            read = {member.name: opened.extractfile(member) for member in opened if member.isfile()}
            return Documentation({name: file.read() for name, file in read.items() if file is not None})
    except FileNotFoundError:
        raise ConfigError("this awoke was built without its documentation: `make docs` makes it") from None
    except tarfile.ReadError as error:
        raise ConfigError(f"the documentation in {archive} can't be read: {error}") from None


class Documentation:
    """The files of the site, by their names: HTML, and each page in Markdown as well."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files

    def page(self, name: str) -> str:
        """Returns the name of a page in Markdown, from what a user calls it: `errors/UnknownTopic`, `docs/rpc.md`.

        Raises:
            ConfigError: There is no such page; the text names those whose names are similar.
        """
        wanted = f"{name.strip('/').removesuffix('.md')}.md".lower()
        by_name = {each.lower(): each for each in self.files if each.endswith(".md")}
        found = by_name.get(wanted) or by_name.get(f"docs/{wanted}")
        if found is not None:
            return found
        short = {each.removeprefix("docs/").removesuffix(".md"): each for each in by_name}
        close = difflib.get_close_matches(wanted.removesuffix(".md"), short, SUGGESTIONS_MAX, 0.5)
        named = [by_name[short[each]].removeprefix("docs/").removesuffix(".md") for each in close]
        hint = f": did you mean {', '.join(named)}?" if named else "; `awoke docs --text` lists all pages"
        raise ConfigError(f"there is no page {name!r}{hint}")

    def text(self, page: str) -> str:
        """Returns a page in Markdown."""
        return self.files[page].decode()

    def path(self, page: str) -> str:
        """Returns the path of a page's HTML on the site."""
        folder, _, file = page.removesuffix(".md").rpartition("/")
        parts = [part for part in (folder, "" if file in ("README", "index") else file) if part]
        return "".join(f"/{part}" for part in parts) + "/"

    def file(self, path: str) -> tuple[str, bytes] | None:
        """Returns the name and the content for the path of a request; `None` if there is no such file."""
        name = path.lstrip("/")
        if name == "" or name.endswith("/"):
            name += "index.html"
        return (name, self.files[name]) if name in self.files else None
