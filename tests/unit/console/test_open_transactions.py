"""Since when a console knows of an open transaction."""

from __future__ import annotations

from awoke.console.open_transactions import SeenTransactions


def test_a_transaction_keeps_the_time_at_which_the_console_saw_it_first() -> None:
    seen = SeenTransactions()
    assert seen.note("orders", 0, 5, 8, 1_000) == 1_000
    assert seen.note("orders", 0, 5, 9, 2_000) == 1_000
    assert seen.note("orders", 1, 5, 9, 3_000) == 3_000
    assert seen.note("orders", 0, 7, 9, 4_000) == 4_000  # Another one.
    assert seen.note("orders", 0, 9, 9, 5_000) is None
    assert seen.note("orders", 0, 9, 10, 6_000) == 6_000
