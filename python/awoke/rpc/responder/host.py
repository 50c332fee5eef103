"""The parts of a process that its responder uses."""

from __future__ import annotations

import contextlib
from typing import Any, Protocol

from awoke import _native
from awoke._native import Message
from awoke.declare.lifecycle import BetweenJobs
from awoke.observe.contexts import JobContexts
from awoke.payloads.registry.schemas import Schemas
from awoke.produce.transaction import OpenEntry
from awoke.rpc.responder.call_log import CallLog
from awoke.settings import Settings


class CallTransactions(Protocol):
    """Makes transaction entries."""

    def entry(self) -> OpenEntry: ...


class CallTracer(Protocol):
    """Makes spans."""

    def message(self, message: Message[Any], handler: str) -> contextlib.AbstractContextManager[None]: ...


class CallMetrics(Protocol):
    """Counts."""

    def call_ended(self, method: str, outcome: str, queue_s: float, run_s: float) -> None: ...
    def reply_acknowledged(self, method: str, reply_s: float) -> None: ...


class ServingApp(Protocol):
    """An app, which has the schemas of a registry, and functions that are called between jobs."""

    @property
    def schemas(self) -> Schemas: ...
    @property
    def cleanups(self) -> BetweenJobs: ...


class ResponderHost(Protocol):
    """The process of a responder."""

    @property
    def app(self) -> ServingApp: ...
    @property
    def settings(self) -> Settings: ...
    @property
    def contexts(self) -> JobContexts: ...
    @property
    def member(self) -> _native.GroupMember | None: ...
    @property
    def transactions(self) -> CallTransactions | None: ...
    @property
    def tracer(self) -> CallTracer | None: ...
    @property
    def metrics(self) -> CallMetrics | None: ...
    @property
    def call_log(self) -> CallLog | None:
        """Where calls are noted for a console; None where none looks."""

    def stop_app(self, error: BaseException) -> None: ...
