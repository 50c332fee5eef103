"""The commands for an app in this process: `resume`, `skip`, `threads`, and those of a console."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from typing import Any

import msgspec

from awoke.app.app import App
from awoke.console.process_commands import ProcessCommands
from awoke.errors import AwokeError, ConfigError, RpcError
from awoke.observe.web.listener import Peer
from awoke.operate.commands import lines as command_lines
from awoke.operate.commands.verbs import VERBS
from awoke.operate.commands.views import StackOfThread
from awoke.rpc.errors import InvalidArgument
from awoke.swarm import audited

ACTS = audited.ACTS | {"quiet", "stop"}
RECORDED = ACTS | {"resume", "skip", "stacks"}
STACKS_BYTES_MAX = 100_000
"""The most bytes of the stacks of a node: a message between processes has a size that the system limits."""


class AppCommands:
    """The commands for one app. Usable from any thread."""

    def __init__(self, app: App) -> None:
        self._app = app

    def execute(self, command: dict[str, Any], peer: Peer | None = None) -> dict[str, Any]:
        """Executes one command, and records it for the audit; returns the answer.

        Raises:
            ConfigError: The command is unknown, or its fields are wrong.
        """
        began_ms, name = audited.now_ms(), command.get("command")
        answer: dict[str, Any] = {}
        try:
            answer = self._executed(command, peer)
        except AwokeError as error:
            answer = {"error": str(error)}
            raise
        finally:
            if isinstance(name, str) and name in RECORDED and (commands := self._commands()) is not None:
                commands.record(audited.audit_of(audited.note_of(command, answer, peer, 0, began_ms)))
        return answer

    def _executed(self, command: dict[str, Any], peer: Peer | None) -> dict[str, Any]:
        match name := command.get("command"):
            case "resume":
                return self._resume(*command_lines.place_of(command), command_lines.group_of(command))
            case "skip":
                place, offset = command_lines.place_of(command), command_lines.offset_of(command)
                return self._skip(*place, offset, command_lines.group_of(command))
            case "threads":
                entries = [thread_of(each) for each in self._app.threads()]
                return {"done": name, "threads": entries}
            case "stacks":
                return self._stacks()
            case str() if name in ACTS:
                return self._act(name, command, audited.user_of(peer))
            case _:
                text = f"{reprlib.repr(name)} is for swarms (awoke run --nodes): this app runs in a single process"
                raise ConfigError(text, "command")

    def _commands(self) -> ProcessCommands | None:
        """The commands of the process, while the app runs."""
        return None if self._app._runner is None else self._app._runner.extension(ProcessCommands)

    def _act(self, verb: str, command: dict[str, Any], who: str) -> dict[str, Any]:
        commands = self._commands()
        if commands is None:
            return {"failed": "the app does not run"}
        given = {name: command[name] for name in VERBS[verb].fields if name in command}
        try:
            return {"done": verb, "text": commands.actions.perform(verb, given, who, audited.reason_of(command))}
        except InvalidArgument as error:
            raise ConfigError(error.message, verb) from None
        except RpcError as error:
            return {"failed": error.message}

    def _stacks(self) -> dict[str, Any]:
        commands = self._commands()
        if commands is None:
            return {"failed": "the app does not run"}
        stacks = [msgspec.to_builtins(each) for each in commands.actions.stacks()]
        return {"done": "stacks", "text": f"{len(stacks)} threads", "stacks": stacks}

    def _resume(self, topic: str, partition: int, group: str | None) -> dict[str, Any]:
        if resumed(self._app, topic, partition, group):
            return {"done": "resume"}
        if not self._app.is_assigned(topic, partition):
            return {"failed": command_lines.not_assigned(f"{topic}[{partition}]", "this process does not hold")}
        return {"failed": f"{topic}[{partition}] is neither paused nor stuck"}

    def _skip(self, topic: str, partition: int, offset: int, group: str | None) -> dict[str, Any]:
        is_skipped, blocking = skipped(self._app, topic, partition, offset, group)
        if is_skipped:
            return {"done": "skip"}
        if not self._app.is_assigned(topic, partition):
            return {"failed": command_lines.not_assigned(f"{topic}[{partition}]", "this process does not hold")}
        return {"failed": command_lines.why_not_skipped(f"{topic}[{partition}]", offset, blocking)}


def resumed(app: App, topic: str, partition: int, group: str | None) -> bool:
    """Resumes a partition of an app in this process; returns false if it was neither paused nor stuck.

    Raises:
        ConfigError: The app has no group of this name.
    """
    try:
        return app.resume(topic, partition, group=group)
    except ConfigError:
        raise  # There is no such group.
    except AwokeError:
        return False  # The partition is revoked, or the app stops: there is nothing to resume here.


def skipped(app: App, topic: str, partition: int, offset: int, group: str | None) -> tuple[bool, list[int]]:
    """Skips a message that fails, of an app in this process.

    Returns false if that message does not fail, and the offsets of those that do.

    Raises:
        ConfigError: The app has no group of this name.
    """
    try:
        return app.skip(topic, partition, offset, group=group), app.blocking(topic, partition, group=group)
    except ConfigError:
        raise  # There is no such group.
    except AwokeError:
        return False, []  # The partition is revoked, or the app stops: there is nothing to skip here.


def shortened(stacks: Sequence[StackOfThread], most: int = STACKS_BYTES_MAX) -> list[StackOfThread]:
    """Returns stacks within a number of bytes, `most`: without the outermost calls where they would have more."""
    each_max = most // max(1, len(stacks))
    found = []
    for stack in stacks:
        lines, left = list[str](), each_max - sum(len(each) for each in (stack.name, stack.owner))
        for line in reversed(stack.lines):
            left -= len(line.encode()) + 3
            if left < 0:
                break
            lines.insert(0, line)
        found.append(msgspec.structs.replace(stack, lines=lines))
    return found


def thread_of(entry: tuple[str, str, str]) -> dict[str, str]:
    """Returns a thread as a JSON object."""
    owner, name, started_at = entry
    return {"owner": owner, "name": name, "started_at": started_at}
