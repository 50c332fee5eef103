"""The console inside a FastAPI application: it is there below its path, and ends with the application."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import AsyncIterator

from fastapi import FastAPI
from fastapi.testclient import TestClient

import awoke
import awoke.console
from awoke.fastapi import lifespan
from awoke.testing import EmbeddedCluster


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


def test_a_mounted_console_keeps_its_policy() -> None:
    web = awoke.console.asgi("shop", policy=lambda scope: None, hosts=["testserver"])
    api = FastAPI()
    api.mount("/console", web)
    assert TestClient(api).get("/console/checks").status_code == 403
