"""The first page of an app that starts, in Chromium; and that a page which has not changed stays as it is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.browsers import NARROW, Site, findings_of, needs_chromium, served, shoot

pytestmark = needs_chromium
WATCH = """() => {
  window.replaced = 0;
  const main = document.querySelector("main");
  const all = { attributes: true, childList: true, subtree: true, characterData: true };
  new MutationObserver(() => { window.replaced += 1; }).observe(main, all);
}"""
"""Counts how often the content of the page changes."""


@pytest.fixture
def site() -> Iterator[Site]:
    """A console of an app that starts, and a browser."""
    with served("tests.support.starting_console") as site:
        yield site


def fetched(page: Any, site: Site, line: str) -> None:
    """Tells the server of a change, and waits until the page has been fetched again."""
    with page.expect_response(lambda each: each.url == page.url):
        site.tell(line)


def test_the_page_of_a_start_becomes_the_overview_by_itself(site: Site) -> None:
    page, wrong = site.page(color_scheme="light")
    page.goto(site.url)
    page.locator("h1", has_text="Waiting for flights").wait_for()
    assert page.locator(".step").count() == 5
    assert page.locator(".step", has_text="First report").locator(".where").inner_text() == "since 2 h"
    assert findings_of(page) == []
    shoot(page, "waiting_light")
    page.emulate_media(color_scheme="dark")
    assert findings_of(page, "color-contrast") == []
    shoot(page, "waiting_dark")
    page.set_viewport_size(NARROW)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    shoot(page, "waiting_narrow")
    page.locator(".live[data-state=on]").wait_for()

    plain, _ = site.page(java_script_enabled=False)
    plain.goto(site.url)
    plain.locator("h1", has_text="Waiting for flights").wait_for()
    site.tell("web-1.11")
    for each in (page, plain):
        each.locator("h1", has_text="Overview").wait_for()
        each.locator("h2", has_text="The last five minutes").wait_for()
        assert each.locator(".step").count() == 0
    assert wrong == []
    page.context.close()
    plain.context.close()


def test_a_start_that_has_just_begun_is_shown_in_seconds() -> None:
    """Its screenshot is the one in the documentation."""
    with served("tests.support.starting_console", "12") as site:
        page, wrong = site.page(color_scheme="light")
        page.goto(site.url)
        waiting = page.locator(".step", has_text="First report").locator(".where").inner_text()
        assert re.fullmatch(r"since [0-9.]+ (s|min)", waiting)
        shoot(page, "start_light")
        assert wrong == []
        page.context.close()


def test_a_page_that_has_not_changed_is_left_alone(site: Site) -> None:
    page, wrong = site.page()
    page.goto(f"{site.url}/audit")
    page.locator(".live[data-state=on]").wait_for()
    fetched(page, site, "")
    fetched(page, site, "")
    page.evaluate("() => new Promise((done) => setTimeout(done))")
    page.evaluate(WATCH)
    for name in ("web-1.11", "web-1.12", ""):  # The page of commands shows no processes.
        fetched(page, site, name)
    page.evaluate("() => new Promise((done) => setTimeout(done))")
    assert page.evaluate("window.replaced") == 0
    assert wrong == []

    page.goto(f"{site.url}/processes")
    page.locator(".live[data-state=on]").wait_for()
    page.evaluate(WATCH)
    site.tell("web-1.13")
    page.locator("th a", has_text="web-1.13").wait_for()
    assert page.evaluate("window.replaced") >= 1, "a page that has changed is shown"
    page.context.close()
