"""Counts the transactions of a process that were aborted, by the code of their error."""

from __future__ import annotations

from awoke.console.producing_views import Aborted
from awoke.observe.events import Event, TransactionAborted
from awoke.waiting.clock import wall_ms

CODES_MAX = 50
"""The most codes that are told apart; a later one replaces the one that was seen longest ago."""
TEXT_MAX = 500


class AbortedTransactions:
    """The aborted transactions. Nothing here blocks."""

    def __init__(self) -> None:
        self._known: dict[str, Aborted] = {}

    def on_event(self, event: Event) -> None:
        """Counts one. One thread at a time."""
        assert isinstance(event, TransactionAborted)
        known = dict(self._known)  # Others may read the old one.
        before = known.pop(event.code_name, None)
        if len(known) >= CODES_MAX:
            del known[next(iter(known))]
        known[event.code_name] = Aborted(
            code=event.code_name,
            count=1 if before is None else before.count + 1,
            last_ms=wall_ms(),
            last_text=event.text[:TEXT_MAX],
        )
        self._known = known

    def all(self) -> list[Aborted]:
        """Returns them, the last one first. Any thread."""
        return list(reversed(self._known.values()))
