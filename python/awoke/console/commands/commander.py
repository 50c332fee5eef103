"""Sends commands to the processes of an app, blocking or awaited."""

from __future__ import annotations

import asyncio
import threading
from types import TracebackType
from typing import Any, Self

from awoke.console.commands.service import METHOD
from awoke.console.topics import service_of
from awoke.errors import ConfigError
from awoke.operate.commands.verbs import Value, checked, checked_text
from awoke.operate.commands.views import CommandResult
from awoke.rpc.caller.attempts import Retries
from awoke.rpc.caller.caller import Caller
from awoke.rpc.errors import InvalidArgument
from awoke.settings import Settings

TIMEOUT_S = 10.0


class Commander:
    """Sends commands to the processes of one app. Any thread; leaving it as a context manager closes it.

    It connects at the first command. `name` is the name of this console in the audit topic. `secret` signs the
    commands; None takes the one in the settings (`console_secret`), which is to be the app's.
    """

    def __init__(
        self,
        app: str,
        *,
        settings: Settings,
        name: str = "awoke",
        secret: bytes | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        if secret is None and settings.console_secret is not None:
            secret = settings.console_secret.encode()
        self._app, self._settings, self._name, self._secret, self._timeout_s = app, settings, name, secret, timeout_s
        self._lock = threading.Lock()
        self._caller: Caller | None = None

    def send(
        self,
        node: str,
        verb: str,
        *,
        who: str,
        reason: str,
        timeout_s: float | None = None,
        **arguments: Value,
    ) -> CommandResult:
        """Sends a command to a process, named as in its report, and waits for the answer. Blocks.

        Raises:
            RpcError: `InvalidArgument`, `PermissionDenied`, `FailedPrecondition`, `NotFound`; `DeadlineExceeded`: the
                process is not there, or has not answered; a command that was sent may still be executed.
            UnknownTopic: The app takes no commands. BrokerUnreachable.
        """
        given = request_of(node, verb, arguments, who, reason)
        answer: CommandResult = self._open().call(METHOD, timeout_s=timeout_s, returns=CommandResult, **given)
        return answer

    async def asend(
        self,
        node: str,
        verb: str,
        *,
        who: str,
        reason: str,
        timeout_s: float | None = None,
        **arguments: Value,
    ) -> CommandResult:
        """As `send`, awaited on the running loop."""
        given = request_of(node, verb, arguments, who, reason)
        caller = await asyncio.to_thread(self._open)
        answer: CommandResult = await caller.acall(METHOD, timeout_s=timeout_s, returns=CommandResult, **given)
        return answer

    def _open(self) -> Caller:
        with self._lock:
            if self._caller is None:
                self._caller = Caller(
                    service_of(self._app),
                    settings=self._settings,
                    name=self._name,
                    secret=self._secret,
                    timeout_s=self._timeout_s,
                    checks_group=False,
                    retries=Retries(attempts=1),
                )
            return self._caller

    def close(self, timeout_s: float = 5.0) -> None:
        """Ends the calls under way. Blocks. Closing again does nothing; the next command connects anew."""
        with self._lock:
            caller, self._caller = self._caller, None
        if caller is not None:
            caller.close(timeout_s)

    async def aclose(self, timeout_s: float = 5.0) -> None:
        """As `close`, on another thread, so that the running loop goes on."""
        await asyncio.to_thread(self.close, timeout_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def request_of(node: str, verb: str, arguments: dict[str, Any], who: str, reason: str) -> dict[str, Any]:
    """Returns the arguments of the call for a command.

    Raises:
        InvalidArgument: The command or an argument is wrong: it is not sent.
    """
    try:
        given = checked(verb, arguments)
        who, reason = checked_text("who", who), checked_text("reason", reason)
    except ConfigError as error:
        raise InvalidArgument(str(error)) from None
    return {"node": node, "verb": verb, "arguments": given, "who": who, "reason": reason}
