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
        self.group, self.asked, self._partitions = name, list[Any](), partitions
        self.failures: Any = SimpleNamespace(blocking=lambda topic, at: [at])

    def __getattr__(self, name: str) -> Any:
        def ask(topic: str, partition: int, *given: Any) -> bool:
            self.asked.append((name, topic, partition, *given))
            return partition in self._partitions

        return ask


class Steered(Steering):
    """An app with two groups."""

    def __init__(self) -> None:
        self.app: Any = SimpleNamespace(name="shop")
        self.eu, self.us = FakeGroup("eu", 0), FakeGroup("us", 1)

    @property
    def joining(self) -> Any:
        return [self.eu, self.us]


def test_all_groups_are_asked_and_one_that_is_changed_is_enough() -> None:
    app = Steered()
    assert app.steer(None, lambda run: run.seek("orders", 0, 7))
    assert app.pause("orders", 1, "a test")
    assert not app.steer(None, lambda run: run.skip("orders", 2, 7))
    asked = [("seek", "orders", 0, 7), ("pause", "orders", 1, "a test"), ("skip", "orders", 2, 7)]
    assert app.eu.asked == app.us.asked == asked


def test_a_command_goes_to_the_group_that_it_names() -> None:
    app = Steered()
    assert app.steer("us", lambda run: run.retry_now("orders", 1))
    assert app.resume("orders", 1, "us")
    assert app.eu.asked == []
    assert [each[0] for each in app.us.asked] == ["retry_now", "resume"]
    assert app.blocking("orders", 1) == [1]
    with pytest.raises(ConfigError, match="has no group 'asia'"):
        app.pause("orders", 0, "a test", "asia")
