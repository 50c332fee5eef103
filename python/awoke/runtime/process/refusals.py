"""Permissions that brokers deny: one that was never granted ends the app, a later denial makes it unhealthy."""

from __future__ import annotations

from collections.abc import Callable

from awoke.errors import AuthorizationFailed
from awoke.observe.events import ClientError, CommitFailed, Event

GROUP = 30
TRANSACTIONAL_ID = 53


class Refusals:
    """The permissions that brokers deny now. Any thread may call everything here; nothing blocks."""

    def __init__(self, group: str, transactional_id: str, stop_app: Callable[[BaseException], None]) -> None:
        self._needs = {
            GROUP: f"group {group!r}: not allowed; an ACL must allow READ on the group",
            TRANSACTIONAL_ID: f"transactional ids that begin with {transactional_id!r}: not allowed; "
            "an ACL must allow WRITE and DESCRIBE on them (prefixed)",
        }
        self._stop_app = stop_app
        self._refused: dict[int, str] = {}
        self._allowed: set[int] = set()

    def on_refused(self, event: ClientError | CommitFailed) -> None:
        """Notes the denial in an error of a client, or of a commit."""
        code, code_name = event.code, event.code_name
        need = self._needs.get(code)
        if need is None:
            return
        self._refused[code] = f"{need} ({code_name})"
        if code not in self._allowed:
            self._stop_app(AuthorizationFailed(self._refused[code], code, code_name))

    def on_group_allowed(self, _event: Event) -> None:
        """Notes that the group has admitted the app, or has accepted a commit."""
        self.allow(GROUP)

    def allow(self, code: int) -> None:
        """Notes that a permission is granted now."""
        self._allowed.add(code)
        self._refused.pop(code, None)

    def is_allowed(self, code: int) -> bool:
        """Returns whether a permission was granted once, and not denied since."""
        return code in self._allowed and code not in self._refused

    def reasons(self) -> list[str]:
        """Returns the denials of now, a sentence each."""
        return list(self._refused.values())
