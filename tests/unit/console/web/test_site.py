"""The pages of the site: each path once, each template there, each section known."""

from __future__ import annotations

from awoke.console.web.rendering import TEMPLATES
from awoke.console.web.site import PAGES, SECTIONS


def test_each_page_has_its_own_path_and_a_template() -> None:
    paths = [each.path for each in PAGES]
    assert len(paths) == len(set(paths))
    assert [each.path for each in PAGES if not (TEMPLATES / each.template).exists()] == []
    assert {each.section for each in PAGES} - {None} <= set(SECTIONS)
