"""The documentation as a site: every page is in the navigation, and the built HTML is whole and asks no other host."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import docs_archive
import docs_links
import docs_reference
import docs_site
from awoke.cli.docs_pages import Documentation, installed
from awoke.errors import page_command


def test_every_page_is_in_the_navigation_once() -> None:
    files = [name for _, _, name in docs_site.pages()]
    written = {str(page.relative_to(docs_site.REPOSITORY)) for page in (docs_site.REPOSITORY / "docs").rglob("*.md")}
    made = set(docs_reference.pages())
    outside = {name for name in docs_site.FILES if name.endswith(".md")}
    assert written | made | outside <= set(files)
    assert sorted(files) == sorted(set(files))


def test_the_site_is_whole_and_asks_no_other_host(tmp_path: Path) -> None:
    pytest.importorskip("zensical", reason="there is no zensical for this Python")
    site = docs_site.build(tmp_path)
    assert docs_links.faults(site) == []
    index = json.loads((site / "search.json").read_text())
    assert "dead letter" in json.dumps(index)
    assert 'name="viewport"' in (site / "index.html").read_text()
    for _, _, name in docs_site.pages():
        assert f"({name})" in (site / "llms.txt").read_text()
        assert (site / name).read_text().startswith("# ")
    assert "#### Producer.produce(" in (site / "docs" / "awoke.md").read_text()
    check_command(Documentation({file.relative_to(site).as_posix(): b"" for file in site.rglob("*") if file.is_file()}))


def test_a_style_sheet_that_no_page_loads_is_left_out(tmp_path: Path) -> None:
    styles = tmp_path / "assets" / "stylesheets"
    for look in ("modern", "classic"):
        (styles / look).mkdir(parents=True)
        (styles / look / f"main.{look}.css").write_text("body {}")
    (tmp_path / "index.html").write_text('<link rel="stylesheet" href="assets/stylesheets/modern/main.modern.css">')
    docs_site.drop_unused_styles(tmp_path)
    assert [each.name for each in styles.rglob("*.css")] == ["main.modern.css"]


def check_command(documentation: Documentation) -> None:
    """Each page is found by `awoke docs`, and so is the page that an error names."""
    for _, _, name in docs_site.pages():
        page = documentation.page(name)
        assert page == name
        assert documentation.file(documentation.path(page)) is not None, page
    commands = {page_command(each) for each in docs_reference.error_classes()} - {None}
    assert len(commands) > 40
    assert all(documentation.page(str(each).removeprefix("awoke docs ")) for each in commands)


def test_the_archive_of_a_site_depends_on_its_contents_alone(tmp_path: Path) -> None:
    site, archives = tmp_path / "site", [tmp_path / "first", tmp_path / "second"]
    (site / "docs").mkdir(parents=True)
    (site / "docs" / "rpc.md").write_text("# Calls")
    for archive in archives:
        (site / "index.html").write_text("<h1>Start</h1>")
        docs_archive.pack(site, archive)
    assert archives[0].read_bytes() == archives[1].read_bytes()
    assert installed(archives[0]).files == {"docs/rpc.md": b"# Calls", "index.html": b"<h1>Start</h1>"}
