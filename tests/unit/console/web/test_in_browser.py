"""The console in Chromium: every page, live updates, hostile text, no scripts, the keyboard, narrow, dark and light.

A console error, a violation of the policy for content and a finding of axe fail the test. Screenshots go to the folder
AWOKE_SCREENSHOTS, if it is set.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.routing import compile_path

from awoke.console.web.application import PAGES
from tests.support.browsers import NARROW, Site, findings_of, needs_chromium, served, shoot

pytestmark = needs_chromium
ROUTES = {each.path: compile_path(each.path)[0] for each in PAGES}
NO_PAGES = {
    "/topics/{topic}/messages/{partition}/{offset}/file",
    "/topics/{topic}/search/hits",
}
"""Routes whose answer is a file or a stream."""
NO_LINKS = {"/groups/{group:path}/reset": "/groups/flights/reset?to=latest"}
"""Pages that a form leads to."""
REPLAY = "/letters/{topic}/replays/{run}"
DARK = {
    "/style",
    "/",
    "/partitions/{topic}/{partition}/{group:path}",
    "/audit",
    "/letters/{topic}/plan",
    "/topics/{topic}/search",
}
"""Pages with all colours: their contrast is also checked in the dark."""
EACH_MAX = 3
"""The most pages of one route that a crawl asks for; the first one is shown, as those of a route have one template."""


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """One server, with brokers of its own, and one browser."""
    with served("tests.support.seeded_console") as site:
        yield site


def route_of(path: str) -> str | None:
    """Returns the route of a page."""
    bare = path.partition("?")[0]
    return next((route for route, expression in ROUTES.items() if expression.match(bare)), None)


def no_links(site: Site) -> dict[str, str]:
    """Returns the pages that a form leads to; that of a replay has the id of the one that runs."""
    page, _ = site.page()
    letters = page.request.get(f"{site.url}/letters/tickets.dead?format=json").json()
    page.context.close()
    return {**NO_LINKS, REPLAY: f"/letters/tickets.dead/replays/{letters['replays'][0]['id']}"}


def links_of(page: Any, url: str) -> list[str]:
    """Returns the paths of the page's links within the console, without those of sorted and cut tables."""
    found = page.eval_on_selector_all("a[href]:not([download])", "all => all.map(each => each.href)")
    paths = [each.removeprefix(url).partition("#")[0] for each in found if each.startswith(url)]
    return [each for each in paths if "sort=" not in each and "format=" not in each]


def picture_of(route: str, kind: str) -> str:
    """Returns the name of a page's screenshot; that of the overview is the kind alone, as the documentation has it."""
    return "_".join([*(each.strip("{}").partition(":")[0] for each in route.split("/") if each), kind])


def test_every_link_leads_to_a_page_without_errors_in_dark_and_light(site: Site) -> None:
    page, wrong = site.page(color_scheme="light")
    seen, waiting = set[str](), ["/", "/topics/weird/messages", *no_links(site).values()]
    counts: dict[str | None, int] = {}
    while waiting:
        path = waiting.pop(0)
        route = route_of(path)
        if path in seen or counts.get(route, 0) >= EACH_MAX:
            continue
        seen.add(path)
        counts[route] = counts.get(route, 0) + 1
        if counts[route] > 1:
            assert page.request.get(site.url + path).status == 200, path
            continue
        answer = page.goto(site.url + path)
        assert (answer.status, route is not None) == (200, True), path
        waiting += links_of(page, site.url)
        assert findings_of(page) == []
        shoot(page, picture_of(str(route), "light"))
        page.emulate_media(color_scheme="dark")
        if route in DARK:
            assert findings_of(page, "color-contrast") == []
        shoot(page, picture_of(str(route), "dark"))
        page.emulate_media(color_scheme="light")
    assert wrong == []
    assert set(ROUTES) - NO_PAGES == set(counts)
    page.context.close()


def test_a_change_is_shown_at_once(site: Site) -> None:
    page, wrong = site.page()
    page.goto(f"{site.url}/processes")
    page.locator(".live[data-state=on]").wait_for()
    site.tell("web-9.new")
    page.locator("th a", has_text="web-9.new").wait_for()
    assert wrong == []
    page.context.close()


NEXT = """async (main) => {
  const shown = document.querySelector("main");
  const wanted = new DOMParser().parseFromString(main, "text/html").body.firstChild;
  const rows = new Map([...shown.querySelectorAll("tr[id]")].map((each) => [each.id, each]));
  const focused = document.querySelector("tr[id] a");
  focused?.focus();
  document.dispatchEvent(new Event("visibilitychange"));
  const deadline = performance.now() + 30000;
  while (!shown.isEqualNode(wanted) && performance.now() < deadline) await new Promise(requestAnimationFrame);
  const now = [...shown.querySelectorAll("tr[id]")];
  return [shown.isEqualNode(wanted) ? main : shown.outerHTML, now.every((each) => (rows.get(each.id) || each) === each),
    !focused?.isConnected || document.activeElement === focused];
}"""
"""Asks for the page again, and waits until it is shown. Tells whether rows are the same ones, and the focus stayed."""


def table_of(chance: random.Random) -> str:
    """Returns a `main` with rows of which some have an id, some a link, some neither, and some the same link twice."""
    found = ""
    for each in chance.sample(range(12), chance.randrange(12)):
        text = chance.choice(["", "one", "<b>two</b> three", '<span class="pill">four</span>', "<!-- five -->"])
        name, head = [
            (f' id="row-{each}"', f'<a href="#{chance.randrange(99)}">a link</a>'),
            ("", f'<a href="#{each // 6}">a link</a>'),
            ("", ""),
        ][each % 3]
        found += f'<tr{name} class="{chance.choice("ab")}"><th>{head}</th><td>{text}</td></tr>'
    return f'<main id="main" tabindex="-1"><h1>Made</h1><table><tbody>{found}</tbody></table></main>'


def test_a_page_becomes_its_new_version_and_rows_stay_the_same_ones(site: Site) -> None:
    page, wrong = site.page()
    chance, body = random.Random(7), [""]
    page.goto(f"{site.url}/checks")
    page.locator(".live[data-state=on]").wait_for()
    page.route("**/checks", lambda route: route.fulfill(body=body[0], content_type="text/html"))
    for _ in range(60):
        main = table_of(chance)
        body[0] = f"<!doctype html><body>{main}"
        assert page.evaluate(NEXT, main) == [main, True, True]
    assert wrong == []
    page.context.close()


def test_a_change_keeps_focus_scrolling_and_typed_text(site: Site) -> None:
    page, wrong = site.page(viewport={"width": 800, "height": 600})
    page.goto(f"{site.url}/processes")
    page.locator(".live[data-state=on]").wait_for()
    page.evaluate(
        """() => {
          document.querySelector("main input").value = "typed";
          document.querySelector(".scroll").scrollLeft = 40;
          [...document.querySelectorAll("main tbody tr th a")].at(-1).focus();
          window.kept = document.activeElement;
        }"""
    )
    site.tell("a-first.1")
    page.locator("tbody tr:first-child a", has_text="a-first.1").wait_for()
    now = page.evaluate(
        """() => [kept === document.activeElement, document.querySelector("main input").value,
          document.querySelector(".scroll").scrollLeft]"""
    )
    assert now == [True, "typed", 40]
    assert wrong == []
    page.context.close()


ASKED = """() => {
  const ask = window.fetch;
  let asked = 0;
  window.fetch = (...all) => { asked++; return ask(...all); };
  document.dispatchEvent(new Event("visibilitychange"));
  window.fetch = ask;
  return asked;
}"""
"""Returns how often the page is asked for when there is a reason to."""


def test_a_change_leaves_the_hits_of_a_search(site: Site) -> None:
    page, wrong = site.page()
    page.goto(f"{site.url}/topics/weird/search?text=alert")
    page.locator("#progress", has_text="All were searched").wait_for()
    assert page.evaluate(ASKED) == 0
    assert page.locator("main tbody tr").count() > 0
    page.goto(f"{site.url}/checks")
    assert page.evaluate(ASKED) == 1
    assert wrong == []
    page.context.close()


def test_pages_work_without_scripts(site: Site) -> None:
    page, _ = site.page(java_script_enabled=False, viewport=NARROW)
    page.goto(f"{site.url}/partitions?state=failing")
    page.locator("th a", has_text="flights").click()
    page.locator("h2", has_text="Failing messages").wait_for()
    page.goto(f"{site.url}/topics/weird/search?text=alert")
    page.locator("a", has_text="Search without it").click()
    page.locator("#progress", has_text="1 hits").or_(page.locator("#progress", has_text="2 hits")).wait_for()
    page.goto(f"{site.url}/letters/flights.dead")
    page.locator("a", has_text="Plan").first.click()
    page.locator("p", has_text="This is a plan: nothing was sent.").wait_for()
    page.context.close()


def test_no_page_is_wider_than_a_phone_and_the_keyboard_reaches_all(site: Site) -> None:
    page, wrong = site.page(viewport=NARROW)
    forms = no_links(site)
    for route in sorted(set(ROUTES) - NO_PAGES):
        path = forms.get(route, PLACES.get(route, route))
        page.goto(site.url + path)
        shoot(page, picture_of(route, "narrow"))
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path
    page.goto(f"{site.url}/processes")
    cut = "each => each.getBoundingClientRect().right > document.documentElement.clientWidth"
    assert page.eval_on_selector_all("main td", f"all => all.filter({cut}).length") == 0, "no cell is cut"
    assert findings_of(page) == []
    page.goto(f"{site.url}/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('main') !== null")
    page.keyboard.press("Enter")
    page.wait_for_url(f"{site.url}/processes")
    page.locator("summary", has_text="Pages").focus()
    page.keyboard.press("Enter")
    page.locator("nav a", has_text="Audit").focus()
    page.keyboard.press("Enter")
    page.wait_for_url(f"{site.url}/audit")
    assert wrong == []
    page.context.close()


PLACES = {
    "/partitions/{topic}/{partition}/{group:path}": "/partitions/flights/3/flights",
    "/errors/{fingerprint:path}": "/errors/9f3a0",
    "/processes/{node:path}": "/processes/web-1.311",
    "/topics/{topic}": "/topics/flights",
    "/topics/{topic}/messages": "/topics/weird/messages",
    "/topics/{topic}/messages/{partition}/{offset}": "/topics/weird/messages/0/0",
    "/topics/{topic}/search": "/topics/weird/search?text=alert",
    "/letters/{topic}": "/letters/flights.dead",
    "/letters/{topic}/plan": "/letters/flights.dead/plan?place=0:1",
    "/letters/{topic}/{partition}/{offset}": "/letters/flights.dead/0/1",
    "/groups/{group:path}": "/groups/flights",
}
"""One page of each route with a variable."""
HOSTILE_PAGES = (
    "/", "/stuck", "/partitions", "/jobs", "/errors", "/processes", "/threads", "/settings", "/audit",
    "/topics/weird/messages", "/topics/weird/messages/0/0", "/topics/weird/messages/0/1",
    "/topics/weird/messages/0/2", "/topics/weird/search?text=alert", "/letters/flights.dead",
    "/letters/flights.dead/0/0",
)  # fmt: skip


def test_hostile_text_and_a_key_of_a_megabyte_are_harmless(site: Site) -> None:
    page, wrong = site.page(viewport=NARROW)
    site.tell("hostile")
    page.goto(f"{site.url}/processes")
    page.locator("th a", has_text="<script>").wait_for()
    for path in HOSTILE_PAGES:
        answer = page.goto(site.url + path)
        assert answer.status == 200, path
        text = page.evaluate("document.documentElement.textContent")
        assert not {"\x1b", "\u202e"} & set(text), path
        assert len(text) < 300_000, path
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path
        assert page.eval_on_selector_all("main script", "all => all.length") == 0, path
    assert wrong == []
    page.context.close()
