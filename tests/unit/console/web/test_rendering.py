"""Numbers, durations and moments for people; hostile text harmless; files of pages under names of their content."""

from __future__ import annotations

import gzip
import re
import threading
from pathlib import Path

import jinja2
import pytest

from awoke.console.web import application, rendering
from awoke.console.web.rendering import FOREVER, STATIC, TEMPLATES, Assets, hashed
from awoke.waiting.clock import wall_ms
from tests.unit.console.web.fakes import FakeLive, console


def test_numbers_have_thin_spaces_and_sizes_have_units() -> None:
    assert [rendering.number(each) for each in (1234567, 1.25, None)] == ["1\u202f234\u202f567", "1.2", "–"]
    assert [rendering.size(each) for each in (999, 1_500, 45_000_000)] == ["999 B", "1.5 kB", "45 MB"]


def test_durations_and_moments_are_short() -> None:
    assert [rendering.duration_ms(each) for each in (5, 1_500, 61_000, None)] == ["5 ms", "1.5 s", "1 min", "–"]
    assert rendering.until(wall_ms() - 5) == "now"
    assert rendering.until(wall_ms() + 3_600_500).startswith("in ")
    assert rendering.ago(wall_ms() - 7_200_000) == "2 h ago"
    assert rendering.clock(0) == "1970-01-01 00:00:00"
    assert rendering.iso(2**63) == rendering.iso(253_402_300_799_000)


def test_hostile_text_is_escaped_and_its_control_characters_are_shown() -> None:
    text = rendering.environment().from_string("{{ text }}").render(text="<b>\x1b[1m\u202e")
    assert text == "&lt;b&gt;\\x1b[1m\\u202e"


def test_a_name_of_a_topic_is_one_segment_of_a_path() -> None:
    assert rendering.segment("a/b?c") == "a%2Fb%3Fc"


def test_a_line_lies_within_its_box() -> None:
    assert rendering.points([0, 5, 10]) == "0.0,31.0 80.0,16.0 160.0,1.0"
    assert rendering.points([]) == "0.0,31.0 160.0,31.0"


def test_a_number_agrees_with_its_noun_and_an_age_has_no_ago() -> None:
    assert [rendering.counted(count, "topic") for count in (0, 1, 2_000)] == [
        "0 topics",
        "1 topic",
        "2\u202f000 topics",
    ]
    assert rendering.counted(2, "process", "es") == "2 processes"
    assert (rendering.age(wall_ms() - 7_200_000), rendering.age(None)) == ("2 h", "–")
    assert rendering.ago(wall_ms()) == "now"


def test_the_first_page_compiles_no_template_after_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()

    def prepare(templates: jinja2.Environment) -> None:
        rendering.prepare(templates)
        ended.set()

    monkeypatch.setattr(application, "prepare", prepare)
    with console(FakeLive()) as client:
        assert ended.wait(60)
        monkeypatch.setattr("jinja2.Environment.compile", None)
        assert client.get("/").status_code == 200
        with pytest.raises(TypeError):
            client.get("/stuck")


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
