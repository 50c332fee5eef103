"""The commands in the process that they are for: what they call, what they answer, and their records."""

from __future__ import annotations

from typing import Any

import pytest

from awoke.console.commands.service import Sender
from awoke.errors import AwokeError, ConfigError, RpcError
from awoke.operate.commands.actions import Actions
from awoke.operate.commands.views import Audit
from awoke.rpc.errors import FailedPrecondition, Internal, InvalidArgument, NotFound, PermissionDenied, Unavailable

PLACE: dict[str, Any] = {"topic": "orders", "partition": 0}
SENDER = Sender("ann", "test", "it is stuck")


class FakeApp:
    """A running app: each method returns `answers[name]`, or raises it, and is noted."""

    def __init__(self, **answers: Any) -> None:
        self.answers, self.called = answers, list[tuple[Any, ...]]()

    def threads(self) -> list[Any]:
        return []

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

    def ask(self, command: str, **fields: Any) -> None:
        self.asked.append((command, fields))


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

    def send(self, verb: str, sender: Sender = SENDER, **arguments: Any) -> str:
        return self.actions.execute(verb, arguments, sender).text

    def fails(self, kind: type[RpcError], text: str, verb: str, **arguments: Any) -> None:
        with pytest.raises(kind, match=text):
            self.send(verb, **arguments)
        assert self.records[-1].result == kind.code


def test_a_command_is_executed_and_recorded_with_its_answer() -> None:
    case = Case(pause=True)
    assert case.send("pause", **PLACE, group="eu").startswith("orders[0] is paused")
    assert case.app.called == [("pause", "orders", 0, "paused by ann: it is stuck", "eu")]
    (record,) = case.records
    assert (record.who, record.via, record.reason, record.verb) == ("ann", "test", "it is stuck", "pause")
    assert (record.result, record.arguments) == ("done", {**PLACE, "group": "eu"})


def test_a_command_that_is_not_allowed_is_refused_and_recorded() -> None:
    case = Case()
    with pytest.raises(PermissionDenied):
        case.actions.execute("stop", {}, SENDER, frozenset({"pause"}))
    assert case.app.called == []
    assert [each.result for each in case.records] == ["permission_denied"]


def test_a_command_without_a_reason_is_refused_and_recorded() -> None:
    case = Case()
    with pytest.raises(InvalidArgument, match="reason"):
        case.send("quiet", Sender("ann", "test", ""))
    assert [each.result for each in case.records] == ["invalid_argument"]


def test_a_partition_that_is_not_here_is_named() -> None:
    for verb, more in (("pause", {}), ("seek", {"offset": 7}), ("resume", {}), ("skip", {"offset": 7})):
        case = Case(blocking=[])
        case.fails(FailedPrecondition, r"orders\[0\] is not assigned to this process", verb, **PLACE, **more)


def test_a_message_that_does_not_fail_is_told_with_those_that_do() -> None:
    case = Case(is_assigned=True, blocking=[3, 5])
    for verb in ("skip", "dead_letter", "retry"):
        case.fails(FailedPrecondition, "offset 4 does not fail; those that do: 3, 5", verb, **PLACE, offset=4)


def test_a_seek_goes_to_an_offset_or_a_time() -> None:
    case = Case(seek=True, seek_time=True)
    assert case.send("seek", **PLACE, offset=-2).endswith("goes on from the first message")
    case.send("seek", **PLACE, timestamp_ms=1_000)
    assert case.app.called == [("seek", "orders", 0, -2, None), ("seek_time", "orders", 0, 1_000, None)]


def test_a_durable_pause_is_kept_also_where_the_partition_is_not_assigned() -> None:
    case = Case()
    case.send("pause", **PLACE, durable=True)
    assert case.pauses.kept == [("orders", 0, None, "paused by ann: it is stuck")]
    assert case.send("resume", **PLACE) == "orders[0] goes on"


def test_commands_for_a_swarm_go_to_its_supervisor() -> None:
    case = Case()
    case.fails(FailedPrecondition, "reload is for swarms", "reload")
    case.actions.supervisor = supervisor = FakeSupervisor()
    case.send("reload")
    case.send("scale", nodes=3)
    case.send("stop")
    assert supervisor.asked == [("reload", {"waits": False}), ("scale", {"nodes": 3}), ("stop", {})]
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
    answer = Case().actions.execute("stacks", {}, SENDER)
    assert any("test_actions.py" in line for stack in answer.stacks for line in stack.lines)
