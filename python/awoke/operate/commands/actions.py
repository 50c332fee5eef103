"""Executes commands in the process that they are for, and records each with its answer.

A refused command is recorded, too. Any thread may execute one.
"""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from awoke.errors import AwokeError, ConfigError, RpcError
from awoke.operate.commands.verbs import Value, checked, checked_text
from awoke.operate.commands.views import Answer, Audit, StackOfThread
from awoke.rpc.errors import FailedPrecondition, Internal, NotFound, PermissionDenied, Unavailable
from awoke.text.printable import shown
from awoke.waiting.clock import monotonic_s, wall_ms

THREADS_MAX = 200
FRAMES_MAX = 50
"""The most innermost frames of a stack that are shown."""


class Thread(Protocol):
    """A thread with an owner."""

    @property
    def owner(self) -> str: ...
    @property
    def name(self) -> str: ...


class Steered(Protocol):
    """The app of this process."""

    def quiet(self) -> None: ...
    def ask_stop(self) -> None: ...
    def threads(self) -> Sequence[Thread]: ...
    def is_assigned(self, topic: str, partition: int) -> bool: ...
    def pause(self, topic: str, partition: int, why: str, group: str | None = None) -> bool: ...
    def resume(self, topic: str, partition: int, group: str | None = None) -> bool: ...
    def seek(self, topic: str, partition: int, offset: int, group: str | None = None) -> bool: ...
    def seek_time(self, topic: str, partition: int, timestamp_ms: int, group: str | None = None) -> bool: ...
    def skip(self, topic: str, partition: int, offset: int, group: str | None = None) -> bool: ...
    def retry_now(self, topic: str, partition: int, group: str | None = None) -> bool: ...
    def dead_letter(self, topic: str, partition: int, offset: int, group: str | None = None) -> bool: ...
    def blocking(self, topic: str, partition: int, group: str | None = None) -> list[int]: ...


class Supervisor(Protocol):
    """The supervisor of this process, where there is one."""

    def ask(self, command: str, **fields: Any) -> None:
        """Sends a command, and does not wait for its end. Blocks for the answer, some seconds at most.

        Raises:
            AwokeError: The supervisor does not answer, or refuses the command.
        """


class Pauses(Protocol):
    """The durable pauses of the app."""

    def keep(self, topic: str, partition: int, group: str | None, why: str) -> None: ...
    def drop(self, topic: str, partition: int, group: str | None) -> bool: ...


class Sender(Protocol):
    """The sender of a command."""

    @property
    def who(self) -> str: ...
    @property
    def via(self) -> str: ...
    @property
    def reason(self) -> str: ...


class Actions:
    """The commands for one process."""

    def __init__(
        self,
        app: str,
        node: str,
        steered: Steered,
        record: Callable[[Audit], object],
        pauses: Pauses | None = None,
    ) -> None:
        self._app, self._node, self._steered, self._record, self._pauses = app, node, steered, record, pauses
        self.supervisor: Supervisor | None = None
        self._does: Mapping[str, Callable[[dict[str, Any], str], str]] = {
            "quiet": self._quiet,
            "stop": self._stop,
            "reload": self._reload,
            "scale": self._scale,
            "pause": self._pause,
            "resume": self._resume,
            "seek": self._seek,
            "skip": self._skip,
            "retry": self._retry,
            "dead_letter": self._dead_letter,
        }

    def execute(
        self, verb: str, arguments: Mapping[str, Any], sender: Sender, allowed: frozenset[str] | None = None
    ) -> Answer:
        """Executes one command, if it is `allowed` (None: all are), and records how it ended.

        Blocks: a seek to a time asks the brokers, a command for the swarm asks the supervisor.

        Raises:
            RpcError: The command is wrong, not allowed, or has no effect; says why.
        """
        began_s, at_ms = monotonic_s(), wall_ms()
        given: dict[str, Value] = {}
        result, text = "done", ""
        try:
            given = checked(verb, arguments)
            why = f"{checked_text('who', sender.who)}: {checked_text('reason', sender.reason)}"
            if allowed is not None and verb not in allowed:
                raise PermissionDenied(f"{verb} is not among the commands that the app allows: see console_commands")
            stacks = self.stacks() if verb == "stacks" else []
            text = f"{len(stacks)} threads" if verb == "stacks" else self._done(verb, given, why)
        except RpcError as error:
            result, text = error.code, error.message
            raise
        finally:
            took_ms = round((monotonic_s() - began_s) * 1_000)
            self._record(
                Audit(
                    at_ms=at_ms,
                    node=self._node,
                    app=self._app,
                    who=sender.who[:1_000],
                    via=sender.via,
                    verb=verb[:100],
                    arguments=given,
                    reason=sender.reason[:1_000],
                    result=result,
                    text=text,
                    took_ms=took_ms,
                )
            )
        return Answer(node=self._node, verb=verb, text=text, at_ms=at_ms, took_ms=took_ms, stacks=stacks)

    def perform(self, verb: str, arguments: Mapping[str, Any], who: str, reason: str) -> str:
        """Executes a command that another process records; returns its effect. Blocks as `execute`.

        Raises:
            RpcError: The command is wrong, or has no effect; says why.
        """
        return self._done(verb, checked(verb, arguments), f"{who}: {reason}" if reason else who)

    def _done(self, verb: str, given: dict[str, Any], why: str) -> str:
        try:
            return self._does[verb](given, why)
        except RpcError:
            raise
        except ConfigError as error:
            raise (NotFound if error.property == "group" else FailedPrecondition)(str(error)) from None
        except AwokeError as error:
            raise Unavailable(shown(error), is_retryable=False) from None
        except Exception as error:
            raise Internal(shown(error)) from error

    # The process, and its swarm.

    def _quiet(self, given: dict[str, Any], why: str) -> str:
        self._steered.quiet()
        return "the process begins no new jobs"

    def _stop(self, given: dict[str, Any], why: str) -> str:
        if self.supervisor is not None:
            self.supervisor.ask("stop")
            return "the swarm stops"
        self._steered.ask_stop()
        return "the process stops"

    def _reload(self, given: dict[str, Any], why: str) -> str:
        self._swarm("reload").ask("reload", waits=False)
        return "the reload has begun"

    def _scale(self, given: dict[str, Any], why: str) -> str:
        self._swarm("scale").ask("scale", nodes=given["nodes"])
        return f"the swarm goes to {given['nodes']} nodes"

    def _swarm(self, verb: str) -> Supervisor:
        if self.supervisor is None:
            raise FailedPrecondition(f"{verb} is for swarms (awoke run --nodes): this app runs in a single process")
        return self.supervisor

    def stacks(self) -> list[StackOfThread]:
        """Returns the stacks of all threads. Does not block."""
        names = {each.ident: each.name for each in threading.enumerate()}
        owners = {each.name: each.owner for each in self._steered.threads()}
        found = []
        for ident, frame in list(sys._current_frames().items())[:THREADS_MAX]:
            name = names.get(ident, f"thread {ident}")
            lines = [
                f"{each.filename}:{each.lineno} in {each.name}" for each in traceback.extract_stack(frame)[-FRAMES_MAX:]
            ]
            found.append(StackOfThread(name=name, owner=owners.get(name, ""), lines=lines))
        return sorted(found, key=lambda each: (each.owner, each.name))

    # Partitions.

    def _pause(self, given: dict[str, Any], why: str) -> str:
        topic, partition, group = place_of(given)
        is_durable = given.get("durable", False)
        if is_durable and self._pauses is None:
            raise FailedPrecondition("a durable pause needs the console's topics: run the app with console=True")
        is_paused = self._steered.pause(topic, partition, f"paused by {why}", group)
        if is_durable:
            assert self._pauses is not None
            self._pauses.keep(topic, partition, group, f"paused by {why}")
            return f"{topic}[{partition}] is paused until `resume`, wherever it is assigned"
        if not is_paused:
            raise self._not_here(topic, partition)
        return f"{topic}[{partition}] is paused until `resume`, or until it is assigned anew"

    def _resume(self, given: dict[str, Any], why: str) -> str:
        topic, partition, group = place_of(given)
        was_durable = self._pauses is not None and self._pauses.drop(topic, partition, group)
        if not self._steered.resume(topic, partition, group) and not was_durable:
            self._check_here(topic, partition)
            raise FailedPrecondition(f"{topic}[{partition}] is neither paused nor stuck")
        return f"{topic}[{partition}] goes on"

    def _seek(self, given: dict[str, Any], why: str) -> str:
        topic, partition, group = place_of(given)
        if "offset" in given:
            is_done = self._steered.seek(topic, partition, given["offset"], group)
            to = {-2: "the first message", -1: "the end"}.get(given["offset"], f"offset {given['offset']}")
        else:
            is_done = self._steered.seek_time(topic, partition, given["timestamp_ms"], group)
            to = f"the first message at or after {given['timestamp_ms']} ms"
        if not is_done:
            raise self._not_here(topic, partition)
        return f"{topic}[{partition}] goes on from {to}"

    def _skip(self, given: dict[str, Any], why: str) -> str:
        topic, partition, group = place_of(given)
        if not self._steered.skip(topic, partition, given["offset"], group):
            raise self._not_failing(topic, partition, given["offset"], group)
        return f"{topic}[{partition}] offset {given['offset']} is skipped"

    def _retry(self, given: dict[str, Any], why: str) -> str:
        topic, partition, group = place_of(given)
        offset = given.get("offset")
        is_failing = offset is None or offset in self._steered.blocking(topic, partition, group)
        if not is_failing or not self._steered.retry_now(topic, partition, group):
            raise self._not_failing(topic, partition, offset, group)
        return f"the failing messages of {topic}[{partition}] are tried again now"

    def _dead_letter(self, given: dict[str, Any], why: str) -> str:
        topic, partition, group = place_of(given)
        if not self._steered.dead_letter(topic, partition, given["offset"], group):
            raise self._not_failing(topic, partition, given["offset"], group)
        return f"{topic}[{partition}] offset {given['offset']} goes to the dead letter topic"

    def _check_here(self, topic: str, partition: int) -> None:
        if not self._steered.is_assigned(topic, partition):
            raise self._not_here(topic, partition)

    def _not_here(self, topic: str, partition: int) -> RpcError:
        return FailedPrecondition(f"{topic}[{partition}] is not assigned to this process: ask the one that has it")

    def _not_failing(self, topic: str, partition: int, offset: int | None, group: str | None) -> RpcError:
        self._check_here(topic, partition)
        failing = self._steered.blocking(topic, partition, group)
        if offset is None or not failing:
            return FailedPrecondition(f"no message of {topic}[{partition}] fails")
        names = ", ".join(map(str, failing[:20]))
        return FailedPrecondition(f"{topic}[{partition}] offset {offset} does not fail; those that do: {names}")


def place_of(given: Mapping[str, Any]) -> tuple[str, int, str | None]:
    """Returns topic, partition and group of a command."""
    return given["topic"], given["partition"], given.get("group")
