"""The commands for one process: those of consoles, those of this host, and the durable pauses of its app."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from awoke.console.commands.service import CommandService
from awoke.console.reporter import Reporter
from awoke.operate.commands.actions import Actions
from awoke.operate.commands.pauses import DurablePauses
from awoke.operate.commands.verbs import allowed
from awoke.operate.commands.views import Audit
from awoke.runtime.extension import Extension
from awoke.runtime.process.runner import AppRunner

PAUSES_WITHIN_S = 5.0
"""A start waits this long for the durable pauses; after that, a partition may run until they are known."""


class ProcessCommands(Extension):
    """Executes commands for a process, and records them where the app has a console.

    Those of this host are executed in any app; those of consoles, and durable pauses, where the settings allow some.
    Any thread may call everything here.
    """

    def __init__(self, runner: AppRunner, reporter: Reporter | None) -> None:
        self._runner, self._reporter, self._app = runner, reporter, runner.app.name
        self._pauses: DurablePauses | None = None
        self._service: CommandService | None = None
        node, settings = "" if reporter is None else reporter.node, runner.settings
        verbs = allowed(settings)
        # Without a secret, each writer to the topic may pause: it is read only where consoles may do that anyway.
        if reporter is not None and verbs and ("pause" in verbs or settings.console_secret is not None):
            self._pauses = DurablePauses(reporter.topics.pauses, settings, reporter.send, self._apply_pause)
        self.actions = Actions(self._app, node, runner, self.record, self._pauses)
        if reporter is not None and verbs:
            self._service = CommandService(self._app, node, settings, self.actions, self._pauses)

    @property
    def takes_commands(self) -> bool:
        """True where consoles may send some."""
        return self._service is not None

    def start(self) -> None:
        """Starts the threads. Does not block."""
        if self._service is not None:
            self._service.start()

    def before_joining(self) -> None:
        """Waits for the durable pauses: a partition that has one is to process no message."""
        if self._pauses is not None:
            self._pauses.wait_loaded(PAUSES_WITHIN_S)

    def assigned(self, group: str, topic: str, partition: int) -> None:
        """Pauses a partition that has a durable pause."""
        why = None if self._pauses is None else self._pauses.find(group, topic, partition)
        if why is not None:
            self._runner.pause(topic, partition, why, group)

    def reasons(self) -> Iterator[str]:
        """Gives which threads have ended that follow topics of the console."""
        if self._pauses is not None and self._pauses.has_ended:
            yield "durable pauses are followed no longer: the thread awoke-console-pauses has ended; see the log"
        if self._service is not None and self._service.has_ended:
            yield "no commands of a console are taken: the thread awoke-console-commands has ended; see the log"

    def wait_open(self, timeout_s: float) -> bool:
        """Waits until the commands of consoles are read; returns whether they are. Blocks."""
        return self._service is not None and self._service.is_open.wait(timeout_s)

    def stop(self, timeout_s: float) -> None:
        """Answers the commands under way, and ends the threads. Blocks as `CommandService.close`."""
        if self._service is not None:
            self._service.close(timeout_s)

    def record(self, audit: Audit) -> None:
        """Sends the record of a command, where the app has a console. Does not block."""
        if self._reporter is not None:
            own = {"app": self._app, "node": audit.node or self._reporter.node}
            self._reporter.record(msgspec.structs.replace(audit, **own))

    def _apply_pause(self, group: str | None, topic: str, partition: int, why: str | None) -> None:
        if why is None:
            self._runner.resume(topic, partition, group)
        else:
            self._runner.pause(topic, partition, why, group)


def commands_of(runner: AppRunner) -> ProcessCommands:
    """Returns the commands of a process, which each app has."""
    commands = runner.extension(ProcessCommands)
    assert commands is not None
    return commands
