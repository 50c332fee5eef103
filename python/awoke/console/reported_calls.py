"""The remote calls of a process as its report tells of them. Nothing here blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from awoke.console.views import CallAtWork, CallerCounts, Calls, CallTimes, MethodCalls
from awoke.rpc.responder.call_log import MethodTimes, Times
from awoke.waiting.clock import monotonic_s, wall_ms

AT_WORK_MAX = 100
"""The most calls at work of a report; those that began first come in front."""
CALLERS_MAX = 100
NAME_MAX = 200


class ShownCall(Protocol):
    """A call whose method runs."""

    @property
    def method(self) -> str: ...
    @property
    def caller(self) -> str: ...
    @property
    def place(self) -> tuple[str, int, int]: ...
    @property
    def until_s(self) -> float: ...
    @property
    def is_cancelled(self) -> bool: ...


class CallSource(Protocol):
    """The calls that are noted in a process."""

    @property
    def count(self) -> Callable[[], Mapping[str, int]]: ...
    def methods(self) -> Sequence[MethodTimes]: ...
    def at_work(self) -> Sequence[ShownCall]: ...
    def rejections(self) -> Mapping[str, int]: ...


def calls_of(source: CallSource) -> Calls:
    """Returns the calls that a process answers."""
    counts = source.count()
    return Calls(
        methods=[method_of(each) for each in source.methods()],
        at_work=[at_work_of(each) for each in source.at_work()[:AT_WORK_MAX]],
        running=counts.get("running", 0),
        waiting=counts.get("waiting", 0),
        expired=counts.get("expired", 0),
        rejected=dict(source.rejections()),
    )


def method_of(found: MethodTimes) -> MethodCalls:
    """Returns the calls of a method."""
    return MethodCalls(
        method=found.method[:NAME_MAX],
        outcomes=found.outcomes,
        queue_ms=milliseconds(found.queue),
        run_ms=milliseconds(found.run),
        reply_ms=milliseconds(found.reply),
    )


def milliseconds(times: Times) -> CallTimes:
    """Returns times in milliseconds."""
    half, most = (None if each is None else round(each * 1_000, 3) for each in times)
    return CallTimes(p50=half, p95=most)


def at_work_of(call: ShownCall) -> CallAtWork:
    """Returns a call whose method runs."""
    _, partition, offset = call.place
    return CallAtWork(
        method=call.method[:NAME_MAX],
        caller=call.caller[:NAME_MAX],
        partition=partition,
        offset=offset,
        until_ms=wall_ms() + round((call.until_s - monotonic_s()) * 1_000),
        is_cancelled=call.is_cancelled,
    )


def callers_of(counted: Mapping[str, Mapping[str, int]]) -> list[CallerCounts]:
    """Returns the calls that a process makes, by service."""
    rows = sorted(counted.items())[:CALLERS_MAX]
    return [
        CallerCounts(
            service=service,
            open=counts.get("open", 0),
            events={what: count for what, count in counts.items() if what != "open" and count},
        )
        for service, counts in rows
    ]
