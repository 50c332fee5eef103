"""Answers of brokers are shared for a moment; an error is not kept, and an act forgets all."""

from __future__ import annotations

from typing import Any

import pytest

import awoke
from awoke.console.web import cluster as cluster_module
from awoke.console.web.cluster import KEPT_MAX, Cluster
from awoke.settings import load


class Clock:
    """A clock that a test moves."""

    now_s = 100.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of the answers."""
    found = Clock()
    monkeypatch.setattr(cluster_module, "monotonic_s", lambda: found.now_s)
    return found


def made() -> Cluster:
    return Cluster(load({"bootstrap_servers": "127.0.0.1:1"}).values)


def test_an_answer_is_given_again_until_it_is_old(clock: Clock) -> None:
    cluster, asked = made(), list[Any]()

    def question(admin: Any) -> int:
        asked.append(admin)
        return len(asked)

    assert [cluster.ask("a", question), cluster.ask("a", question), cluster.ask("b", question)] == [1, 1, 2]
    clock.now_s += 2.1
    assert cluster.ask("a", question) == 3
    cluster.forget()
    assert cluster.ask("a", question) == 4
    assert len({id(each) for each in asked}) == 1, "one client asks for all"
    cluster.close()
    with pytest.raises(awoke.ClosedError):
        cluster.ask("a", question)


def test_an_error_is_not_kept(clock: Clock) -> None:
    cluster = made()

    def fail(admin: Any) -> int:
        raise awoke.OperationTimeout("the brokers are away")

    with pytest.raises(awoke.OperationTimeout):
        cluster.ask("a", fail)
    assert cluster.ask("a", lambda _: 7) == 7
    cluster.close()


def test_the_answers_that_are_kept_are_bounded(clock: Clock) -> None:
    cluster = made()
    for number in range(3 * KEPT_MAX):
        cluster.ask(number, lambda _: 0)
    assert len(cluster._kept) == KEPT_MAX
    cluster.close()
