"""Finds the user of Django's login in a request that Django does not answer: for the console beside a project."""

from __future__ import annotations

import io
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from django.conf import settings
from django.contrib.auth import aget_user
from django.core.handlers.asgi import ASGIRequest

from awoke.django.connections import aclose_old


async def user_of(scope: Mapping[str, Any]) -> Any:
    """Returns the user whose session the cookie of an ASGI request names; Django's `AnonymousUser` without one.

    The session and the user are read from where the settings keep them, as Django's own middleware does it.
    """
    request = ASGIRequest(dict(scope), io.BytesIO())
    store = import_module(settings.SESSION_ENGINE).SessionStore
    request.session = store(request.COOKIES.get(settings.SESSION_COOKIE_NAME))
    await aclose_old()
    try:
        return await aget_user(request)
    finally:
        await aclose_old()
