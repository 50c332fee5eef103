"""Clients of a console over the brokers of a test."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from starlette.testclient import TestClient

import awoke
from awoke.console.topics import ConsoleTopics
from awoke.console.web.application import application
from awoke.console.web.code import UNKNOWN, Code
from awoke.console.web.grants import Grant, Rights, Role
from awoke.operate.commands.views import Audit
from awoke.settings import load
from tests.support.clusters import Cluster
from tests.unit.console.web.fakes import FakeLive, report

SAME_ORIGIN = {"Sec-Fetch-Site": "same-origin"}
CONFIRMED = {"reason": "a test", "sure": "on"}
HARMFUL = re.compile(r"<script>alert|\x1b|\u202e| style=|hx-on|javascript:")


def client_of(
    cluster: Cluster,
    role: Role = Role.VIEW,
    *,
    payloads: bool = False,
    app: str = "shop",
    live: Any = None,
    code: Code = UNKNOWN,
) -> TestClient:
    """A client of a console of these brokers, as a user with this role: to be used as a context."""
    settings = load({"bootstrap_servers": cluster.bootstrap_servers}).values
    verbs = [] if role is Role.VIEW else ["*"]
    rights = Rights(lambda scope: Grant(role=role, who="ada"), verbs, payloads)
    state: Any = live or FakeLive([report(secrets=[])] if payloads else [])
    web = application(app, settings, state, rights, (), code)
    return TestClient(web, base_url="http://localhost", follow_redirects=False)


def read(client: TestClient, path: str, status: int = 200) -> dict[str, Any]:
    """Gets a page as HTML, which must be harmless, and returns its JSON twin."""
    page = client.get(path)
    assert page.status_code == status, page.text
    assert not HARMFUL.search(page.text)
    found = client.get(path, headers={"Accept": "application/json"})
    assert found.status_code == status
    document: dict[str, Any] = found.json()
    return document


def act(client: TestClient, path: str, **form: str) -> tuple[int, str]:
    """Makes an act, and returns its status and its text."""
    answer = client.post(path, data={**CONFIRMED, **form}, headers={**SAME_ORIGIN, "Accept": "application/json"})
    return answer.status_code, answer.json()["text"]


def audited(cluster: Cluster, app: str) -> list[tuple[str, str, str, str]]:
    """Returns who, verb, reason and result of each audit record."""
    with awoke.Reader(ConsoleTopics.of(app).audit, bootstrap_servers=cluster.bootstrap_servers) as reader:
        records = [msgspec.json.decode(each.value, type=Audit) for each in reader.read_until_end(30)]
    return [(each.who, each.verb, each.reason, each.result) for each in records]
