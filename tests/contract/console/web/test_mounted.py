"""The console mounted into a web application, beside the lifespan of an app."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

from fastapi import FastAPI

from awoke.console import asgi
from awoke.fastapi import lifespan
from tests.support.clusters import MockCluster, unique
from tests.support.web import new_app, served


def test_a_mounted_console_has_its_links_below_its_path(mock_cluster: MockCluster) -> None:
    app, topic = new_app(mock_cluster), unique("shown")
    mock_cluster.create_topic(topic)
    app.on(topic)(lambda message: None)
    console = asgi(app, hosts=["testserver"])

    @contextlib.asynccontextmanager
    async def both(api: FastAPI) -> AsyncIterator[Mapping[str, Any]]:
        async with lifespan(app)(api) as state, console.router.lifespan_context(console):
            yield state

    api = FastAPI(lifespan=both)
    api.mount("/console", console)

    @api.get("/")
    async def home() -> str:
        return "home"

    with served(api) as client:
        assert client.get("/").json() == "home"
        page = client.get("/console/")
        assert page.status_code == 200
        assert 'href="/console/stuck"' in page.text
        assert 'href="/stuck"' not in page.text
        assert client.get("/console/", headers={"accept": "application/json"}).json()["app"] == app.name
