"""The documentation as a site: every page is in the navigation, and the built HTML is whole and asks no other host."""

from __future__ import annotations

import json
from pathlib import Path

import docs_links
import docs_reference
import docs_site


def test_every_page_is_in_the_navigation_once() -> None:
    files = [name for _, _, name in docs_site.pages()]
    written = {str(page.relative_to(docs_site.REPOSITORY)) for page in (docs_site.REPOSITORY / "docs").rglob("*.md")}
    made = set(docs_reference.pages())
    outside = {name for name in docs_site.FILES if name.endswith(".md")}
    assert written | made | outside <= set(files)
    assert sorted(files) == sorted(set(files))


def test_the_site_is_whole_and_asks_no_other_host(tmp_path: Path) -> None:
    site = docs_site.build(tmp_path)
    assert docs_links.faults(site) == []
    index = json.loads((site / "search.json").read_text())
    assert "dead letter" in json.dumps(index)
    assert 'name="viewport"' in (site / "index.html").read_text()
    for _, _, name in docs_site.pages():
        assert f"({name})" in (site / "llms.txt").read_text()
        assert (site / name).read_text().startswith("# ")
    assert "#### Producer.produce(" in (site / "docs" / "awoke.md").read_text()
