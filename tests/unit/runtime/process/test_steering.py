"""Commands for partitions, which go to the groups that they name."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from awoke.errors import ConfigError
from awoke.runtime.process.steering import Steering


class FakeGroup:
    """A group with these partitions of `orders`; it notes what it is asked."""

    def __init__(self, name: str, *partitions: int) -> None:
        self.group, self.asked = name, list[Any]()
        self.assigned: Any = SimpleNamespace(find=lambda topic, at: "assignment" if at in partitions else None)
        self.failures: Any = SimpleNamespace(blocking=lambda topic, at: [at])

    def __getattr__(self, name: str) -> Any:
        def ask(*given: Any) -> bool:
            self.asked.append((name, *given))
            return True

        return ask


class Steered(Steering):
    """An app with two groups."""

    def __init__(self) -> None:
        self.app: Any = SimpleNamespace(name="shop")
        self.eu, self.us = FakeGroup("eu", 0), FakeGroup("us", 1)

    @property
    def joining(self) -> Any:
        return [self.eu, self.us]


def test_only_groups_that_hold_the_partition_are_paused_and_sought() -> None:
    app = Steered()
    assert app.pause("orders", 0, "a test")
    assert app.seek("orders", 0, 7)
    assert app.seek_time("orders", 0, 1_000)
    assert not app.pause("orders", 2, "a test")
    assert [each[0] for each in app.eu.asked] == ["pause", "seek", "seek_time"]
    assert app.us.asked == []


def test_a_command_goes_to_the_group_that_it_names() -> None:
    app = Steered()
    assert app.skip("orders", 1, 5, "us")
    assert app.retry_now("orders", 1, "us")
    assert app.dead_letter("orders", 1, 5, "us")
    assert app.resume("orders", 1, "us")
    assert app.eu.asked == []
    assert [each[0] for each in app.us.asked] == ["skip", "retry_now", "dead_letter_now", "resume"]
    assert app.blocking("orders", 1) == [1]
    with pytest.raises(ConfigError, match="has no group 'asia'"):
        app.pause("orders", 0, "a test", "asia")
