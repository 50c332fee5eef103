"""The documentation as a site: every page is in the navigation, and the built HTML is whole and asks no other host."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import docs_links
import docs_reference
import docs_site
from awoke.cli.docs import page_file
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
    check_command(site)


def test_a_style_sheet_that_no_page_loads_is_left_out(tmp_path: Path) -> None:
    styles = tmp_path / "assets" / "stylesheets"
    for look in ("modern", "classic"):
        (styles / look).mkdir(parents=True)
        (styles / look / f"main.{look}.css").write_text("body {}")
    (tmp_path / "index.html").write_text('<link rel="stylesheet" href="assets/stylesheets/modern/main.modern.css">')
    docs_site.drop_unused_styles(tmp_path)
    assert [each.name for each in styles.rglob("*.css")] == ["main.modern.css"]


def check_command(site: Path) -> None:
    """`awoke docs` finds each page, and so the page that an error names."""
    for _, _, name in docs_site.pages():
        assert page_file(site, name) == site / name
    commands = {page_command(error) for error in docs_reference.error_classes()} - {None}
    assert len(commands) > 40
    assert all(page_file(site, str(command).removeprefix("awoke docs ")) for command in commands)
