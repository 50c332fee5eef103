"""The pages of messages: hidden until allowed, downloads, and hits that come one by one."""

from __future__ import annotations

import asyncio
import json

import pytest
from starlette.testclient import TestClient

import awoke
from awoke.console import asgi
from awoke.console.access import Brokers
from awoke.console.explorer.parts import DecodedParts
from awoke.console.explorer.searching import Search
from awoke.console.explorer.views import SearchQuery
from awoke.console.web.page import Wrong
from awoke.console.web.pages.explorer import SEARCHES_MAX, RunningSearch, events, time_of
from awoke.settings import load
from tests.contract.console.web.clients import client_of, read
from tests.support.clusters import Cluster, unique
from tests.support.waiting import wait_until

HOSTILE = "<script>alert(1)</script>\x1b[31m\u202e"


def filled(cluster: Cluster) -> str:
    topic = unique("topic")
    cluster.create_topic(topic)
    with awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as producer:
        values = [json.dumps({"item": "tea"}), HOSTILE, "secret-2"]
        awoke.wait_all(
            [producer.produce(topic, each, key="secret-key", headers=[("h", HOSTILE)]) for each in values], 30
        )
    return topic


def test_contents_are_hidden_until_they_are_allowed(mock_cluster: Cluster) -> None:
    topic = filled(mock_cluster)
    base = f"/topics/{topic}/messages"
    with client_of(mock_cluster) as client:
        for path in (base, f"{base}/0/0", f"/topics/{topic}/search?text=secret&wait=1"):
            assert "tea" not in client.get(path).text
            assert "tea" not in json.dumps(read(client, path))
            assert "secret-" not in client.get(path).text
        assert client.get(f"{base}/0/0/file").status_code == 403
        assert client.get(f"/topics/{topic}/search/hits?text=tea").status_code == 403


def test_contents_are_shown_harmless_where_they_are_allowed(mock_cluster: Cluster) -> None:
    topic = filled(mock_cluster)
    base = f"/topics/{topic}/messages"
    with client_of(mock_cluster, payloads=True) as client:
        page = read(client, f"{base}?partition=0&read=offset&offset=0&limit=2")["view"]
        assert [each["offset"] for each in page["messages"]] == [0, 1]
        assert page["later"]["offset"] == 2
        assert "&lt;script&gt;" in client.get(f"{base}/0/1").text
        assert read(client, f"{base}/0/0")["message"]["value"]["form"] == "json"
        file = client.get(f"{base}/0/1/file?part=value")
        assert (file.content.decode(), file.headers["content-type"]) == (HOSTILE, "application/octet-stream")
        assert "attachment" in file.headers["content-disposition"]
        for path, status in (
            (f"{base}?read=later", 400),
            (f"{base}?partition=x", 400),
            (f"{base}?partition=7", 404),
            (f"{base}?read=around", 400),
            (f"{base}/0/x", 400),
            (f"{base}/0/99", 502),
            (f"{base}/0/0/file?part=all", 400),
            ("/topics/missing/messages", 404),
        ):
            assert client.get(path).status_code == status, path


def test_hits_come_as_events_and_on_a_page_that_waits(mock_cluster: Cluster) -> None:
    topic = filled(mock_cluster)
    with client_of(mock_cluster, payloads=True) as client:
        read(client, f"/topics/{topic}/search")
        waited = read(client, f"/topics/{topic}/search?text=TEA&wait=1")
        assert ([each["offset"] for each in waited["hits"]], waited["last"]["over_because"]) == ([0], "end")
        stream = client.get(f"/topics/{topic}/search/hits?text=tea").text
        steps = [json.loads(line[6:]) for line in stream.splitlines() if line.startswith("data: {")]
        assert [each["offset"] for step in steps for each in step["hits"]] == [0]
        assert steps[-1]["over_because"] == "end"
        assert stream.endswith("event: over\ndata: -\n\n")
        gone = client.get("/topics/missing/search/hits?text=tea").text
        assert "does not exist" in gone
        assert client.get(f"/topics/{topic}/search/hits").status_code == 400
    wait_until(lambda: RunningSearch._count == 0, "all searches have ended")


async def test_a_browser_that_goes_cancels_its_search(mock_cluster: Cluster) -> None:
    settings = load({"bootstrap_servers": mock_cluster.bootstrap_servers}).values
    topic = await asyncio.to_thread(filled, mock_cluster)
    parts = DecodedParts(settings, reveals=True)
    search = Search(Brokers(settings), SearchQuery(topic=topic, text="e"), parts)
    stream = events(search, parts)
    assert RunningSearch._count == 0, "a browser that goes at once leaves nothing to be ended"
    assert '"hits":[{' in await anext(stream)
    await stream.aclose()
    await asyncio.get_running_loop().shutdown_default_executor()
    last = search.next()
    assert last is None or last.over_because == "cancelled"
    assert RunningSearch._count == 0


def test_searches_are_bounded(mock_cluster: Cluster) -> None:
    begun = [RunningSearch.begin() for _ in range(SEARCHES_MAX + 1)]
    with client_of(mock_cluster, payloads=True) as client:
        refused = client.get("/topics/missing/search/hits?text=tea").text
    for _ in range(SEARCHES_MAX):
        RunningSearch.end()
    assert begun == [True] * SEARCHES_MAX + [False]
    assert "searches run already" in refused
    assert RunningSearch._count == 0


@pytest.mark.parametrize(("text", "time_ms"), [("", None), ("1000", 1000), ("1970-01-01T00:00:01", 1000)])
def test_a_time_is_iso_or_milliseconds(text: str, time_ms: int | None) -> None:
    assert time_of(text) == time_ms


def test_what_is_no_time_is_refused() -> None:
    with pytest.raises(Wrong):
        time_of("soon")


def test_a_console_beside_its_app_decodes_by_the_types_of_the_routes(mock_cluster: Cluster) -> None:
    topic, app = unique("packed"), awoke.App(unique("app"), bootstrap_servers=mock_cluster.bootstrap_servers)
    mock_cluster.create_topic(topic)

    @app.on(topic, value=awoke.msgpack(dict[str, int]))
    def handle(message: awoke.Message[dict[str, int]]) -> None: ...

    with awoke.Producer(mock_cluster.bootstrap_servers, kafka=mock_cluster.properties) as producer:
        producer.produce(topic, b"\x81\xa1n\x07").wait(30)
    web = asgi(app, payloads=True)
    with TestClient(web, base_url="http://localhost") as client:
        found = client.get(f"/topics/{topic}/messages?format=json").json()["view"]["messages"][0]["value"]
    assert (found["form"], json.loads(found["text"])) == ("json", {"n": 7})
