"""Aborted transactions by the code of their error."""

from __future__ import annotations

import pytest

from awoke.console import aborted
from awoke.console.aborted import CODES_MAX, AbortedTransactions
from awoke.observe.events import TransactionAborted


def test_aborted_transactions_are_counted_by_code_with_the_last_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter(range(1, 99))
    monkeypatch.setattr(aborted, "wall_ms", lambda: next(times))
    found = AbortedTransactions()
    for code, text in (("A", "first"), ("B", "other"), ("A", "last" * 999)):
        found.on_event(TransactionAborted(client="producer", code=1, code_name=code, text=text))
    told = [(each.code, each.count, each.last_ms, each.last_text[:5]) for each in found.all()]
    assert told == [("A", 2, 3, "lastl"), ("B", 1, 2, "other")]
    assert len(found.all()[0].last_text) == 500


def test_their_number_is_bounded() -> None:
    found = AbortedTransactions()
    for number in range(CODES_MAX + 1):
        found.on_event(TransactionAborted(client="producer", code=1, code_name=str(number), text=""))
    assert [each.code for each in found.all()] == [str(number) for number in range(CODES_MAX, 0, -1)]
