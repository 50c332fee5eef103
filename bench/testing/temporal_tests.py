"""Tests by Temporal's tools, as far as they need no server: it is a download of its own.

Its time-skipping server lets hours pass at once, tries activities again, and answers requests: not tried here.
"""

from __future__ import annotations

import pytest
from temporalio import activity  # type: ignore[import-not-found]
from temporalio.testing import ActivityEnvironment  # type: ignore[import-not-found]


@activity.defn  # type: ignore[untyped-decorator]
async def charge(order: str) -> str:
    """Charges an order."""
    if order == "bad":
        raise RuntimeError("no card")
    return f"bill of {order}"


async def test_a_handler_runs_without_brokers() -> None:
    assert await ActivityEnvironment().run(charge, "an order") == "bill of an order"


async def test_an_exception_fails_the_test() -> None:
    with pytest.raises(RuntimeError, match="no card"):
        await ActivityEnvironment().run(charge, "bad")
