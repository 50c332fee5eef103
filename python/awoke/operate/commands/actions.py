"""Executes commands in the process that they are for, and records each with its result, also a refused one.

A new verb has its action here: a method, and its line in `Actions`. Any thread may execute a command.
"""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from awoke.errors import AwokeError, ConfigError, RpcError
from awoke.operate.commands.audit import audit_of, is_recorded
from awoke.operate.commands.verbs import Reach, checked, checked_text, verb_of
from awoke.operate.commands.views import Audit, CommandResult, OperatorCommand, StackOfThread, StartedThread
from awoke.rpc.errors import (
    FailedPrecondition,
    Internal,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    Unavailable,
    Unimplemented,
)
from awoke.text.printable import shown
from awoke.waiting.clock import monotonic_s, wall_ms

THREADS_MAX = 200
FRAMES_MAX = 50
"""The most innermost frames of a stack that are shown."""
OFFSETS_SHOWN_MAX = 20
"""The most offsets that an answer names."""


class OwnedThread(Protocol):
    """A thread with an owner."""

    @property
    def owner(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def started_at(self) -> str: ...


class GroupPartitions(Protocol):
    """The partitions of one consumer group. Each method returns false if it changes nothing."""

    def pause(self, topic: str, partition: int, why: str) -> bool: ...
    def resume(self, topic: str, partition: int) -> bool: ...
    def seek(self, topic: str, partition: int, offset: int) -> bool: ...
    def seek_time(self, topic: str, partition: int, timestamp_ms: int) -> bool: ...
    def skip(self, topic: str, partition: int, offset: int) -> bool: ...
    def retry_now(self, topic: str, partition: int) -> bool: ...
    def dead_letter_now(self, topic: str, partition: int, offset: int) -> bool: ...


class Steered(Protocol):
    """The app of this process."""

    def quiet(self) -> None: ...
    def ask_stop(self) -> None: ...
    def threads(self) -> Sequence[OwnedThread]: ...
    def is_assigned(self, topic: str, partition: int) -> bool: ...
    def blocking(self, topic: str, partition: int, group: str | None = None) -> list[int]: ...
    def steer(self, group: str | None, change: Callable[[GroupPartitions], bool]) -> bool: ...


class SwarmOfProcess(Protocol):
    """The supervisor of this process, where there is one."""

    def ask(self, verb: str, **arguments: Any) -> str:
        """Sends a command and returns its effect, without waiting for the end of a reload. Blocks some seconds at most.

        Raises:
            AwokeError: The supervisor does not answer, or refuses the command.
        """


class KeptPauses(Protocol):
    """The durable pauses of the app."""

    def keep(self, topic: str, partition: int, group: str | None, why: str) -> None: ...
    def drop(self, topic: str, partition: int, group: str | None) -> bool: ...


class PartitionPlace(NamedTuple):
    """The partition that a command is for, in one consumer group or in all of them (None)."""

    topic: str
    partition: int
    group: str | None

    def __str__(self) -> str:
        return f"{self.topic}[{self.partition}]"


class NotHere(FailedPrecondition):
    """The partition is not assigned to this process."""


class Actions:
    """The commands for one process."""

    def __init__(
        self,
        app: str,
        node: str,
        steered: Steered,
        record: Callable[[Audit], object],
        pauses: KeptPauses | None = None,
    ) -> None:
        self._app, self._node, self._steered, self._record, self._pauses = app, node, steered, record, pauses
        self.supervisor: SwarmOfProcess | None = None
        self._of_partitions: Mapping[str, Callable[[PartitionPlace, dict[str, Any], str], str]] = {
            "pause": self._pause,
            "resume": self._resume,
            "seek": self._seek,
            "skip": self._skip,
            "retry": self._retry,
            "dead_letter": self._dead_letter,
        }
        self._of_process: Mapping[str, Callable[[], str | CommandResult]] = {
            "quiet": self._quiet,
            "stop": self._stop,
            "stacks": self._stacks,
            "threads": self._threads,
        }

    def execute(self, command: OperatorCommand, allowed: frozenset[str] | None = None) -> CommandResult:
        """Executes one command and records how it ended, also if it is refused.

        `allowed` has the verbs that a console may send, and a console gives a reason. None is for a client on this
        host: it may send all of them. Blocks: a seek to a time asks the brokers, a command for the swarm asks the
        supervisor.
        """
        result = self._result_of(command, lambda: self._admitted(command, allowed))
        if is_recorded(command.verb):
            self._record(audit_of(command, result, self._app))
        return result

    def perform(self, command: OperatorCommand) -> CommandResult:
        """Executes a command that another process records; else as `execute`."""
        return self._result_of(command, lambda: self._done(command))

    def _result_of(self, command: OperatorCommand, action: Callable[[], str | CommandResult]) -> CommandResult:
        began_s, at_ms, code, is_here = monotonic_s(), wall_ms(), "", True
        try:
            done = action()
        except RpcError as error:
            done, code, is_here = error.message, error.code, not isinstance(error, NotHere)
        result = CommandResult(verb=command.verb, text=done) if isinstance(done, str) else done
        result.result, result.is_here = code or result.result, is_here
        result.node, result.at_ms, result.took_ms = self._node, at_ms, round((monotonic_s() - began_s) * 1_000)
        return result

    def _admitted(self, command: OperatorCommand, allowed: frozenset[str] | None) -> str | CommandResult:
        if allowed is not None:
            try:
                verb_of(command.verb)
                checked_text("who", command.who)
                checked_text("reason", command.reason)
            except ConfigError as error:
                raise InvalidArgument(str(error)) from None
            if command.verb not in allowed:
                text = f"{command.verb} is not among the commands that the app allows: see console_commands"
                raise PermissionDenied(text)
        return self._done(command)

    def _done(self, command: OperatorCommand) -> str | CommandResult:
        """Returns the effect of a command.

        Raises:
            RpcError: The command is wrong, or has no effect; says why.
        """
        try:
            given = checked(command.verb, command.arguments)
        except ConfigError as error:
            raise InvalidArgument(str(error)) from None
        try:
            return self._effect(command, given)
        except RpcError:
            raise
        except ConfigError as error:
            raise (NotFound if error.property == "group" else FailedPrecondition)(str(error)) from None
        except AwokeError as error:
            raise Unavailable(shown(error), is_retryable=False) from None
        except Exception as error:
            raise Internal(shown(error)) from error

    def _effect(self, command: OperatorCommand, given: dict[str, Any]) -> str | CommandResult:
        name, who, reason = command.verb, command.who.strip(), command.reason.strip()
        why = f"{who}: {reason}" if reason else who
        if (action := self._of_partitions.get(name)) is not None:
            return action(PartitionPlace(given["topic"], given["partition"], given.get("group")), given, why)
        if verb_of(name).reach is Reach.SWARM and self.supervisor is not None:
            return self.supervisor.ask(name, **given)
        if name not in self._of_process:
            raise Unimplemented(f"{name} is for swarms (awoke run --nodes): this app runs in a single process")
        return self._of_process[name]()

    # The process.

    def _quiet(self) -> str:
        self._steered.quiet()
        return "the process begins no new jobs"

    def _stop(self) -> str:
        self._steered.ask_stop()
        return "the process stops"

    def _stacks(self) -> CommandResult:
        names = {each.ident: each.name for each in threading.enumerate()}
        owners = {each.name: each.owner for each in self._steered.threads()}
        stacks = []
        for ident, frame in list(sys._current_frames().items())[:THREADS_MAX]:
            name = names.get(ident, f"thread {ident}")
            calls = traceback.extract_stack(frame)[-FRAMES_MAX:]
            lines = [f"{call.filename}:{call.lineno} in {call.name}" for call in calls]
            stacks.append(StackOfThread(name=name, owner=owners.get(name, ""), lines=lines))
        stacks.sort(key=lambda stack: (stack.owner, stack.name))
        return CommandResult(verb="stacks", text=f"{len(stacks)} threads", stacks=stacks)

    def _threads(self) -> CommandResult:
        threads = [
            StartedThread(owner=each.owner, name=each.name, started_at=each.started_at)
            for each in self._steered.threads()
        ]
        return CommandResult(verb="threads", text=f"{len(threads)} threads", threads=threads)

    # Partitions.

    def _pause(self, at: PartitionPlace, given: dict[str, Any], why: str) -> str:
        is_durable, text = given.get("durable", False), f"paused by {why}"
        if is_durable and self._pauses is None:
            text = "a durable pause needs the console's topics: run the app with console=True, and with `pause` among"
            raise FailedPrecondition(f"{text} console_commands, or with console_secret")
        is_paused = self._steered.steer(at.group, lambda group: group.pause(at.topic, at.partition, text))
        if is_durable:
            assert self._pauses is not None
            self._pauses.keep(at.topic, at.partition, at.group, text)
            return f"{at} is paused until `resume`, wherever it is assigned"
        if not is_paused:
            raise not_here(at)
        return f"{at} is paused until `resume`, or until it is assigned anew"

    def _resume(self, at: PartitionPlace, given: dict[str, Any], why: str) -> str:
        was_durable = self._pauses is not None and self._pauses.drop(at.topic, at.partition, at.group)
        is_resumed = self._steered.steer(at.group, lambda group: group.resume(at.topic, at.partition))
        if not is_resumed and not was_durable:
            self._check_here(at)
            raise FailedPrecondition(f"{at} is neither paused nor stuck")
        return f"{at} goes on"

    def _seek(self, at: PartitionPlace, given: dict[str, Any], why: str) -> str:
        if "offset" in given:
            offset = given["offset"]
            is_done = self._steered.steer(at.group, lambda group: group.seek(at.topic, at.partition, offset))
            to = {-2: "the first message", -1: "the end"}.get(offset, f"offset {offset}")
        else:
            time_ms = given["timestamp_ms"]
            is_done = self._steered.steer(at.group, lambda group: group.seek_time(at.topic, at.partition, time_ms))
            to = f"the first message at or after {time_ms} ms"
        if not is_done:
            raise not_here(at)
        return f"{at} goes on from {to}"

    def _skip(self, at: PartitionPlace, given: dict[str, Any], why: str) -> str:
        offset = given["offset"]
        if not self._steered.steer(at.group, lambda group: group.skip(at.topic, at.partition, offset)):
            raise self._not_failing(at, offset)
        return f"{at} offset {offset} is skipped"

    def _retry(self, at: PartitionPlace, given: dict[str, Any], why: str) -> str:
        offset = given.get("offset")
        is_failing = offset is None or offset in self._steered.blocking(*at)
        if not is_failing or not self._steered.steer(at.group, lambda group: group.retry_now(at.topic, at.partition)):
            raise self._not_failing(at, offset)
        return f"the failing messages of {at} are tried again now"

    def _dead_letter(self, at: PartitionPlace, given: dict[str, Any], why: str) -> str:
        offset = given["offset"]
        if not self._steered.steer(at.group, lambda group: group.dead_letter_now(at.topic, at.partition, offset)):
            raise self._not_failing(at, offset)
        return f"{at} offset {offset} goes to the dead letter topic"

    def _check_here(self, at: PartitionPlace) -> None:
        if not self._steered.is_assigned(at.topic, at.partition):
            raise not_here(at)

    def _not_failing(self, at: PartitionPlace, offset: int | None) -> RpcError:
        self._check_here(at)
        failing = self._steered.blocking(*at)
        if offset is None or not failing:
            return FailedPrecondition(f"no message of {at} fails")
        offsets = ", ".join(map(str, failing[:OFFSETS_SHOWN_MAX])) + ("…" if failing[OFFSETS_SHOWN_MAX:] else "")
        return FailedPrecondition(f"{at} offset {offset} does not fail; failing now: {offsets}")


def not_here(at: PartitionPlace) -> NotHere:
    """Returns the error for a partition that another process has, or none."""
    return NotHere(f"{at} is not assigned to this process: ask the process of the group that has it")
