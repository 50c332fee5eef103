"""The console in Chromium: every link, live updates, without scripts, by the keyboard, narrow, dark and light.

A console error, a violation of the policy for content and a finding of axe fail the test. Screenshots go to the folder
AWOKE_SCREENSHOTS, if it is set.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.python_syntax import REPOSITORY

CHROMIUM = shutil.which("chromium")
AXE = REPOSITORY / "target" / "console" / "axe.min.js"
WITHIN_MS = 60_000
PAGES_MAX = 60
"""The most pages that a crawl opens: a new list of links must not make the test slow."""
ARGUMENTS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="chromium is not installed: apt-get install chromium shows the console in a browser"
)


class Site(NamedTuple):
    """A console that is served, and the browser that shows it."""

    url: str
    browser: Any
    server: subprocess.Popen[str]

    def page(self, **options: Any) -> tuple[Any, list[str]]:
        """Returns a new page, and the list of what goes wrong in it."""
        context = self.browser.new_context(reduced_motion="reduce", **options)
        context.set_default_timeout(WITHIN_MS)
        page, wrong = context.new_page(), list[str]()
        page.on("console", lambda each: wrong.append(each.text) if each.type in ("error", "warning") else None)
        page.on("pageerror", lambda each: wrong.append(str(each)))
        return page, wrong


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """One server, in a process of its own, and one browser."""
    playwright = pytest.importorskip("playwright.sync_api")
    command = [sys.executable, "-m", "tests.support.seeded_console"]
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY) as server,
        playwright.sync_playwright() as driver,
    ):
        assert server.stdin is not None
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS, timeout=WITHIN_MS)
        yield Site(url, browser, server)
        browser.close()
        server.stdin.close()
        server.wait(60)


def shoot(page: Any, name: str) -> None:
    """Writes a screenshot, if they are wanted."""
    folder = os.environ.get("AWOKE_SCREENSHOTS")
    if folder:
        # Playwright itself would write the file on a thread, and leave it behind.
        (Path(folder) / f"console_{name}.png").write_bytes(page.screenshot(full_page=True))


def links_of(page: Any, url: str) -> list[str]:
    """Returns the paths of the page's links within the console, without those of sorted and cut tables."""
    found = page.eval_on_selector_all("a[href]", "all => all.map(each => each.href)")
    paths = [each.removeprefix(url).partition("#")[0] for each in found if each.startswith(url)]
    return [each for each in paths if "sort=" not in each and "format=" not in each]


def findings_of(page: Any) -> list[str]:
    """Returns what axe finds on a page; nothing where it was not fetched."""
    if not AXE.exists():
        return []
    page.evaluate(AXE.read_text())
    found = page.evaluate("axe.run()")
    return [f"{page.url} {each['id']}: {each['nodes'][0]['html'][:200]}" for each in found["violations"]]


def test_every_link_leads_to_a_page_without_errors_in_dark_and_light(site: Site) -> None:
    page, wrong = site.page(color_scheme="light")
    seen, waiting = set[str](), ["/"]
    while waiting and len(seen) < PAGES_MAX:
        path = waiting.pop(0)
        if path in seen:
            continue
        seen.add(path)
        answer = page.goto(site.url + path)
        # 502: the page needs brokers, which the made-up app has not.
        assert answer.status in (200, 502), path
        wrong = [each for each in wrong if "502" not in each]
        if len(seen) <= 12:  # Axe takes its time, and the pages of one kind have one template.
            assert findings_of(page) == []
        waiting += links_of(page, site.url)
    assert wrong == []
    assert {"/stuck", "/partitions", "/errors/9f3a0"} <= seen
    page.goto(f"{site.url}/")
    shoot(page, "light")
    page.emulate_media(color_scheme="dark")
    assert findings_of(page) == []
    page.reload()
    shoot(page, "dark")
    page.context.close()


def test_a_change_is_shown_at_once(site: Site) -> None:
    page, wrong = site.page()
    page.goto(f"{site.url}/processes")
    page.locator(".live[data-state=on]").wait_for()
    assert site.server.stdin is not None
    site.server.stdin.write("web-9.new\n")
    site.server.stdin.flush()
    page.locator("th a", has_text="web-9.new").wait_for()
    assert wrong == []
    page.context.close()


def test_pages_work_without_scripts_narrow_and_by_the_keyboard(site: Site) -> None:
    page, _ = site.page(java_script_enabled=False, viewport={"width": 390, "height": 844})
    page.goto(f"{site.url}/partitions?state=failing")
    page.locator("th a", has_text="flights").click()
    page.locator("h2", has_text="Failing messages").wait_for()
    page.context.close()

    page, wrong = site.page(viewport={"width": 390, "height": 844})
    for path in ("/", "/partitions", "/partitions/flights/3/flights", "/errors/9f3a0", "/processes", "/settings"):
        page.goto(site.url + path)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path
    page.goto(f"{site.url}/")
    shoot(page, "narrow")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('main') !== null")
    page.keyboard.press("Enter")
    page.wait_for_url(f"{site.url}/processes")
    assert wrong == []
    page.context.close()
