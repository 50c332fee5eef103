"""The files of the console: hashed names, a bound on their size, nothing that a policy for content would refuse."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

from awoke.console.web.assets import FOREVER, STATIC, Assets, hashed
from awoke.console.web.rendering import TEMPLATES
from tests.unit.console.web.fakes import console


def test_a_name_changes_with_the_content() -> None:
    assert hashed("vendor/a.min.js", b"1") != hashed("vendor/a.min.js", b"2")
    assert re.fullmatch(r"vendor/a\.min\.[0-9a-f]{8}\.js", hashed("vendor/a.min.js", b"1"))


def test_a_file_is_served_for_ever_under_its_hashed_name_only() -> None:
    path = Assets().path("console.css")
    assert path is not None
    with console() as client:
        found = client.get(path)
        assert (found.status_code, found.headers["cache-control"]) == (200, FOREVER)
        assert client.get("/static/console.css").status_code == 404
        assert client.get("/static/../site.py").status_code == 404


def test_files_of_others_may_be_missing(tmp_path: Path) -> None:
    assert Assets(tmp_path).path("vendor/uPlot.iife.min.js") is None


def test_the_style_is_small() -> None:
    assert (STATIC / "console.css").stat().st_size <= 12_000
    scripts = [each for each in STATIC.rglob("*") if each.suffix in (".css", ".js")]
    assert sum(each.stat().st_size for each in scripts) <= 110_000
    assert sum(len(gzip.compress(each.read_bytes())) for each in scripts) <= 45_000


def test_each_table_has_a_caption() -> None:
    tables = [(each.name, found) for each in TEMPLATES.glob("*.html") for found in tables_of(each.read_text())]
    assert tables
    assert [table for table in tables if not re.match(r"<table[^>]*>\s*<caption>\s*\S", table[1])] == []


def tables_of(text: str) -> list[str]:
    """Returns the beginning of each table."""
    return [text[each.start() : each.start() + 200] for each in re.finditer("<table", text)]


def test_no_template_has_what_the_policy_for_content_refuses() -> None:
    refused = re.compile(r"\sstyle=|<style|hx-on|js:|javascript:|\son[a-z]+=|hx-trigger=[^>]*\[|<script(?![^>]*\ssrc=)")
    found = [each.name for each in TEMPLATES.glob("*.html") if refused.search(each.read_text())]
    assert found == []
    assert list(TEMPLATES.glob("*.html"))
