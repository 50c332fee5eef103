"""Checks the HTML of the documentation: every link leads somewhere, and no page asks another host for anything."""

from __future__ import annotations

import posixpath
import re
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("video", "src"), ("audio", "src")}
"""Tags that a browser asks for by itself, beside the links of the head."""
RELATIONS = {"stylesheet", "icon", "preload", "preconnect", "dns-prefetch", "prefetch", "manifest", "modulepreload"}
TEXT = re.compile(r"<!--.*?-->|(<(script|style)\b[^>]*>).*?</\2>", re.DOTALL)
"""Text that may look like tags and holds none: comments, and the content of scripts and styles."""
TAG = re.compile(r"<([a-z][a-z0-9]*)\s((?:[^\"'>]|\"[^\"]*\"|'[^']*')*)>")
ATTRIBUTE = re.compile(r"([^\s=\"'/]+)=(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))")


class Page:
    """The anchors, the links and the loaded files of one page."""

    def __init__(self, html: str) -> None:
        self.anchors: set[str] = set()
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        for tag, attributes in TAG.findall(TEXT.sub(r"\1", html)):
            self._note(tag, {name: unescape("".join(value)) for name, *value in ATTRIBUTE.findall(attributes)})

    def _note(self, tag: str, values: dict[str, str]) -> None:
        """Notes what the tag names, links to, or loads."""
        self.anchors.update(values[name] for name in ("id", "name") if name in values)
        if tag == "a" and "href" in values:
            self.links.add(values["href"])
        if tag == "link" and RELATIONS & set(values.get("rel", "").split()):
            self.loaded.add(values["href"])
        self.loaded.update(value for name, value in values.items() if (tag, name) in LOADED)


class Site:
    """The pages of a site, and all its files, by their names below its folder."""

    def __init__(self, folder: Path) -> None:
        self.files = {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()}
        names = sorted(name for name in self.files if name.endswith(".html"))
        self.pages = {name: Page((folder / name).read_text()) for name in names}

    def leads_somewhere(self, page: str, link: str) -> bool:
        """Tells if the file of a link exists, with the anchor that the link names."""
        parts = urlsplit(link)
        target = unquote(parts.path)
        if target:
            target = posixpath.normpath(posixpath.join("/", posixpath.dirname(page), target)).lstrip("/")
            index = posixpath.join(target, "index.html")
            target = index if index in self.pages else target
        else:
            target = page
        if target not in self.pages or not parts.fragment:
            return target in self.files
        return unquote(parts.fragment) in self.pages[target].anchors


def faults(folder: Path) -> list[str]:
    """Returns each link of the site that leads nowhere, and each file that a page loads from another host."""
    site = Site(folder)
    wrong = []
    for name, page in site.pages.items():
        wrong += [f"{name} loads {each}" for each in page.loaded if urlsplit(each).netloc]
        links = page.links | page.loaded
        wrong += [
            f"{name} links to {each}" for each in links if is_inside(each) and not site.leads_somewhere(name, each)
        ]
    return sorted(wrong)


def is_inside(link: str) -> bool:
    """Tells if a link leads to another page of the site."""
    parts = urlsplit(link)
    return not parts.scheme and not parts.netloc
