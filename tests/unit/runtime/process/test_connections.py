"""The time without a connected broker, until one answers."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

import awoke
from awoke import _native
from awoke.observe.broker_lines import ALL_DOWN
from awoke.observe.events import ClientError
from awoke.runtime.process import connections as module
from awoke.runtime.process.connections import Connections
from awoke.settings import Settings
from tests.support.waiting import Collected

WITHIN_S = 30.0


class Brokers:
    """Brokers that answer when a test says so; the clients that ask them."""

    def __init__(self) -> None:
        self.asked, self.are_back, self.closed = Collected[float](), threading.Event(), Collected[None]()

    def client(self, properties: Any, box: Any) -> Any:
        return SimpleNamespace(metadata=self._metadata, close=lambda: self.closed.add(None))

    def _metadata(self, topic: str | None, timeout_s: float) -> None:
        self.asked.add(timeout_s)
        if not self.are_back.is_set():
            raise awoke.BrokerUnreachable("away")


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Brokers:
    brokers = Brokers()
    native = SimpleNamespace(Admin=brokers.client, EventBox=_native.EventBox)
    monkeypatch.setattr(module, "_native", native)
    monkeypatch.setattr(module, "ASK_S", 0.001)
    monkeypatch.setattr(module, "AWAY_AFTER_S", 0.0)
    return brokers


@pytest.fixture
def connections(brokers: Brokers) -> Iterator[Connections]:
    with contextlib.closing(Connections(Settings())) as connections:
        yield connections


def error(code_name: str = ALL_DOWN) -> ClientError:
    return ClientError(client="shop", code=-187, code_name=code_name, text="1/1 brokers are down", is_fatal=False)


def test_an_app_without_brokers_is_not_ready_until_one_answers(brokers: Brokers, connections: Connections) -> None:
    assert connections.why_not_ready() is None
    connections.on_error(error())
    assert (connections.why_not_ready() or "").startswith("no broker connected since 20")
    brokers.asked.wait_for(2)
    brokers.are_back.set()
    brokers.closed.wait_for(1)
    connections.close()  # By then the answer is noted.
    assert connections.why_not_ready() is None


def test_brokers_that_are_away_for_a_moment_are_no_reason(
    brokers: Brokers, connections: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "AWAY_AFTER_S", 600.0)
    connections.on_error(error())
    assert connections.why_not_ready() is None


def test_further_errors_start_no_further_thread(brokers: Brokers, connections: Connections) -> None:
    for _ in range(5):
        connections.on_error(error())
    names = [thread.name for thread in threading.enumerate()]
    assert names.count("awoke-brokers") == 1
    connections.close()
    assert len(brokers.closed.items) == 1


def test_another_error_is_no_sign_that_brokers_are_away(connections: Connections) -> None:
    connections.on_error(error("_TRANSPORT"))
    assert connections.why_not_ready() is None


def test_brokers_that_are_away_again_are_noticed_again(brokers: Brokers, connections: Connections) -> None:
    brokers.are_back.set()
    connections.on_error(error())
    brokers.closed.wait_for(1)
    for thread in threading.enumerate():
        if thread.name == "awoke-brokers":
            thread.join(WITHIN_S)
    brokers.are_back.clear()
    connections.on_error(error())
    assert connections.why_not_ready() is not None


def test_closing_ends_the_thread_while_no_broker_answers(brokers: Brokers, connections: Connections) -> None:
    connections.on_error(error())
    brokers.asked.wait_for(1)
    connections.close()
    assert len(brokers.closed.items) == 1
    connections.on_error(error())
    assert len(brokers.closed.items) == 1, "a closed one asks no more"
