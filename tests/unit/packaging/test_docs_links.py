"""Links of the built documentation: those that lead nowhere, and files of other hosts, are found."""

from __future__ import annotations

from pathlib import Path

import pytest

import docs_links

HTML = '<h1 id="top">Page</h1><a href="guide/#start">Guide</a><a href="https://example.org/">Elsewhere</a>'


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "guide").mkdir()
    (tmp_path / "guide" / "index.html").write_text('<h1 id="start">Guide</h1><a href="../#top">Back</a>')
    (tmp_path / "index.html").write_text(HTML)
    return tmp_path


def test_a_site_without_faults_has_none(site: Path) -> None:
    assert docs_links.faults(site) == []


@pytest.mark.parametrize(
    ("tag", "fault"),
    [
        ('<a href="missing/">', "index.html links to missing/"),
        ('<a href="guide/#end">', "index.html links to guide/#end"),
        ('<a href="#bottom">', "index.html links to #bottom"),
        ('<img src="plot.svg">', "index.html links to plot.svg"),
        ('<img src="https://example.org/plot.svg">', "index.html loads https://example.org/plot.svg"),
        ('<script src="//example.org/x.js"></script>', "index.html loads //example.org/x.js"),
        ('<link rel="stylesheet" href="https://example.org/x.css">', "index.html loads https://example.org/x.css"),
    ],
)
def test_a_fault_is_named_with_its_page(site: Path, tag: str, fault: str) -> None:
    (site / "index.html").write_text(HTML + tag)
    assert docs_links.faults(site) == [fault]


@pytest.mark.parametrize(
    "text",
    [
        "<script>const link = '<a href=\"nowhere/\">'</script>",
        "<!-- <a href='nowhere/'> -->",
        "<p title=\"<a href='nowhere/'>\">",
        "<a href=guide/ title='a > b'>",
    ],
)
def test_what_only_looks_like_a_link_is_none(site: Path, text: str) -> None:
    (site / "index.html").write_text(HTML + text)
    assert docs_links.faults(site) == []
