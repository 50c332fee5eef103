"""Times that `--since` takes."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

import awoke
from awoke.cli.letters import moment_ms

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("word", "moment"),
    [
        ("30m", datetime(2026, 1, 31, 11, 30, tzinfo=UTC)),
        ("7d", datetime(2026, 1, 24, 12, tzinfo=UTC)),
        ("2026-01-31T11:00:00+00:00", datetime(2026, 1, 31, 11, tzinfo=UTC)),
    ],
)
def test_a_moment_is_a_time_or_how_long_ago(word: str, moment: datetime) -> None:
    assert moment_ms(word, NOW) == moment.timestamp() * 1_000


@pytest.mark.parametrize("word", ["", "soon", "-5m", "5w", "999999999d", "2026-13-01"])
def test_what_is_no_moment_is_refused(word: str) -> None:
    with pytest.raises(awoke.ConfigError, match="--since takes a time"):
        moment_ms(word, NOW)
