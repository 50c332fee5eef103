"""Takes the commands of consoles in one process: a service of awoke's own RPC that each process reads as a whole.

All processes of an app read the topic of calls without a group. A call names its process; the others leave it without
a reply.

The thread:
1. create the topics that do not exist;
2. follow the durable pauses; then answer calls;
3. after an error begin anew, with a back-off;
4. end at `close`.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from typing import Any

import msgspec

from awoke import _native
from awoke._native import Signal
from awoke.admin import Admin
from awoke.console.topics import ConsoleTopics, ensure, service_of
from awoke.declare.lifecycle import BetweenJobs
from awoke.errors import AwokeError
from awoke.observe.contexts import JobContexts
from awoke.observe.events import ClientError, Event, Events, EventSource
from awoke.operate.commands.actions import Actions
from awoke.operate.commands.pauses import DurablePauses
from awoke.operate.commands.verbs import allowed
from awoke.operate.commands.views import DONE, CommandResult, OperatorCommand
from awoke.payloads.registry.schemas import Schemas
from awoke.rpc.context import ForAnother, current_call
from awoke.rpc.errors import error_of
from awoke.rpc.protocol import ServiceTopics
from awoke.rpc.responder.methods import Rpc
from awoke.rpc.responder.responder import Responder
from awoke.rpc.topics import RETENTION
from awoke.settings import Settings, client_properties
from awoke.waiting.backoff import Backoff
from awoke.waiting.clock import monotonic_s

logger = logging.getLogger(__name__)

START_TIMEOUT_S = 5.0
THREADS = 2
"""The commands that one process executes at once."""
AGAIN = Backoff(1.0, 60.0)
METHOD = "command"


class OneWarning(Events):
    """Logs the first error of the service's own clients. Its other events are dropped."""

    def __init__(self) -> None:
        super().__init__()
        self._has_warned = False

    def emit(self, event: Event | str, /, **fields: Any) -> None:
        """Does not block."""
        if isinstance(event, ClientError):
            level = logging.DEBUG if self._has_warned else logging.WARNING
            self._has_warned = True
            logger.log(level, "the console's commands may not reach this process: %s", event)


class CommandHost:
    """The process, as the responder of commands sees it."""

    transactions = tracer = metrics = call_log = None

    def __init__(self, settings: Settings) -> None:
        self.settings, self.app = settings, self
        self.schemas, self.cleanups = Schemas.none(), BetweenJobs()
        self.member: _native.GroupMember | None = None
        self.contexts = JobContexts()

    def stop_app(self, error: BaseException) -> None:
        """Does nothing: a failed command does not end the app."""


class CommandService:
    """Takes commands until `close`. Any thread."""

    def __init__(self, app: str, node: str, settings: Settings, actions: Actions, pauses: DurablePauses | None) -> None:
        self._service, self._topics, self._node = service_of(app), ConsoleTopics.of(app), node
        kafka = {name: value for name, value in settings.kafka.items() if not name.startswith("transactional.")}
        self._settings = msgspec.structs.replace(
            settings, kafka=kafka, fetch_memory_mb=1, startup_timeout_s=START_TIMEOUT_S, commit_interval_s=5.0
        )
        self._allowed, self._actions, self._pauses = allowed(settings), actions, pauses
        self._closing, self.is_open = Signal(), Signal()
        self._admin: Admin | None = None
        self._lock = threading.Lock()
        """Guards `_admin` and the beginning of the end."""
        self._thread = threading.Thread(target=self._run, name="awoke-console-commands", daemon=True)

    def start(self) -> None:
        """Starts the thread. Does not block."""
        self._thread.start()

    @property
    def has_ended(self) -> bool:
        """True if the thread was started and is not alive, though this was not closed."""
        return self._thread.ident is not None and not self._thread.is_alive() and not self._closing.is_set()

    def close(self, timeout_s: float) -> None:
        """Answers the commands under way, and ends the threads. Blocks up to `timeout_s`, and for a lookup under way.

        Closing again, or without a start, does nothing.
        """
        with self._lock:
            self._closing.set()
            admin = self._admin
        if admin is not None:
            admin.close()  # It ends a wait for brokers.
        if self._pauses is not None:
            self._pauses.close()
        if self._thread.ident is not None:
            self._thread.join(timeout_s + START_TIMEOUT_S)

    def _run(self) -> None:
        attempt, has_pauses = 0, False
        while not self._closing.is_set():
            attempt += 1
            try:
                self._prepare()
                if not has_pauses and self._pauses is not None:
                    has_pauses = True
                    self._pauses.start()
                self._serve()
            except AwokeError as error:
                if self._closing.is_set():
                    return
                level = logging.WARNING if attempt == 1 else logging.DEBUG
                logger.log(level, "this process takes no commands of a console: %s", error)
                self._closing.wait(AGAIN.delay_s(attempt))
            except Exception:  # A fault of awoke's own: the process is to take commands again.
                logger.exception("this process takes no commands of a console")
                self._closing.wait(AGAIN.delay_s(attempt))

    def _prepare(self) -> None:
        """Creates the topics that do not exist. Blocks up to 5 s for each."""
        with self._lock:
            if self._closing.is_set():
                return
            self._admin = Admin(settings=self._settings)
        try:
            calls = dict.fromkeys(ServiceTopics.of(self._service), RETENTION)
            ensure(self._admin, {**calls, **self._topics.command_configs}, START_TIMEOUT_S)
        finally:
            self._admin.close()

    def _serve(self) -> None:
        if self._closing.is_set():
            return
        host, events = CommandHost(self._settings), OneWarning()
        with contextlib.closing(EventSource(events)) as source:
            responder = Responder(host, self._methods(), events, source.box)
            responder.start()
            try:
                host.member = _native.GroupMember(
                    client_properties(self._settings, **{"group.id": f"{self._service}.commands"}),
                    [responder.route],
                    self._settings.for_engine(1),
                    None,
                    source.box,
                )
                self.is_open.set()
                self._closing.wait()
            finally:
                if host.member is not None:
                    host.member.close(1.0)
                responder.close(monotonic_s() + 1.0)

    def _methods(self) -> Rpc:
        rpc = Rpc(self._service)
        # From the first message, where nothing is committed: a call may come before the end is looked up.
        rpc.reads_partitions = [0]
        secret = self._settings.console_secret
        rpc.options(threads=THREADS, secret=None if secret is None else secret.encode())
        rpc.method(name=METHOD)(self.command)
        return rpc

    def command(self, node: str, verb: str, arguments: dict[str, Any], who: str, reason: str) -> CommandResult:
        """Executes a command that is for this process."""
        if node != self._node:
            raise ForAnother
        via = current_call().caller
        command = OperatorCommand(verb=verb, arguments=arguments, who=who, via=via, reason=reason)
        result = self._actions.execute(command, self._allowed)
        if result.result != DONE:
            raise error_of(result.result, result.text, is_retryable=False)
        return result
