"""Brokers that are not there are asked only briefly."""

from __future__ import annotations

import pytest

from awoke.console.clusters import groups, topics
from awoke.console.web.pages import letters


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shortens the waits of pages that ask brokers."""
    for module in (groups, topics, letters):
        monkeypatch.setattr(module, "TIMEOUT_S", 0.2)
