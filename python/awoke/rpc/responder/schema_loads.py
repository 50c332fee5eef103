"""Loads the schemas that a call needs before its method is executed, and tells its caller if that is not possible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from awoke._native import IncomingCall
from awoke.errors import ClosedError, RpcError
from awoke.observe.events import Events, RegistryWaited
from awoke.payloads.formats.encryption import KeysUnavailable
from awoke.payloads.registry.away import RegistryAway
from awoke.payloads.registry.errors import RegistryError, RegistryUnauthorized, RegistryUnavailable, SchemaNotFound
from awoke.payloads.registry.schemas import LOADS_MAX, SchemaNeeded, Schemas
from awoke.rpc.errors import DeadlineExceeded, Unavailable
from awoke.waiting.backoff import Backoff
from awoke.waiting.drive import elsewhere

BACKOFF = Backoff(0.1, 2.0)
"""The delays while the registry can't be asked: callers wait."""


class NotExecuted(Exception):
    """The method of a call was not executed, and its caller may call again."""

    def __init__(self, error: RpcError) -> None:
        super().__init__(str(error))
        self.error = error


class SchemaLoads:
    """The schemas of one responder's calls. Any thread, and the event loop.

    While the registry can't be asked, calls that need a new schema are refused at once: they must not hold the threads
    that execute the others.
    """

    def __init__(self, schemas: Schemas, events: Events) -> None:
        self._events = events
        self._away = RegistryAway(lambda: schemas.loads, BACKOFF)

    async def run(self, call: IncomingCall, function: Callable[..., Any], *arguments: Any) -> Any:
        """Returns the result of a function that may raise SchemaNeeded. A flow.

        Raises:
            Unavailable: The registry can't be asked. DeadlineExceeded: The call has expired meanwhile.
        """
        for _ in range(LOADS_MAX):
            try:
                return function(*arguments)
            except SchemaNeeded as needed:
                missing = needed
            await self._load(call, missing)
        return function(*arguments)

    async def run_before(self, call: IncomingCall, function: Callable[..., Any], *arguments: Any) -> Any:
        """As `run`, before the method is executed.

        Raises:
            NotExecuted: The registry can't be asked.
        """
        try:
            return await self.run(call, function, *arguments)
        except Unavailable as error:
            unavailable = error
        raise NotExecuted(unavailable)

    async def _load(self, call: IncomingCall, needed: SchemaNeeded) -> None:
        left_s = self._away.left_s()
        if left_s > 0:
            raise self._unavailable(call, left_s)
        try:
            await elsewhere(needed.load)
        except SchemaNotFound:
            pass  # The decoder says so at the next try.
        except RegistryError as error:
            # What a caller chose, as the id of a key, must not refuse the calls of others.
            is_away = isinstance(error, RegistryUnavailable | RegistryUnauthorized)
            left_s = self._away.delay_s() if is_away and not isinstance(error, KeysUnavailable) else 0.0
            self._report(call, left_s, error)
            raise self._unavailable(call, left_s) from None
        except ClosedError:
            raise Unavailable("the responder has stopped") from None
        if call.is_cancelled:
            raise DeadlineExceeded(f"{call.method} took too long")

    def _unavailable(self, call: IncomingCall, retry_after_s: float) -> Unavailable:
        text = f"{call.method}: the responder can't ask the schema registry now; its log says more"
        return Unavailable(text, retry_after_s=retry_after_s)

    def _report(self, call: IncomingCall, retry_in_s: float, error: RegistryError) -> None:
        topic, partition, offset = call.place
        self._events.emit(
            RegistryWaited(
                handler=call.method,
                topic=topic,
                partition=partition,
                offset=offset,
                retry_in_s=round(retry_in_s, 3),
                error=error,
            )
        )
