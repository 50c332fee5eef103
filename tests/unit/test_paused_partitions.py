"""A partition that its route has paused, resumed before and after a rebalance."""

from __future__ import annotations

from typing import Any, cast

import pytest

import awoke
from awoke.runtime.runner import AppRunner


class FakeAssignment:
    """An assignment of a partition that was paused."""

    def __init__(self, is_current: bool) -> None:
        self.is_current, self.is_resumed = is_current, False

    def resume(self) -> None:
        self.is_resumed = True


@pytest.mark.parametrize("is_current", [True, False])
def test_a_pause_that_a_rebalance_has_ended_is_not_resumed(is_current: bool) -> None:
    server, assignment = AppRunner(awoke.App("resume")), FakeAssignment(is_current)
    server.paused[("t", 1)] = (cast(Any, assignment), ValueError("no good"))
    assert server.resume("t", 1) is is_current
    assert not server.resume("t", 1)
