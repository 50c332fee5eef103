"""A console that has only the app's name: it masks as one that has the app, by the names in the app's reports."""

from __future__ import annotations

import json
from typing import Annotated, Any

import msgspec
from starlette.testclient import TestClient

import awoke
from awoke.console import Role, asgi
from awoke.settings import load
from awoke.testing import running
from awoke.text.secrets import HIDDEN
from tests.contract.console.web.clients import CONFIRMED, SAME_ORIGIN, read
from tests.contract.test_dead_letter_commands import headers_of, put
from tests.support.clusters import Cluster, unique
from tests.support.waiting import wait_until

SECRET = "4711"


class Payment(msgspec.Struct):
    item: str
    card: Annotated[str, awoke.Secret]
    before: list[Payment] = []


VALUES: list[Any] = [
    {"item": "tea", "card": SECRET, "before": []},
    {"item": "cup", "card": SECRET, "before": [{"item": "pot", "card": SECRET, "before": []}]},
    {"payload": {"item": "tea", "card": SECRET}},
    [SECRET, "tea"],
    4711,
]
"""The last three are not of the type: they are hidden as a whole."""


class Shop:
    """An app with secret fields, topics with messages, and consoles of the app."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.name = cluster, unique("app")
        self.topic, self.dead, self.other, self.eu = (unique(each) for each in ("pay", "dead", "other", "cards"))
        for each in (self.topic, self.dead, self.other, self.eu):
            cluster.create_topic(each)
        put(cluster, self.dead, (b"k", json.dumps(VALUES[0]).encode(), headers_of(self.topic, "no card")))
        with awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as producer:
            values = [json.dumps(each) for each in VALUES]
            sent = [producer.produce(topic, each) for topic in (self.topic, self.eu, self.other) for each in values]
            awoke.wait_all(sent, 30)
        self.app = awoke.App(self.name, bootstrap_servers=cluster.bootstrap_servers, console=True)

        @self.app.on(self.topic, start="latest", value=Payment, dead_letter=self.dead)
        def pay(message: awoke.Message[Any]) -> None: ...

        @self.app.on(awoke.pattern(f"{self.eu}.*"), start="latest", value=Payment)
        def pay_in_europe(message: awoke.Message[Any]) -> None: ...

    def console(self, app: Any) -> TestClient:
        settings = load({"bootstrap_servers": self.cluster.bootstrap_servers}).values
        web = asgi(app, policy=lambda scope: Role.ADMIN, verbs=["*"], payloads=True, settings=settings)
        return TestClient(web, base_url="http://localhost", follow_redirects=False)

    def paths(self) -> list[str]:
        """Everything that shows a message with secrets."""
        topics = (self.topic, self.eu, self.dead)
        return [f"/letters/{self.dead}/0/0", *(f"/topics/{each}/messages?read=earliest" for each in topics)]

    def searches(self) -> list[str]:
        words = ("text=tea", f"text={SECRET}", f"text={SECRET}&field=card")
        return [f"/topics/{self.topic}/search/hits?{each}" for each in words]


def text_at(client: TestClient, topic: str, offset: int = 0) -> Any:
    """Returns the value of a message as a page shows it."""
    return read(client, f"/topics/{topic}/messages/0/{offset}")["message"]["value"]["text"]


def test_a_console_by_name_masks_as_one_that_has_the_app(mock_cluster: Cluster) -> None:
    shop = Shop(mock_cluster)
    with shop.console(shop.name) as by_name:
        check_that_all_is_hidden(by_name, shop)
        with running(shop.app):
            wait_until(lambda: text_at(by_name, shop.other) is not None, "the names of the secret fields have come")
            with shop.console(shop.app) as by_code:
                check_that_both_show_the_same(by_name, by_code, shop)
            check_that_secrets_can_not_be_sent(by_name, shop)
        wait_until(lambda: read(by_name, "/processes")["processes"]["total"] == 0, "the app's report is deleted")
        assert json.loads(text_at(by_name, shop.topic)) == {"item": "tea", "card": HIDDEN, "before": []}
    with shop.console(shop.name) as later:  # The topic may still have the report before its tombstone.
        for path in shop.paths():
            assert SECRET not in json.dumps(read(later, path))


def check_that_all_is_hidden(client: TestClient, shop: Shop) -> None:
    for path in (*shop.paths(), f"/topics/{shop.other}/messages/0/0"):
        assert SECRET not in json.dumps(read(client, path))
        assert SECRET not in client.get(path).text
    value = read(client, f"/topics/{shop.other}/messages/0/0")["message"]["value"]
    assert (value["form"], "open the console as MODULE:APP" in value["note"]) == ("hidden", True)
    for path in (*shop.searches(), f"/topics/{shop.other}/messages/0/0/file?part=value"):
        answer = client.get(path)
        assert (answer.status_code, SECRET in answer.text) == (403, False)


def check_that_both_show_the_same(by_name: TestClient, by_code: TestClient, shop: Shop) -> None:
    texts = [text_at(by_name, shop.topic, offset) for offset in range(len(VALUES))]
    assert texts == [text_at(by_code, shop.topic, offset) for offset in range(len(VALUES))]
    assert [None if each is None else json.loads(each) for each in texts] == [
        {"item": "tea", "card": HIDDEN, "before": []},
        {"item": "cup", "card": HIDDEN, "before": [{"item": "pot", "card": HIDDEN, "before": []}]},
        *[None] * 3,
    ]
    for path in shop.paths():
        found = [json.dumps(read(each, path)) for each in (by_name, by_code)]
        assert [(SECRET in each, HIDDEN in each) for each in found] == [(False, True)] * 2
        assert SECRET not in by_name.get(path).text
    for path in shop.searches():
        streams = [by_name.get(path).text, by_code.get(path).text]
        assert [found_in(each) for each in streams] == [found_in(streams[0])] * 2
        assert SECRET not in "".join(streams).replace(path, "")
    assert found_in(by_name.get(shop.searches()[0]).text) == [0]
    assert found_in(by_name.get(shop.searches()[1]).text) == []
    assert SECRET in (text_at(by_name, shop.other) or "")


def check_that_secrets_can_not_be_sent(client: TestClient, shop: Shop) -> None:
    """Neither by a download, nor in the place of which a mask would be sent."""
    assert client.get(f"/topics/{shop.topic}/messages/0/0/file?part=value").status_code == 403
    form = {**CONFIRMED, "value": json.dumps({"card": HIDDEN})}
    assert client.post(f"/letters/{shop.dead}/0/0/edit", data=form, headers=SAME_ORIGIN).status_code == 400
    assert client.get(f"/topics/{shop.other}/messages/0/0/file?part=value").status_code == 200


def found_in(stream: str) -> list[int]:
    """Returns the offsets of the hits in a stream of events."""
    steps = [json.loads(line[6:]) for line in stream.splitlines() if line.startswith("data: {")]
    return [each["offset"] for step in steps for each in step["hits"]]
