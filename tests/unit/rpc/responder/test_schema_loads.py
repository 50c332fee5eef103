"""Schemas that a call needs: loaded before the method, and what its caller gets if that is not possible."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

import awoke
from awoke.payloads.formats.encryption import KeysUnavailable
from awoke.payloads.registry import RegistryRefused, RegistryUnavailable, SchemaNotFound
from awoke.payloads.registry.schemas import LOADS_MAX, SchemaNeeded
from awoke.rpc import DeadlineExceeded, Unavailable
from awoke.rpc.responder.schema_loads import NotExecuted, SchemaLoads
from awoke.waiting.drive import drive
from tests.unit.rpc.caller.fakes import WAYS, Run
from tests.unit.rpc.responder.fakes import FakeCall


class Case:
    """A function that needs schemas, each of which is loaded, or fails with this error."""

    def __init__(self, *outcomes: Exception | None) -> None:
        self._outcomes = list(outcomes)
        self.call: Any = FakeCall()
        self.events, self.heard = awoke.Events(), list[Any]()
        self.events.subscribe("registry.waited", self.heard.append)
        self.schemas = SimpleNamespace(loads=0)
        self.loads = SchemaLoads(cast("Any", self.schemas), self.events)
        self.asked = 0
        self.on_load: Callable[[], object] = lambda: None

    def needing(self, value: str) -> str:
        if self._outcomes:
            raise SchemaNeeded("not yet", self._load)
        return f"{value} read"

    def _load(self) -> None:
        self.asked += 1
        self.on_load()
        outcome = self._outcomes[0]
        if outcome is None or isinstance(outcome, SchemaNotFound):
            self._outcomes.pop(0)
        if outcome is not None:
            raise outcome


@WAYS
def test_a_schema_is_loaded_and_the_function_called_again(run: Run) -> None:
    case = Case(None, None)
    assert run(case.loads.run(case.call, case.needing, "it")) == "it read"
    assert (case.asked, case.heard) == (2, [])


def test_a_schema_that_the_registry_does_not_have_is_the_function_s_business() -> None:
    case = Case(SchemaNotFound("no schema 7"))
    assert drive(case.loads.run(case.call, case.needing, "it")) == "it read"


@WAYS
def test_a_registry_that_is_away_rejects_the_call_and_is_reported(run: Run) -> None:
    case = Case(RegistryUnavailable("http://user:secret@registry does not answer"))
    with pytest.raises(NotExecuted) as caught:
        run(case.loads.run_before(case.call, case.needing, "it"))
    told = caught.value.error
    assert isinstance(told, Unavailable)
    assert "quote: the responder can't ask the schema registry now" in str(told)
    assert "http" not in str(told), "callers learn nothing of the registry"
    (heard,) = case.heard
    assert (heard.handler, heard.topic, heard.partition, heard.offset) == ("quote", "shop.rpc.calls", 2, 7)
    assert heard.retry_in_s == pytest.approx(told.retry_after_s, abs=0.001)


def test_while_it_is_away_other_calls_are_refused_at_once_until_a_schema_was_loaded() -> None:
    case = Case(RegistryUnavailable("away"))
    for _ in range(3):
        with pytest.raises(Unavailable):
            drive(case.loads.run(case.call, case.needing, "it"))
    assert (case.asked, len(case.heard)) == (1, 1)
    case.schemas.loads += 1
    with pytest.raises(Unavailable):
        drive(case.loads.run(case.call, case.needing, "it"))
    assert case.asked == 2


@pytest.mark.parametrize("error", [RegistryRefused("no such path"), KeysUnavailable("the key store is away")])
def test_what_one_caller_can_cause_refuses_no_call_of_another(error: Exception) -> None:
    case = Case(error)
    for asked in (1, 2):
        with pytest.raises(Unavailable):
            drive(case.loads.run(case.call, case.needing, "it"))
        assert (case.asked, len(case.heard)) == (asked, asked)


def test_a_call_that_expires_meanwhile_is_not_executed() -> None:
    case = Case(None)
    case.on_load = case.call.cancel
    with pytest.raises(DeadlineExceeded):
        drive(case.loads.run(case.call, case.needing, "it"))


def test_a_client_that_is_closed_means_that_the_responder_stops() -> None:
    case = Case(awoke.ClosedError("closed"))
    with pytest.raises(Unavailable, match="has stopped"):
        drive(case.loads.run(case.call, case.needing, "it"))


def test_another_error_is_raised_as_it_is() -> None:
    case = Case(awoke.ConfigError("no registry", "registry_url"))
    with pytest.raises(awoke.ConfigError):
        drive(case.loads.run_before(case.call, case.needing, "it"))


def test_loads_have_an_end() -> None:
    case = Case(*[None] * (LOADS_MAX + 1))
    with pytest.raises(SchemaNeeded):
        drive(case.loads.run(case.call, case.needing, "it"))
