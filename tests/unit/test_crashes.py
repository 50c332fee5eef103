"""The record of attempts that a crash leaves behind."""

from __future__ import annotations

import pytest

from awoke.runtime.crashes import began_of


@pytest.mark.parametrize(
    ("metadata", "count"),
    [(None, 0), ("", 0), ("awoke:began=2", 2), ("awoke:began=", 0), ("somebody else's", 0), ("2", 0)],
)
def test_a_record_is_told_from_other_metadata(metadata: str | None, count: int) -> None:
    assert began_of(metadata) == count
