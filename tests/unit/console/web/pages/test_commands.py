"""Commands: a reason and a confirmation, typed arguments, the answer or the typed error, and the audit."""

from __future__ import annotations

from typing import Any

import pytest

from awoke.console.views import Failing, Partition
from awoke.console.web.grants import Grant, Role
from awoke.console.web.pages import commands
from awoke.operate.commands.verbs import REMOTE
from awoke.operate.commands.views import Audit, CommandResult, StackOfThread
from awoke.rpc.errors import FailedPrecondition
from awoke.waiting.clock import wall_ms
from tests.unit.console.web.fakes import FakeLive, console, report

SAME = {"Sec-Fetch-Site": "same-origin"}


class FakeCommander:
    """Notes commands, and answers them."""

    sent: list[tuple[str, str, dict[str, Any]]] = []

    def __init__(self, app: str, **options: Any) -> None: ...
    def __enter__(self) -> FakeCommander:
        return self

    def __exit__(self, *error: object) -> None: ...
    def send(self, node: str, verb: str, **given: Any) -> CommandResult:
        self.sent.append((node, verb, given))
        if verb == "resume":
            raise FailedPrecondition("orders[0] is not paused")
        stacks = [StackOfThread(name="worker-1", owner="shop", lines=["in <delays>"])] if verb == "stacks" else []
        return CommandResult(node=node, verb=verb, text="it was done", at_ms=1, took_ms=1, stacks=stacks)


def ann(scope: object) -> Grant:
    return Grant(role=Role.ADMIN, who="ann")


@pytest.fixture(autouse=True)
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, dict[str, Any]]]:
    FakeCommander.sent.clear()
    monkeypatch.setattr(commands, "Commander", FakeCommander)
    return FakeCommander.sent


def post(verb: str, **form: str) -> Any:
    given = {"node": "host.1", "reason": "it blocks", "sure": "on", **form}
    with console(policy=ann, verbs=["*"]) as client:
        return client.post(f"/commands/{verb}", data=given, headers=SAME)


def test_a_command_is_sent_with_its_reason_and_its_arguments(sent: list[Any]) -> None:
    answer = post("skip", topic="orders", partition="3", offset="7", group="", other="x")
    assert (answer.status_code, "it was done" in answer.text) == (200, True)
    of_skip = {"topic": "orders", "partition": 3, "offset": 7}
    assert sent == [("host.1", "skip", {"who": "ann", "reason": "it blocks", **of_skip})]


@pytest.mark.parametrize("form", [{"reason": " "}, {"sure": ""}, {"partition": "x", "topic": "orders"}])
def test_a_command_without_reason_or_confirmation_is_not_sent(form: dict[str, str], sent: list[Any]) -> None:
    assert (post("pause", **form).status_code, sent) == (400, [])


@pytest.mark.parametrize(("verb", "name", "text"), [("scale", "nodes", "5000"), ("pause", "partition", "-1")])
def test_a_number_that_is_out_of_bounds_is_not_made_another_one(
    verb: str, name: str, text: str, sent: list[Any]
) -> None:
    assert (post(verb, **{"topic": "orders", name: text}).status_code, sent) == (400, [])


def test_an_error_of_the_process_is_shown(sent: list[Any]) -> None:
    answer = post("resume", topic="orders", partition="0")
    assert (answer.status_code, "failed precondition: orders[0] is not paused" in answer.text) == (409, True)


def test_stacks_are_shown_harmless() -> None:
    assert "in &lt;delays&gt;" in post("stacks").text


def test_each_command_needs_its_role(sent: list[Any]) -> None:
    roles = {each.verb: each.role for each in commands.ACTIONS}
    assert roles.keys() == REMOTE.keys()
    assert {verb for verb, role in roles.items() if role is Role.ADMIN} == {"stop", "reload", "scale", "seek"}
    with console(policy=lambda scope: Role.OPERATE, verbs=["*"]) as client:
        assert client.post("/commands/stop", data={"node": "a"}, headers=SAME).status_code == 403
    assert sent == []


def test_forms_are_shown_only_where_console_and_process_allow_them() -> None:
    failing = Failing(offset=7, key_hash="a", attempts=1, error="no", since_ms=1, next_ms=wall_ms())
    at = Partition(group="shop", topic="orders", partition=0, committed=1, failing=[failing])
    live = FakeLive([report("a", at, commands=["pause", "skip"])])
    with console(live, policy=ann, verbs=["pause", "resume", "skip"]) as client:
        page = client.get("/partitions/orders/0/shop").text
    assert ["/commands/pause" in page, "/commands/skip" in page, "/commands/resume" in page] == [True, True, False]
    with console(live) as client:
        assert "/commands/" not in client.get("/partitions/orders/0/shop").text


def test_the_audit_shows_the_last_command_first() -> None:
    live = FakeLive([report()])
    fields: dict[str, Any] = {"node": "a", "app": "shop", "via": "x", "reason": "r", "text": "t", "took_ms": 1}
    live.audit = [
        Audit(at_ms=at, who=f"ann{at}", verb="pause", arguments={"topic": "orders"}, result="done", **fields)
        for at in (1, 2)
    ]
    with console(live) as client:
        rows = client.get("/audit?format=json").json()["commands"]["rows"]
        assert "ann2" in client.get("/audit").text
    assert [each["who"] for each in rows] == ["ann2", "ann1"]
