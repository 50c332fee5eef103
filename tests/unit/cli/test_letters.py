"""Dead letters as a command reads them."""

from __future__ import annotations

from typing import Any

import pytest

import awoke
from awoke.cli import letters
from awoke.operate.dead_letters.letters import Letter
from tests.support.messages import stored_message
from tests.unit.cli.fakes import stored

STRANGER: Any = stored_message(None, b"no letter", [])


class FakeReader:
    """A topic with two letters and a stranger."""

    def __init__(self, topic: str, **options: Any) -> None:
        self.options = {"topic": topic, **options}
        readers.append(self)

    def __enter__(self) -> FakeReader:
        return self

    def __exit__(self, *_: object) -> None: ...

    def read_until_end(self, timeout_s: float) -> list[Any]:
        return [stored(0), STRANGER, stored(1)]


readers: list[FakeReader] = []


def test_letters_are_read_and_strangers_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(awoke, "Reader", FakeReader)
    readers.clear()
    strangers: list[int] = []
    found: list[Letter] = list(letters.read("dead", "a:1", ["acks=1"], lambda: strangers.append(1)))
    assert ([each.place for each in found], strangers) == ([(0, 0), (0, 1)], [1])
    assert readers[0].options == {"topic": "dead", "bootstrap_servers": "a:1", "kafka": {"acks": "1"}}
    assert len(list(letters.read("dead", None, None))) == 2
