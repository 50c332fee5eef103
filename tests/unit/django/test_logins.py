"""The console beside a Django project: the project's login decides on each route."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
from django.core.asgi import get_asgi_application
from starlette.applications import Starlette
from starlette.routing import Mount

import awoke
import awoke.console
from awoke.console import Grant, Role
from awoke.django.logins import user_of
from awoke.settings import load
from tests.support.mounted import HOST, Asking, routes_of, status_of, without_brokers


async def policy(scope: Mapping[str, Any]) -> Grant | None:
    """Lets the staff look, and superusers act, as docs/django.md says it."""
    user = await user_of(scope)
    if not user.is_staff:
        return None
    return Grant(role=Role.ADMIN if user.is_superuser else Role.VIEW, who=user.get_username())


def cookie_of(**fields: Any) -> dict[str, str]:
    """Logs a new user in, and returns the header with the cookie of the session."""
    user = User.objects.create_user(f"user-{User.objects.count()}", **fields)
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.create()
    return {"cookie": f"{settings.SESSION_COOKIE_NAME}={session.session_key}"}


@pytest.fixture
def users() -> Iterator[None]:
    """Deletes all users after a test, and waits for the thread of `async_to_sync`, which ends when it is collected."""
    before = set(threading.enumerate())
    yield
    User.objects.all().delete()
    gc.collect()
    for each in set(threading.enumerate()) - before:
        each.join(60)


@pytest.mark.usefixtures("users")
def test_the_login_of_django_decides_on_each_route(monkeypatch: pytest.MonkeyPatch) -> None:
    without_brokers(monkeypatch)
    here = load({"bootstrap_servers": "127.0.0.1:1"}).values
    web = awoke.console.asgi("shop", policy=policy, verbs=["*"], hosts=[HOST], settings=here)
    site = Starlette(routes=[Mount("/console", web), Mount("/", get_asgi_application())])
    routes = list(routes_of("/console"))

    async def ask(users: Mapping[str, Mapping[str, str]]) -> dict[str, dict[Asking, int]]:
        async with web.router.lifespan_context(web):
            return {name: {each: await status_of(site, each, users[name]) for each in routes} for name in users}

    nobodies: dict[str, Mapping[str, str]] = {
        "anonymous": {},
        "forged": {"cookie": f"{settings.SESSION_COOKIE_NAME}=forged"},
        "no staff": cookie_of(),
        "inactive": cookie_of(is_staff=True, is_active=False),
    }
    staff = {"viewer": cookie_of(is_staff=True), "admin": cookie_of(is_staff=True, is_superuser=True)}
    # The ORM is called on this thread, which has the database in memory.
    found = async_to_sync(ask)({**nobodies, **staff})
    assert {name: set(found[name].values()) for name in nobodies} == {name: {403} for name in nobodies}
    assert {status for each, status in found["viewer"].items() if each[0] == "POST"} == {403}
    assert found["viewer"]["GET", "/console/checks"] == 404, "it may see the page"
    assert {each for each, status in found["admin"].items() if status != 404} == {("GET", "/console/live")}
