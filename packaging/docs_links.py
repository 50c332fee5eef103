"""Checks the HTML of the documentation: every link leads somewhere, and no page asks another host for anything."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("video", "src"), ("audio", "src")}
"""Tags that a browser asks for by itself, beside the links of the head."""
RELATIONS = {"stylesheet", "icon", "preload", "preconnect", "dns-prefetch", "prefetch", "manifest", "modulepreload"}


class Page(HTMLParser):
    """The anchors, the links and the loaded files of one page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes what the tag names, links to, or loads."""
        values = {name: value or "" for name, value in attrs}
        self.anchors.update(value for name, value in values.items() if name in ("id", "name"))
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag == "link" and RELATIONS & set(values.get("rel", "").split()):
            self.loaded.append(values["href"])
        self.loaded += [value for name, value in values.items() if (tag, name) in LOADED]


def faults(site: Path) -> list[str]:
    """Returns each link of the site that leads nowhere, and each file that a page loads from another host."""
    found = {file: Page(file.read_text()) for file in sorted(site.rglob("*.html"))}
    wrong = []
    for file, page in found.items():
        where = file.relative_to(site)
        wrong += [f"{where} loads {each}" for each in page.loaded if urlsplit(each).netloc]
        wrong += [
            f"{where} links to {each}"
            for each in [*page.links, *page.loaded]
            if is_inside(each) and not leads_somewhere(site, file, each, found)
        ]
    return sorted(set(wrong))


def is_inside(link: str) -> bool:
    """Tells if a link leads to another page of the site."""
    parts = urlsplit(link)
    return not parts.scheme and not parts.netloc


def leads_somewhere(site: Path, file: Path, link: str, pages: dict[Path, Page]) -> bool:
    """Tells if the file of a link exists, with the anchor that the link names."""
    parts = urlsplit(link)
    path = unquote(parts.path)
    base = site if path.startswith("/") else file.parent
    target = Path(base, path.lstrip("/")).resolve() if path else file
    if target.is_dir():
        target /= "index.html"
    if target not in pages or not parts.fragment:
        return target.exists()
    return unquote(parts.fragment) in pages[target].anchors
