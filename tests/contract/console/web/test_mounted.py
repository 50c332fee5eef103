"""The console inside an application of FastAPI or Starlette: its pages, its end, and the login that decides."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from starlette.applications import Starlette
from starlette.authentication import AuthCredentials, AuthenticationBackend, BaseUser, SimpleUser
from starlette.middleware import Middleware
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.requests import HTTPConnection

import awoke
import awoke.console
from awoke.console import Grant, Role
from awoke.console.web import application
from awoke.console.web.grants import Policy
from awoke.fastapi import lifespan
from awoke.settings import load
from awoke.testing import EmbeddedCluster
from tests.support.mounted import HOST, routes_of, status_of, without_brokers


def console_threads() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name.startswith("awoke-console-")]


def test_a_mounted_console_shows_its_pages_and_ends_with_the_application() -> None:
    app = awoke.App("shop")

    @contextlib.asynccontextmanager
    async def both(api: FastAPI) -> AsyncIterator[dict[str, object]]:
        async with lifespan(app)(api) as state, web.router.lifespan_context(web):
            yield dict(state or {})

    with EmbeddedCluster() as cluster:
        app.use(bootstrap_servers=cluster.bootstrap_servers)
        web = awoke.console.asgi(app, hosts=["testserver"])
        api = FastAPI(lifespan=both)
        api.mount("/console", web)
        with TestClient(api) as client:
            page = client.get("/console/checks")
            assert page.status_code == 200
            assert console_threads()
            links = re.findall(r'(?:href|src|action)="(/[^"]*)"', page.text)
            assert links
            assert [link for link in links if not link.startswith("/console/")] == []
            style = next(link for link in links if ".css" in link)
            assert client.get(style).status_code == 200
    assert console_threads() == []


class Named(AuthenticationBackend):
    """The login of an application: a request names its user."""

    async def authenticate(self, connection: HTTPConnection) -> tuple[AuthCredentials, BaseUser] | None:
        name = connection.headers.get("x-user")
        return None if name is None else (AuthCredentials([name]), SimpleUser(name))


def policy(scope: Mapping[str, Any]) -> Grant | None:
    """Gives roles to the users of the application, as docs/console.md says it."""
    user = scope["user"]
    if not user.is_authenticated:
        return None
    role = Role.ADMIN if user.display_name == "ann" else Role.VIEW
    return Grant(role=role, who=user.display_name)


async def awaited(scope: Mapping[str, Any]) -> Grant | None:
    return policy(scope)


@pytest.mark.parametrize("kind", [Starlette, FastAPI])
@pytest.mark.parametrize("rule", [policy, awaited])
async def test_the_login_of_the_application_decides_on_each_route(
    kind: type[Starlette], rule: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_brokers(monkeypatch)
    settings = load({"bootstrap_servers": "127.0.0.1:1"}).values
    web = awoke.console.asgi("shop", policy=rule, verbs=["*"], hosts=[HOST], settings=settings)
    api = kind(middleware=[Middleware(AuthenticationMiddleware, backend=Named())])
    api.mount("/console", web)
    routes = list(routes_of("/console"))
    async with web.router.lifespan_context(web):
        anonymous = {each: await status_of(api, each, {}) for each in routes}
        assert set(anonymous.values()) == {403}, anonymous
        admin = {each: await status_of(api, each, {"x-user": "ann"}) for each in routes}
        assert {path: status for path, status in admin.items() if status != 404} == {("GET", "/console/live"): 200}
        viewer = {each: await status_of(api, each, {"x-user": "bob"}) for each in routes}
        refused = {each for each, status in viewer.items() if status == 403}
        of_operators = {
            f"/console{re.sub('[{}]', '', each.path)}" for each in application.PAGES if each.role > Role.VIEW
        }
        assert refused == {each for each in routes if each[0] == "POST" or each[1] in of_operators}
