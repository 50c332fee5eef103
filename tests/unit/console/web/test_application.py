"""Each route of the console checks rights; each page is HTML and JSON, and shows hostile text harmless."""

from __future__ import annotations

import asyncio
import re
from urllib.parse import quote

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Route
from starlette.testclient import TestClient

from awoke.console.letters.runs import ReplayRuns
from awoke.console.web import application
from awoke.console.web.application import ACTIONS, PAGES, SECTIONS, Checked, CheckedChanges
from awoke.console.web.grants import Grant, Role
from awoke.console.web.page import ActionRefused, Asked, Done, Page, PageAction
from awoke.console.web.rendering import TEMPLATES
from awoke.settings import load
from tests.support.clusters import MockCluster
from tests.unit.console.web.fakes import HOSTILE, FakeLive, assert_read_only, console, hostile, parts_of, report

FORM = re.compile(r'<form[^>]*method="post".*?</form>', re.DOTALL)
PATHS = [each.path for each in PAGES if "{" not in each.path]
UNCONFIRMED: list[dict[str, str]] = [{}, {"sure": ""}, {"sure": "off"}, {"Sure": "on"}]


def test_every_route_checks_rights() -> None:
    web = console().app
    assert isinstance(web, Starlette)
    assert web.routes
    for route in web.routes:
        assert isinstance(route, Route)
        assert isinstance(route.endpoint, Checked), route.path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.path)
def test_a_request_without_rights_gets_no_page(page: Page) -> None:
    with console(policy=lambda scope: None) as client:
        assert client.get(page.path.replace("{", "").replace("}", "").replace(":path", "")).status_code == 403


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.path)
def test_an_action_needs_its_role_and_its_verb(action: PageAction) -> None:
    path, headers = (
        action.path.replace("{", "").replace("}", "").replace(":path", ""),
        {"Sec-Fetch-Site": "same-origin"},
    )
    with console(verbs=["*"]) as client:
        assert client.post(path, headers=headers).status_code == 403
    with console(policy=lambda scope: Role.ADMIN) as client:
        answer = client.post(path, headers=headers)
        assert (answer.status_code, "does not allow" in answer.text) == (403, True)


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.path)
def test_an_action_without_its_confirmation_is_refused_by_the_server(
    action: PageAction, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = list[str]()

    def note(asked: Asked) -> Done:
        made.append(asked.form["reason"])
        return Done(text="it was made")

    monkeypatch.setattr(application, "ACTIONS", [action._replace(function=note)])
    path = action.path.replace("{", "").replace("}", "").replace(":path", "")
    headers = {"Sec-Fetch-Site": "same-origin"}
    with console(policy=lambda scope: Role.ADMIN, verbs=["*"]) as client:
        for form in UNCONFIRMED:
            answer = client.post(f"{path}?sure=on", data={"reason": "a test", **form}, headers=headers)
            assert (answer.status_code, "needs its confirmation" in answer.text) == (400, True)
        assert made == []
        assert client.post(path, data={"reason": "a test", "sure": "on"}, headers=headers).status_code == 200
    assert made == ["a test"]


def test_each_form_that_changes_something_has_the_confirmation() -> None:
    forms = [form for each in TEMPLATES.glob("*.html") for form in FORM.findall(each.read_text())]
    assert len(forms) >= 2
    assert [form for form in forms if 'name="sure"' not in form] == []


@pytest.mark.parametrize("path", PATHS)
def test_a_page_is_html_or_json_and_hostile_text_is_harmless(path: str) -> None:
    with console(hostile()) as client:
        page = client.get(path)
        found = client.get(path, headers={"Accept": "application/json"})
    assert page.status_code in (200, 502)  # 502: it needs brokers.
    for harmful in ("<script>alert", "\x1b", "\u202e", " style=", "hx-on", "js:"):
        assert harmful not in page.text
    assert found.headers["content-type"] == "application/json"
    assert isinstance(found.json(), dict)
    assert "\x1b" not in found.text


def test_a_changed_app_is_told_to_browsers_as_an_event() -> None:
    live = FakeLive([report()])
    changes = CheckedChanges(parts_of(live))

    async def first_two() -> list[str]:
        events = changes._events()
        found = [await anext(events)]
        live.told[0]()
        found.append(await anext(events))
        await events.aclose()
        return found

    assert asyncio.run(first_two()) == ["retry: 2000\n\n", "event: change\ndata: -\n\n"]
    assert live.told == []


def test_many_changes_are_told_to_a_browser_ten_times_a_second_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    live, waited_s = FakeLive([report()]), list[float]()
    changes = CheckedChanges(parts_of(live))

    async def change_meanwhile(delay_s: float) -> None:
        waited_s.append(delay_s)
        for _ in range(50):
            live.told[0]()

    async def twenty() -> list[str]:
        events = changes._events()
        await anext(events)
        found = list[str]()
        for _ in range(20):
            live.told[0]()  # Else every other event would wait for the next tick.
            found.append(await anext(events))
        await events.aclose()
        return found

    monkeypatch.setattr(asyncio, "sleep", change_meanwhile)
    found = asyncio.run(twenty())
    assert found == ["event: change\ndata: -\n\n"] * 20, "one event tells of many changes"
    assert waited_s == [0.1] * 20, "each comes a tenth of a second after the one before it"


def test_a_replay_that_goes_on_is_told_by_an_event_of_its_own() -> None:
    live = FakeLive([report()])
    parts = parts_of(live)._replace(replays=ReplayRuns())
    changes = CheckedChanges(parts)

    async def all_events() -> list[str]:
        events, found = changes._events(), list[str]()
        await anext(events)
        of_replay = parts.replays._tell
        for calls in ([of_replay, of_replay], [of_replay, *live.told]):
            for call in calls:
                call()
            found.append(await anext(events))
        await events.aclose()
        return found

    assert asyncio.run(all_events()) == ["event: replay\ndata: -\n\n", "event: change\ndata: -\n\n"]
    assert parts.replays._told == set()


def test_a_name_or_an_app_gives_a_console() -> None:
    from awoke.console import asgi

    assert isinstance(asgi("shop"), Starlette)


@pytest.mark.parametrize("path", ["/topics/a%00b", "/groups/a%00b/reset", "/errors?q=%00"])
def test_a_nul_is_a_wrong_request_and_no_crash(path: str) -> None:
    with console() as client:
        assert client.get(path).status_code == 400
    with console(policy=lambda scope: Role.ADMIN, verbs=["*"]) as client:
        headers = {"Sec-Fetch-Site": "same-origin"}
        assert (
            client.post("/topics", data={"name": "a\0", "reason": "r", "sure": "on"}, headers=headers).status_code
            == 400
        )


@pytest.mark.parametrize("path", ["/errors/", "/processes/"])
def test_the_page_of_one_hostile_thing_is_harmless(path: str) -> None:
    live = hostile()
    with console(live) as client:
        page = client.get(path + quote(HOSTILE, safe=""))
        found = client.get(path + quote(HOSTILE, safe=""), headers={"Accept": "application/json"})
    assert (page.status_code, found.status_code) == (200, 200)
    assert "alert(1)" in page.text, "the text itself is shown"
    for harmful in ("<script>alert", "\x1b", "\u202e"):
        assert harmful not in page.text
    assert "\x1b" not in found.text


def test_a_mounted_console_allows_no_action_and_shows_no_payload_by_default(mock_cluster: MockCluster) -> None:
    from awoke.console import asgi

    web = asgi("shop", settings=load({"bootstrap_servers": mock_cluster.bootstrap_servers}).values)
    with TestClient(web, base_url="http://localhost", follow_redirects=False) as client:
        assert_read_only(client)


def test_each_page_has_its_own_path_and_a_template() -> None:
    paths = [each.path for each in PAGES]
    assert len(paths) == len(set(paths))
    assert [each.path for each in PAGES if not (TEMPLATES / each.template).exists()] == []
    assert {each.section for each in PAGES} - {None} <= set(SECTIONS)


def test_the_streams_of_one_viewer_shut_no_other_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(application, "VIEWER_STREAMS_MAX", 2)
    changes = CheckedChanges(parts_of(FakeLive([report()])))

    def request(host: str) -> Request:
        return Request({"type": "http", "client": (host, 1), "headers": []})

    async def look() -> None:
        streams = [changes._events("at 10.0.0.1"), changes._events("who ann")]
        streams += [changes._events("at 10.0.0.1")]
        for each in streams:
            await anext(each)
        with pytest.raises(ActionRefused, match="too many"):
            await changes.answer(request("10.0.0.1"), Grant())
        await changes.answer(request("10.0.0.2"), Grant())
        await changes.answer(request("10.0.0.1"), Grant(who="ann"))
        await streams[0].aclose()
        await changes.answer(request("10.0.0.1"), Grant())
        for each in streams:
            await each.aclose()
        assert not changes._streams

    asyncio.run(look())
