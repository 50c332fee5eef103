"""The commands in the process that they are for: what they call, what they answer, and their records."""

from __future__ import annotations

from typing import Any

import pytest

from awoke.errors import AwokeError, ConfigError, RpcError
from awoke.operate.commands.actions import Actions
from awoke.operate.commands.verbs import REMOTE
from awoke.operate.commands.views import Audit, CommandResult, OperatorCommand
from awoke.rpc.errors import FailedPrecondition, Internal, NotFound, Unavailable, Unimplemented

PLACE: dict[str, Any] = {"topic": "orders", "partition": 0}
ALL = frozenset(REMOTE)


def command(verb: str, reason: str = "it is stuck", **arguments: Any) -> OperatorCommand:
    return OperatorCommand(verb=verb, arguments=arguments, who="ann", via="test", reason=reason)


class FakeApp:
    """A running app: each method returns `answers[name]`, or raises it, and is noted."""

    def __init__(self, **answers: Any) -> None:
        self.answers, self.called = answers, list[tuple[Any, ...]]()

    def threads(self) -> list[Any]:
        return []

    def steer(self, group: str | None, change: Any) -> bool:
        self.group = group
        return bool(change(self))

    def __getattr__(self, name: str) -> Any:
        def call(*given: Any) -> Any:
            self.called.append((name, *given))
            answer = self.answers.get(name)
            if isinstance(answer, Exception):
                raise answer
            return answer

        return call


class FakeSupervisor:
    """Keeps the commands that it is asked for."""

    def __init__(self) -> None:
        self.asked = list[Any]()

    def ask(self, verb: str, **arguments: Any) -> str:
        self.asked.append((verb, arguments))
        return "it is asked"


class FakePauses:
    """Keeps durable pauses."""

    def __init__(self) -> None:
        self.kept = list[Any]()

    def keep(self, topic: str, partition: int, group: str | None, why: str) -> None:
        self.kept.append((topic, partition, group, why))

    def drop(self, topic: str, partition: int, group: str | None) -> bool:
        return bool(self.kept)


class Case:
    """The commands of one process, and their records."""

    def __init__(self, **answers: Any) -> None:
        self.app, self.records, self.pauses = FakeApp(**answers), list[Audit](), FakePauses()
        steered: Any = self.app
        self.actions = Actions("shop", "host.1", steered, self.records.append, self.pauses)

    def send(self, verb: str, **arguments: Any) -> str:
        result = self.actions.execute(command(verb, **arguments), ALL)
        assert result.result == "done", result.text
        return result.text

    def fails(self, kind: type[RpcError], text: str, verb: str, **arguments: Any) -> CommandResult:
        result = self.actions.execute(command(verb, **arguments), ALL)
        assert result.result == self.records[-1].result == kind.code
        assert result.text == self.records[-1].text
        assert text in result.text
        return result


def test_a_command_is_executed_and_recorded_with_its_answer() -> None:
    case = Case(pause=True)
    assert case.send("pause", **PLACE, group="eu").startswith("orders[0] is paused")
    assert case.app.called == [("pause", "orders", 0, "paused by ann: it is stuck")]
    assert case.app.group == "eu"
    (record,) = case.records
    assert (record.who, record.via, record.reason, record.verb) == ("ann", "test", "it is stuck", "pause")
    assert (record.result, record.arguments) == ("done", {**PLACE, "group": "eu"})


def test_a_command_that_is_not_allowed_is_refused_and_recorded() -> None:
    case = Case()
    assert case.actions.execute(command("stop"), frozenset({"pause"})).result == "permission_denied"
    assert case.app.called == []
    assert [each.result for each in case.records] == ["permission_denied"]


def test_a_console_gives_a_reason_and_a_client_on_this_host_need_not() -> None:
    case = Case()
    assert case.actions.execute(command("quiet", reason=" "), ALL).text.startswith("reason must be a string")
    assert case.app.called == []
    assert case.actions.execute(command("quiet", reason="")).result == "done"
    assert [each.result for each in case.records] == ["invalid_argument", "done"]


def test_what_another_process_records_is_not_recorded_here() -> None:
    case = Case(pause=True)
    assert case.actions.perform(command("pause", **PLACE)).result == "done"
    assert case.actions.perform(command("explode")).result == "invalid_argument"
    assert case.records == []


def test_a_partition_that_is_not_here_is_named() -> None:
    for verb, more in (("pause", {}), ("seek", {"offset": 7}), ("resume", {}), ("skip", {"offset": 7})):
        case = Case(blocking=[])
        assert not case.fails(
            FailedPrecondition, "orders[0] is not assigned to this process", verb, **PLACE, **more
        ).is_here


def test_a_message_that_does_not_fail_is_told_with_those_that_do() -> None:
    case = Case(is_assigned=True, blocking=[3, 5])
    for verb in ("skip", "dead_letter", "retry"):
        case.fails(FailedPrecondition, "orders[0] offset 4 does not fail; failing now: 3, 5", verb, **PLACE, offset=4)


def test_a_seek_goes_to_an_offset_or_a_time() -> None:
    case = Case(seek=True, seek_time=True)
    assert case.send("seek", **PLACE, offset=-2).endswith("goes on from the first message")
    case.send("seek", **PLACE, timestamp_ms=1_000)
    assert case.app.called == [("seek", "orders", 0, -2), ("seek_time", "orders", 0, 1_000)]


def test_a_durable_pause_is_kept_also_where_the_partition_is_not_assigned() -> None:
    case = Case()
    case.send("pause", **PLACE, durable=True)
    assert case.pauses.kept == [("orders", 0, None, "paused by ann: it is stuck")]
    assert case.send("resume", **PLACE) == "orders[0] goes on"


def test_commands_for_a_swarm_go_to_its_supervisor() -> None:
    case = Case()
    case.fails(Unimplemented, "reload is for swarms", "reload")
    case.actions.supervisor = supervisor = FakeSupervisor()
    case.send("reload")
    case.send("scale", nodes=3)
    case.send("stop")
    assert supervisor.asked == [("reload", {}), ("scale", {"nodes": 3}), ("stop", {})]
    assert case.app.called == []


def test_a_process_alone_is_stopped_and_made_quiet_by_itself() -> None:
    case = Case()
    case.send("stop")
    case.send("quiet")
    assert case.app.called == [("ask_stop",), ("quiet",)]


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (ConfigError("there is no group", "group"), NotFound),
        (ConfigError("no dead letter topic", "dead_letter"), FailedPrecondition),
        (AwokeError("the brokers are away"), Unavailable),
        (RuntimeError("a bug"), Internal),
    ],
)
def test_an_error_gets_a_code(raised: Exception, kind: type[RpcError]) -> None:
    Case(seek=raised).fails(kind, str(raised), "seek", **PLACE, offset=1)


def test_stacks_show_the_calls_of_this_thread() -> None:
    result = Case().actions.execute(command("stacks"))
    assert any("test_actions.py" in line for stack in result.stacks for line in stack.lines)


def test_many_failing_offsets_are_not_all_named() -> None:
    case = Case(is_assigned=True, blocking=[*range(21)])
    found = case.fails(FailedPrecondition, "failing now: 0, 1, 2", "skip", **PLACE, offset=99)
    assert found.text.endswith("18, 19…")
