"""The commands for a running swarm, as they are shown."""

from __future__ import annotations

import pytest

import awoke
from awoke.cli.swarm import COLUMNS, ask, node_row
from awoke.cli.tables import aligned


def test_the_status_of_large_swarms_fits_80_columns() -> None:
    node = {"node": 12, "pid": 4_194_304, "state": "stopping", "is_quiet": False, "memory_bytes": 9_999 << 20}
    more = {"oldest_job_s": 299.9, "assigned": 1_000, "lag": 123_456_789, "restarts": 1_000, "uptime_s": 86_399.0}
    lines = aligned([COLUMNS, node_row({**node, **more})])
    assert max(map(len, lines)) <= 80
    assert lines[1].split() == [
        *("12", "4194304", "stopping", "9999", "299.9", "s", "1000", "123456789", "1000", "24", "h")
    ]


def test_a_target_without_a_colon_is_explained() -> None:
    with pytest.raises(awoke.ConfigError, match="'shop' names no app: say MODULE:APP, as in shop:app"):
        ask("shop", None, "resume", topic="t", partition=1)
