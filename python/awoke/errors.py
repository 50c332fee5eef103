"""Everything that awoke raises, in one tree.

AwokeError
├── ConfigError            a setting that is unknown, wrong, or belongs to awoke
│   └── AppNotFound        `awoke run module:app` found no app there
├── KafkaError             an answer of a broker or of librdkafka
│   ├── BrokerUnreachable  no broker answered
│   ├── UnknownTopic       the topic does not exist
│   ├── UnknownGroup       the consumer group does not exist
│   ├── GroupNotEmpty      the consumer group has members
│   ├── AuthenticationFailed  the brokers refuse the login
│   ├── AuthorizationFailed  the brokers do not allow it
│   ├── TlsFailed          TLS with the brokers failed
│   ├── DeliveryFailed     a message was refused
│   ├── TransactionAborted  nothing of a transaction will be seen
│   ├── TransactionInDoubt  the broker did not say whether it was committed
│   ├── ProducerFenced     another producer has the transactional id
│   └── FetchFailed        a partition can't be read
├── OperationTimeout       no answer in time; the operation may still take effect
│   └── DeliveryTimeout    no answer for a message in time; it may still arrive
├── QueueFull              the producer's queue had no room in time
├── MessageTooLarge        a message larger than message.max.bytes
├── EncodeError            a value that can't be turned into bytes
├── DecodeError            a value that can't be read as its route's type
│   └── NoHandler          a message that none of a topic's handlers takes
├── StateError             a table is used where it has no rows, or one that another job may change
├── HandlerDidNotRun       a handler's call returned a coroutine or a generator, whose body has not run
├── ClosedError            use of something that was closed
├── ForkedClientError      use of a client in another process than its own
├── FencedError            a result for a partition that was taken away meanwhile
├── RetriesExhausted       a message failed as often as its route allows
├── ProcessDied            a message killed its process as often as its route allows
├── BackgroundFailed       a background function failed, and with it its owner
├── SequencerBroken        what a sequencer appends to has failed
├── RpcError               a remote call failed; `awoke.rpc.errors` has a class for each code
└── SystemFailure          the operating system refused something
"""

from __future__ import annotations

import os
import threading
from functools import cache
from typing import TYPE_CHECKING

from awoke.text.printable import harmless
from awoke.text.secrets import without_userinfo

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    Failed = TypeVar("Failed", bound="KafkaError")

UNREACHABLE_CODES = frozenset({-195, -187, -185, -137})
AUTHENTICATION_CODES = frozenset({-169, 33, 34, 58})
"""librdkafka's own, and the protocol's: the mechanism, the order of the requests, the login."""
TLS_CODE = -181
UNKNOWN_TOPIC_CODES = frozenset({3, -188})
GROUP_NOT_EMPTY_CODE = 68
UNKNOWN_GROUP_CODE = 69
UNCONFIRMED_CODE = 46
"""A record was reported as delivered without an offset: it may be missing."""
TOO_LARGE_CODE = 10
TOO_LARGE_CODES = frozenset({TOO_LARGE_CODE, 18})
"""A record, or the batch that it is in, is larger than its topic allows."""


@cache
def permanent_codes() -> frozenset[int]:
    """Returns the codes with which a record is refused now and later. The first call loads the engine."""
    from awoke import _native

    return _native.permanent_codes()


@cache
def denied_codes() -> frozenset[int]:
    """Returns the codes for what the brokers do not allow. The first call loads the engine."""
    from awoke import _native

    return _native.denied_codes()


class AwokeError(Exception):
    """The base of everything that awoke raises. Its text names no user and no password of an address.

    Below it a traceback shows the command that prints its page of the documentation.
    """

    def __init__(self, *arguments: object) -> None:
        super().__init__(*(without_userinfo(each) if isinstance(each, str) else each for each in arguments))
        if (command := page_command(type(self))) is not None:
            self.add_note(f"What to do: {command}")


class ConfigError(AwokeError):
    """A setting that is unknown, wrong, or belongs to awoke."""

    def __init__(self, text: str, name: str = "") -> None:
        super().__init__(text)
        self.property = name
        """The setting, as its owner spells it."""


class AppNotFound(ConfigError):
    """`awoke run module:app` found no app there."""


class KafkaError(AwokeError):
    """An answer of a broker or of librdkafka."""

    def __init__(self, text: str, code: int = 0, code_name: str = "", is_retriable: bool = False) -> None:
        super().__init__(text)
        self.code = code
        """librdkafka's code: negative for its own, positive for the protocol's."""
        self.code_name = code_name
        """The code's name: `_TRANSPORT`, `UNKNOWN_TOPIC_OR_PART`."""
        self.is_retriable = is_retriable
        """True if the same call may succeed a moment later."""


class BrokerUnreachable(KafkaError):
    """No broker answered."""


class UnknownTopic(KafkaError):
    """The topic does not exist."""


class UnknownGroup(KafkaError):
    """The consumer group does not exist."""


class GroupNotEmpty(KafkaError):
    """The consumer group has members, which must stop first."""


class AuthenticationFailed(KafkaError):
    """The brokers refuse the login: a wrong user, password, token or mechanism; or there is no token."""


class TlsFailed(KafkaError):
    """TLS with the brokers failed: a certificate that is not accepted, or a side that does not speak TLS."""


class AuthorizationFailed(KafkaError):
    """The brokers do not allow it: an ACL is missing, or denies it."""


class DeliveryFailed(KafkaError):
    """A message was refused.

    `__cause__` is an AuthenticationFailed, an AuthorizationFailed or a TlsFailed where that is why.
    """


class TransactionAborted(KafkaError):
    """A transaction could not be committed: nothing of it will be seen. `__cause__` is as that of DeliveryFailed."""


class TransactionInDoubt(KafkaError):
    """The broker did not say whether a transaction was committed: look for its messages before sending them again."""


class ProducerFenced(KafkaError):
    """Another producer has taken the transactional id: this one cannot continue, and its transaction is aborted."""


class FetchFailed(KafkaError):
    """A partition can't be read."""


class OperationTimeout(AwokeError):
    """No answer in time; the operation may still take effect."""

    def __init__(self, text: str, operation: str = "", waited_s: float = 0.0) -> None:
        super().__init__(text)
        self.operation = operation
        """The operation, with its object."""
        self.waited_s = waited_s
        """The time that the caller waited, in seconds."""


class DeliveryTimeout(OperationTimeout):
    """No answer for a message in time; it may still arrive."""


class QueueFull(AwokeError):
    """The producer's queue had no room in time."""

    def __init__(self, text: str, waited_s: float = 0.0) -> None:
        super().__init__(text)
        self.waited_s = waited_s
        """The time that the caller waited, in seconds."""


class MessageTooLarge(AwokeError):
    """A message larger than message.max.bytes; it was not sent."""

    def __init__(self, text: str, topic: str = "", size_bytes: int = 0) -> None:
        super().__init__(text)
        self.topic = topic
        self.size_bytes = size_bytes


class EncodeError(AwokeError):
    """A value that can't be turned into bytes; nothing was sent."""


class DecodeError(AwokeError):
    """A value that can't be read as its route's type."""

    def __init__(self, text: str, topic: str = "", partition: int = -1, offset: int = -1) -> None:
        super().__init__(harmless(text))  # It quotes names and values of the message.
        self.topic = topic
        self.partition = partition
        self.offset = offset


class StateError(AwokeError):
    """A table is used where it has no rows, or for a row that another job may change; nothing was written."""


class NoHandler(DecodeError):
    """A message that none of the handlers of its topic takes, where there is no default."""


class HandlerDidNotRun(AwokeError):
    """A handler's call returned a coroutine, another awaitable or a generator: its body has not run."""


class ClosedError(AwokeError):
    """Use of something that was closed."""


class ForkedClientError(AwokeError):
    """Use of a client in another process than its own."""

    def __init__(self, text: str, pid: int = 0) -> None:
        super().__init__(text)
        self.pid = pid
        """The process that made the client."""


class FencedError(AwokeError):
    """A result for a partition that was taken away meanwhile; it changed no offset."""

    def __init__(self, text: str, topic: str = "", partition: int = -1) -> None:
        super().__init__(text)
        self.topic = topic
        self.partition = partition


class RetriesExhausted(AwokeError):
    """A message failed as often as its route allows."""


class ProcessDied(AwokeError):
    """A message killed its process as often as its route allows; stands in its dead letter."""


class BackgroundFailed(AwokeError):
    """A background function failed, and with it its owner; the cause is what it raised."""


class SequencerBroken(AwokeError):
    """The sink of a sequencer has failed. How far its last run came is unknown, so it appends nothing more."""


class RpcError(AwokeError):
    """A remote call failed; `awoke.rpc.errors` has a class for each code."""

    code: str = "unknown"
    """The kind of the error: one of the codes that both sides know."""
    is_retryable: bool = False
    """True if the same call may succeed a moment later."""
    is_rejected: bool = False
    """True if the responder refused to begin the call: its method was not executed."""
    http_status: int = 500
    """The HTTP status of the code: see `awoke.rpc.http_status`."""

    def __init__(
        self,
        message: str = "",
        *,
        details: Any = None,
        is_retryable: bool | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        """For people."""
        self.details = details
        """More, for programs: anything that can be written as JSON."""
        self.retry_after_s = retry_after_s
        """When to try again, where the responder says so."""
        self.remote_traceback: str | None = None
        """Where the responder failed, if it tells."""
        if is_retryable is not None:
            self.is_retryable = is_retryable


class SystemFailure(AwokeError):
    """The operating system refused something."""


WITH_PAGES = frozenset(
    {"awoke.errors", "awoke.payloads.registry.errors", "awoke.payloads.registry.schemas", "awoke.rpc.errors"}
)
"""The modules whose errors have a page each in the documentation."""


def page_command(kind: type[BaseException]) -> str | None:
    """Returns the command that prints the page of an error; `None` for one of users, or if its page says little."""
    if kind.__module__.partition(".")[0] != "awoke":
        return None
    name = next((each.__name__ for each in kind.__mro__ if each.__module__ in WITH_PAGES), None)
    return None if name in (None, "AwokeError", "ConfigError") else f"awoke docs errors/{name}"


def is_refused_for_good(error: BaseException) -> bool:
    """Tells whether the same record would be refused again, however often it is sent."""
    return isinstance(error, MessageTooLarge) or (isinstance(error, KafkaError) and error.code in permanent_codes())


def is_too_large(error: BaseException) -> bool:
    """Tells whether a record was refused for its size, by its producer or by a broker."""
    return isinstance(error, MessageTooLarge) or (isinstance(error, KafkaError) and error.code in TOO_LARGE_CODES)


def kafka_error(text: str, code: int, code_name: str, is_retriable: bool) -> KafkaError:
    """Returns an error of the most exact class for this code."""
    if code in UNREACHABLE_CODES:
        return BrokerUnreachable(text, code, code_name, is_retriable)
    if code in UNKNOWN_TOPIC_CODES:
        return UnknownTopic(text, code, code_name, is_retriable)
    if code == UNKNOWN_GROUP_CODE:
        return UnknownGroup(text, code, code_name, is_retriable)
    if code == GROUP_NOT_EMPTY_CODE:
        return GroupNotEmpty(text, code, code_name, is_retriable)
    return (_refusal(code) or KafkaError)(text, code, code_name, is_retriable)


def delivery_failed(text: str, code: int, code_name: str, is_retriable: bool) -> DeliveryFailed:
    """Returns the error of a message that was refused, with its cause."""
    return _with_cause(DeliveryFailed(text, code, code_name, is_retriable))


def transaction_aborted(text: str, code: int, code_name: str, is_retriable: bool) -> TransactionAborted:
    """Returns the error of a transaction that was aborted, with its cause."""
    return _with_cause(TransactionAborted(text, code, code_name, is_retriable))


def _with_cause(failed: Failed) -> Failed:
    kind = _refusal(failed.code)
    failed.__cause__ = None if kind is None else kind(str(failed), failed.code, failed.code_name, failed.is_retriable)
    return failed


def _refusal(code: int) -> type[KafkaError] | None:
    """Returns the class for a client that is not let in, or not allowed."""
    if code in AUTHENTICATION_CODES:
        return AuthenticationFailed
    if code == TLS_CODE:
        return TlsFailed
    return AuthorizationFailed if code in denied_codes() else None


# What user code raises: see `awoke.waiting.raised`.

ENDS = (SystemExit, KeyboardInterrupt)

_lock = threading.Lock()
_apps: list[Callable[[BaseException], object]] = []
"""Ask the apps that run in this process for their end."""


def end_in(error: BaseException) -> BaseException | None:
    """Returns the error that asks for the end of the app: this one, or one of its group; None if it is a failure."""
    errors = [error]
    while errors:
        found = errors.pop()
        if isinstance(found, ENDS):
            return found
        if isinstance(found, BaseExceptionGroup):
            errors += found.exceptions
    return None


def hear_ends(stop_app: Callable[[BaseException], object]) -> Callable[[], None]:
    """Has `stop_app` called with each end that `end_apps` is asked for; returns the function that ends this."""
    with _lock:
        _apps.append(stop_app)

    def end() -> None:
        with _lock:
            _apps.remove(stop_app)

    return end


def end_apps(error: BaseException) -> bool:
    """Asks the apps of this process for their end, because of this error; returns whether there are any."""
    with _lock:
        apps = list(_apps)
    for stop_app in apps:
        stop_app(error)
    return bool(apps)


def _forget_apps() -> None:
    """In a forked child the apps of the parent do not run, nor does a thread that held the lock."""
    global _lock
    _lock = threading.Lock()
    _apps.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_apps)
