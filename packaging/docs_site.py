"""Builds the documentation: pages, HTML, a Markdown twin of each page, `llms.txt`; then checks every link of it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

import docs_links
import docs_reference

REPOSITORY = Path(__file__).resolve().parents[1]
TARGET = REPOSITORY / "target" / "docs"
PACKAGED = REPOSITORY / "python" / "awoke" / "pages"
"""The Markdown for `awoke docs`: part of wheels and source distributions; not under version control."""
FOLDERS = ("docs", "examples", "bench/plots", "bench/profiles")
"""Folders of the site. Its tree is the repository's, so that a link leads to the same page in both."""
FILES = ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE", "bench/README.md")


def settings() -> dict[str, Any]:
    """Returns the settings of mkdocs.yml."""
    loaded: dict[str, Any] = yaml.safe_load((REPOSITORY / "mkdocs.yml").read_text())
    return loaded


def navigation(entries: list[Any], heading: str = "") -> Iterator[tuple[str, str, str]]:
    """Yields the pages of the navigation in order: the tab of each, its title, and its file."""
    for entry in entries:
        for title, content in entry.items():
            if isinstance(content, str):
                yield heading or title, title, content
            else:
                yield from navigation(content, heading or title)


def pages() -> list[tuple[str, str, str]]:
    """Returns the pages of the site: the tab of each, its title, and its file."""
    listed = list(navigation(settings()["nav"]))
    errors = sorted(each.__name__ for each in docs_reference.error_classes())
    return [*listed, *(("Errors", name, f"docs/errors/{name}.md") for name in errors)]


def prepare(target: Path) -> None:
    """Writes the pages of the repository, and those made from the source, below `target`."""
    shutil.rmtree(target, ignore_errors=True)
    for folder in FOLDERS:
        shutil.copytree(REPOSITORY / folder, target / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name in FILES:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPOSITORY / name, target / name)
    for name, text in docs_reference.pages().items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_text(text)


def build_html(target: Path) -> None:
    """Builds the HTML with Zensical. A link in Markdown that leads nowhere is an error."""
    text = (REPOSITORY / "mkdocs.yml").read_text().replace("target/docs/", "")
    (target / "mkdocs.yml").write_text(text.replace("paths: [python]", f"paths: ['{REPOSITORY / 'python'}']"))
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict", "-f", "mkdocs.yml"]
    subprocess.run(command, cwd=target, check=True)


def write_markdown(prepared: Path, folder: Path) -> None:
    """Writes the Markdown of each page into a folder, under its name in the repository, and the list of them."""
    for _, _, name in pages():
        twin = folder / name
        twin.parent.mkdir(parents=True, exist_ok=True)
        twin.write_text(docs_reference.without_directives((prepared / name).read_text()))
    (folder / "llms.txt").write_text(llms_txt())


def drop_unused_styles(site: Path) -> None:
    """Removes the style sheets that no page loads: the theme brings those of its other look, too."""
    pages = "".join(page.read_text() for page in site.rglob("*.html"))
    for sheet in site.glob("assets/stylesheets/**/*.css"):
        if sheet.name not in pages:
            sheet.unlink()


def llms_txt() -> str:
    """Returns the site's index for programs that read Markdown: a link to the twin of each page."""
    lines, last = [f"# {settings()['site_name']}", "", f"> {settings()['site_description']}"], ""
    for heading, title, name in pages():
        if heading != last:
            lines += ["", f"## {heading}", ""]
        lines.append(f"- [{title}]({name})")
        last = heading
    return "\n".join(lines) + "\n"


def build(target: Path = TARGET) -> Path:
    """Builds the site below `target`, and returns its folder."""
    prepare(target / "pages")
    shutil.rmtree(target / "site", ignore_errors=True)
    build_html(target)
    drop_unused_styles(target / "site")
    write_markdown(target / "pages", target / "site")
    return target / "site"


def main() -> int:
    """Builds and checks the site. Returns the exit code: 1 if a link leads nowhere, or to another host by itself."""
    site = build()
    found = docs_links.faults(site)
    shutil.rmtree(PACKAGED, ignore_errors=True)
    write_markdown(TARGET / "pages", PACKAGED)
    for each in found:
        print(f"error: {each}", file=sys.stderr)
    print(f"{site / 'index.html'}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
