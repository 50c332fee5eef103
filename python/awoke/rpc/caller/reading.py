"""Reads the parts of a call that the engine returns: its result, one result of a stream, or its error."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from awoke.errors import ClosedError, DecodeError, RpcError
from awoke.payloads.registry.errors import SchemaNotFound
from awoke.payloads.registry.schemas import LOADS_MAX, SchemaNeeded
from awoke.rpc import protocol
from awoke.rpc.caller.forms import CallerForms
from awoke.rpc.caller.plan import Plan
from awoke.rpc.errors import DeadlineExceeded, Internal, NobodyThere, error_of, streaming_error
from awoke.rpc.forms import is_form
from awoke.waiting.drive import elsewhere

Part = tuple[str, bytes | str | None, str | None]
"""The next part of a call, as the engine returns it: a kind, and a body, or a code and a text."""

_decode = msgspec.json.Decoder().decode

UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""No JSON, not the JSON that was expected, no UTF-8, or nested too deeply."""


class Reading:
    """Reads the replies of one service. Any thread."""

    def __init__(self, service: str, kinds: Mapping[str, type[RpcError]], forms: CallerForms) -> None:
        self._service, self._kinds, self._forms = service, kinds, forms

    def named(self, plan: Plan, text: str) -> str:
        """Returns a message about a call, which names its method."""
        return f"{self._service}.{plan.method}: {text}"

    def read(self, plan: Plan, part: Part, returns: Any) -> Any:
        """Returns the only result of a call.

        Raises:
            RpcError: it is an error, or the method returns a stream; DecodeError: it is not what was expected.
            SchemaNeeded: the result needs a schema that is not loaded yet.
        """
        word, body, _ = part
        if word != protocol.REPLY:
            raise self._no_result(plan, part)
        assert isinstance(body, bytes)
        try:
            if returns is Any or returns is None:
                return _decode(body)
            return self._forms.reader(plan.method, returns)(body)
        except UNREADABLE as error:
            raise self._unreadable(plan, returns, error) from error

    def read_item(self, plan: Plan, part: Part, returns: Any) -> Any:
        """Returns one result of a stream; raises as `read`."""
        word, body, detail = part
        return self.read(plan, (protocol.REPLY, body, detail) if word == protocol.ITEM else part, returns)

    async def loaded(self, needed: SchemaNeeded, read: Callable[..., Any], *arguments: Any) -> Any:
        """Loads the schema that `read` or `read_item` needs, and calls it again. A flow.

        Raises:
            RegistryError: the registry does not give the schema. And as `read`.
        """
        for _ in range(LOADS_MAX):
            with contextlib.suppress(SchemaNotFound):  # The reader says so.
                await elsewhere(needed.load)
            try:
                return read(*arguments)
            except SchemaNeeded as another:
                needed = another
        raise needed

    def failure(self, plan: Plan, code: str, text: str) -> Exception:
        """Returns the error of a call that ended without a reply."""
        name = f"{self._service}.{plan.method}"
        if code == "closed":
            return ClosedError(f"{name}: {text}")
        if code == "deadline_exceeded":
            return DeadlineExceeded(f"{name}: no reply within {plan.timeout_s:g} s; it may still be executed")
        if code == NobodyThere.code:
            text += "; if its responders are in another group, say so with group="
        is_retryable = False if code == "resource_exhausted" else None
        return error_of(code, f"{name}: {text}", is_retryable=is_retryable)

    def _no_result(self, plan: Plan, part: Part) -> Exception:
        word, body, detail = part
        if word == "failed":
            return self.failure(plan, str(body), str(detail))
        if word == protocol.ERROR and isinstance(body, bytes):
            return self._error(plan, body)
        return streaming_error(f"{self._service}.{plan.method}")

    def _error(self, plan: Plan, body: bytes) -> RpcError:
        try:
            problem = protocol.read_problem(body)
        except UNREADABLE as error:
            return Internal(f"{self._service}.{plan.method}: its error can't be read: {error}")
        found = error_of(
            problem.code,
            problem.message,
            self._kinds,
            details=problem.details,
            is_retryable=problem.is_retryable,
            retry_after_s=problem.retry_after_s,
        )
        found.is_rejected, found.remote_traceback = problem.is_rejected, problem.traceback
        return found

    def _unreadable(self, plan: Plan, returns: Any, error: Exception) -> DecodeError:
        kind = "JSON" if returns is Any or returns is None else returns
        as_kind = "" if is_form(returns) else f" can't be read as {kind}"  # The text of a format says it.
        return DecodeError(f"the result of {self._service}.{plan.method}{as_kind}: {error}")
