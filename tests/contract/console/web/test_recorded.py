"""Acts and their audit records: an act whose beginning can't be recorded is not made."""

from __future__ import annotations

import pytest

import awoke
from awoke.console.access import Brokers
from awoke.console.web.recorded import Acts
from awoke.settings import load
from tests.contract.console.web.clients import audited
from tests.support.clusters import Cluster, unique


def test_an_act_is_recorded_before_and_after(mock_cluster: Cluster) -> None:
    app = unique("app")
    acts = Acts(Brokers(load({"bootstrap_servers": mock_cluster.bootstrap_servers}).values), app, "ada")

    def fail() -> str:
        raise awoke.AwokeError("no")

    assert acts.make("configure", {"topic": "orders"}, "why", lambda: "done so") == "done so"
    with pytest.raises(awoke.AwokeError, match="no"):
        acts.make("configure", {}, "why", fail)
    with pytest.raises(ZeroDivisionError):
        acts.make("configure", {}, "why", lambda: str(1 / 0))
    results = [each[3] for each in audited(mock_cluster, app)]
    assert results == ["begun", "done", "begun", "AwokeError", "begun", "ZeroDivisionError"]


def test_an_act_that_can_not_be_recorded_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    made = list[str]()

    def make() -> str:
        made.append("it")
        return "it"

    def refuse(self: Acts, act: object) -> None:
        raise awoke.AuthorizationFailed("no", 29, "TOPIC_AUTHORIZATION_FAILED")

    monkeypatch.setattr(Acts, "_write", refuse)
    acts = Acts(Brokers(load({}).values), "shop", "ada")
    with pytest.raises(awoke.AuthorizationFailed):
        acts.make("configure", {}, "why", make)
    assert made == []
