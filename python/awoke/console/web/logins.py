"""Logins for a console that is served by itself: names and passwords of a file, a proxy's header, or none."""

from __future__ import annotations

import base64
import binascii
import hmac
import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from awoke.console.web.grants import Grant, Policy, Role, role_of
from awoke.console.web.security import HEADERS
from awoke.errors import ConfigError

GRANT = "awoke.grant"
"""The name of the rights in the scope of a request."""


class User(NamedTuple):
    """A line of a file of users."""

    password: bytes
    role: Role | None


class Login:
    """A way in which a request shows whose it is."""

    def __init__(self, who: Callable[[Headers], Grant | None] | None, role: Role, challenge: str | None = None) -> None:
        self._who, self._role, self._challenge = who, role, challenge

    @property
    def policy(self) -> Policy:
        """The policy of a console behind `wrap`."""
        role = self._role
        return (lambda scope: role) if self._who is None else granted

    def wrap(self, app: ASGIApp) -> ASGIApp:
        """Returns the application behind the login."""
        find, challenge = self._who, self._challenge
        if find is None:
            return app

        async def checked(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http":
                grant = find(Headers(scope=scope))
                if grant is None:
                    more = {} if challenge is None else {"WWW-Authenticate": challenge}
                    refusal = PlainTextResponse("log in first\n", 401 if challenge else 403, {**HEADERS, **more})
                    await refusal(scope, receive, send)
                    return
                scope = {**scope, GRANT: grant}
            await app(scope, receive, send)

        return checked


def granted(scope: Mapping[str, Any]) -> Grant | None:
    """Returns the rights that the login has found."""
    found: Grant | None = scope.get(GRANT)
    return found


def login_of(text: str, role: Role) -> Login:
    """Returns the login that an option names: `basic:FILE`, `header:NAME` or `none`.

    Raises:
        ConfigError: It is none of these, or the file can't be used.
    """
    kind, _, rest = text.partition(":")
    if kind == "none" and not rest:
        return Login(None, role)
    if kind == "header" and rest:
        return Login(lambda headers: _named(headers.get(rest, ""), role), role)
    if kind == "basic" and rest:
        users = users_of(Path(rest))
        return Login(lambda headers: basic(headers.get("authorization", ""), users, role), role, 'Basic realm="awoke"')
    raise ConfigError("--auth takes basic:FILE, header:NAME or none, and the option has another form", "auth")


def _named(who: str, role: Role) -> Grant | None:
    return Grant(role=role, who=who[:200]) if who else None


def users_of(file: Path) -> dict[str, User]:
    """Returns the users of a file: lines of NAME:PASSWORD, or NAME:PASSWORD:ROLE. A password may have colons.

    Raises:
        ConfigError: Others may read the file, or a line is none of these.
    """
    try:
        with file.open() as lines:
            if os.fstat(lines.fileno()).st_mode & (stat.S_IRWXG | stat.S_IRWXO):
                raise ConfigError(f"{file} has passwords, and others may read it: chmod 600 {file}", "auth")
            found = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    except OSError as error:
        raise ConfigError(f"{file} can't be read: {error.strerror}", "auth") from None
    users: dict[str, User] = {}
    for number, line in enumerate(found, 1):
        name, _, password = line.partition(":")
        before, _, role = password.rpartition(":")
        if before and role.upper() in Role.__members__:
            password = before
        else:
            role = ""  # A password may have colons. What follows one is not shown.
        if not name or not password:
            raise ConfigError(f"{file}: user {number} is not NAME:PASSWORD or NAME:PASSWORD:ROLE", "auth")
        users[name] = User(password.encode(), role_of(role) if role else None)
    return users


def basic(header: str, users: Mapping[str, User], role: Role) -> Grant | None:
    """Returns the rights of a name and a password; None where they are wrong."""
    kind, _, encoded = header.partition(" ")
    if kind.lower() != "basic":
        return None
    try:
        name, _, password = base64.b64decode(encoded, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return None
    user = users.get(name, User(b"", None))
    is_right = hmac.compare_digest(user.password, password.encode())
    return Grant(role=user.role or role, who=name) if is_right and name in users else None
