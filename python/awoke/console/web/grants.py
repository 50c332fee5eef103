"""The roles of the console, and the functions that give them to a request."""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any

import msgspec

from awoke.errors import ConfigError


class Role(enum.IntEnum):
    """The rights of a request; each includes those before it."""

    VIEW = 1
    OPERATE = 2
    """May pause, resume, skip, retry: what changes the processing of messages."""
    ADMIN = 3
    """May also change topics and offsets, and stop processes."""


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """The rights of one request."""

    role: Role = Role.VIEW
    who: str = ""
    """The name that the audit records."""
    verbs: frozenset[str] | None = None
    """The actions that are allowed; `*` is every one. None of a policy: all that the console allows."""
    payloads: bool | None = None
    """True: keys, values and headers of messages are shown. None of a policy: as the console says."""

    def allows(self, verb: str, role: Role = Role.OPERATE) -> bool:
        """Tells whether an action with this verb, which needs this role, may run."""
        verbs = self.verbs or ()
        return self.role >= role and (verb in verbs or "*" in verbs)


Granted = Role | Grant | None
Policy = Callable[[Mapping[str, Any]], Granted | Awaitable[Granted]]
"""Gets the ASGI scope of a request, and returns its role; None refuses the request. It may be an `async def`."""


def view_only(scope: Mapping[str, Any]) -> Role:
    """Lets every request look, and change nothing."""
    return Role.VIEW


def role_of(name: str) -> Role:
    """Returns the role of a name.

    Raises:
        ConfigError: There is no such role.
    """
    try:
        return Role[name.upper()]
    except KeyError:
        raise ConfigError(f"a role is one of view, operate and admin, not {name!r}", "role") from None


class Rights:
    """The policy of a console, with the verbs and payloads that it allows to any role."""

    def __init__(self, policy: Policy, verbs: Collection[str], payloads: bool) -> None:
        self._policy, self._verbs, self._payloads = policy, frozenset(verbs), payloads

    async def of(self, scope: Mapping[str, Any]) -> Grant | None:
        """Returns the rights of a request; None where it has none. A policy never grants more than the console."""
        answer = self._policy(scope)
        found = await answer if isinstance(answer, Awaitable) else answer
        if found is None:
            return None
        if isinstance(found, Role):
            return Grant(role=found, verbs=self._verbs, payloads=self._payloads)
        payloads = self._payloads and found.payloads is not False
        return Grant(role=found.role, who=found.who, verbs=self._both(found.verbs), payloads=payloads)

    def _both(self, verbs: frozenset[str] | None) -> frozenset[str]:
        """Returns the verbs that both a policy and the console allow."""
        if verbs is None or "*" in verbs:
            return self._verbs
        return verbs if "*" in self._verbs else verbs & self._verbs
