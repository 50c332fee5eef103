"""Events of remote calls, as a responder sees them."""

from __future__ import annotations

import logging
from typing import ClassVar

from awoke.observe.events.event import Counter, Event

__all__ = [
    "RpcFailed",
    "RpcRefused",
    "RpcReplyRefused",
]

REFUSED = Counter(
    "awoke_rpc_refused_total",
    "Records that were not answered: forged, replayed, too_large, undecodable, with a reply_topic that is not allowed "
    "or a reply_partition that does not exist; and calls whose reply_refused the brokers.",
    {"reason": "reason"},
)


class RpcFailed(Event, frozen=True, kw_only=True):
    """A method has raised an error that it does not declare."""

    name: ClassVar[str] = "rpc.failed"
    usual_level: ClassVar[int] = logging.ERROR
    advice: ClassVar[str] = "correct the method"
    is_of_user_code: ClassVar[bool] = True
    counter: ClassVar[Counter | None] = Counter(
        "awoke_rpc_failures_total", "Exceptions of methods that are no declared error.", {"method": "method"}
    )
    method: str
    caller: str
    error: BaseException


class RpcReplyRefused(Event, frozen=True, kw_only=True):
    """The brokers refuse a reply for good, or it is too large to be sent; the call is not executed again."""

    name: ClassVar[str] = "rpc.reply_refused"
    usual_level: ClassVar[int] = logging.WARNING
    advice: ClassVar[str] = "see `text`"
    counter: ClassVar[Counter | None] = REFUSED
    reason: ClassVar[str] = "reply_refused"
    client: str = ""
    topic: str
    partition: int
    offset: int
    code: int
    code_name: str
    text: str


class RpcRefused(Event, frozen=True, kw_only=True):
    """A record of the calls topic was refused: forged, replayed, too large, undecodable."""

    name: ClassVar[str] = "rpc.refused"
    usual_level: ClassVar[int] = logging.WARNING
    advice: ClassVar[str] = "see `reason`, and who may write to the topic"
    counter: ClassVar[Counter | None] = REFUSED
    reason: str
    partition: int
    offset: int
