"""Has the strategies with an output keep their results in Python: the engine's take handles of the engine's only."""

from __future__ import annotations

import pytest

from awoke.runtime.jobs.strategies import with_output
from tests.unit.runtime.fakes import FakeResults


@pytest.fixture(autouse=True)
def results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(with_output, "Results", FakeResults)
