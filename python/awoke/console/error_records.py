"""Makes an error record of each failure of user code, without its message, and keeps a bounded number to be sent."""

from __future__ import annotations

import collections
import hashlib
import itertools
import traceback

from awoke.console.views import MAJOR, MINOR, ErrorRecord
from awoke.observe.events import BackgroundFailed, Event, HookFailed, JobFailed, LaneFailed
from awoke.text.printable import text_of
from awoke.waiting.clock import wall_ms

FAILURES: tuple[type[Event], ...] = (JobFailed, HookFailed, LaneFailed, BackgroundFailed)
"""The events that are failures of user code."""
PENDING_MAX = 1_000
"""The most records that wait to be sent."""
FRAMES = 3
"""The innermost frames that a fingerprint is made of."""
FRAMES_MAX = 30
"""The innermost frames that a traceback shows."""
TEXT_MAX = 1_000
TRACEBACK_MAX = 8_000


class PendingErrors:
    """The error records that were not sent yet. Nothing here blocks. Any thread."""

    def __init__(self, app: str, node: str) -> None:
        self._app, self._node = app, node
        self._pending: collections.deque[ErrorRecord] = collections.deque()
        self._failures, self._dropped = itertools.count(), itertools.count()
        self.failures = self.dropped = 0
        """The number of failures, and of those without a record."""

    def add(self, event: Event) -> None:
        """Makes a record of a failure; none while too many wait. Keeps neither the exception nor its frames."""
        self.failures = next(self._failures) + 1
        if len(self._pending) < PENDING_MAX:
            self._pending.append(record_of(event, self._app, self._node))
        else:
            self.dropped = next(self._dropped) + 1

    def take(self) -> list[ErrorRecord]:
        """Takes the records that wait, the oldest first."""
        return [self._pending.popleft() for _ in range(len(self._pending))]


def record_of(event: Event, app: str, node: str) -> ErrorRecord:
    """Returns the record of a failure."""
    fields = event.fields
    error: BaseException = fields["error"]
    text = "".join(traceback.format_exception(error, limit=-FRAMES_MAX))
    return ErrorRecord(
        major=MAJOR,
        minor=MINOR,
        at_ms=wall_ms(),
        node=node,
        app=app,
        event=event.name,
        fingerprint=fingerprint(error),
        error_type=name_of(error),
        error_text=sendable(text_of(error))[:TEXT_MAX],
        traceback=sendable(text)[-TRACEBACK_MAX:],
        **{name: fields.get(name) for name in PLACE},
    )


PLACE = ("handler", "topic", "partition", "offset", "key_hash", "attempt", "retry_in_s")
"""The fields of events that a record has, too."""


def fingerprint(error: BaseException) -> str:
    """Returns the same text for errors of one class that the same functions have raised."""
    frames = collections.deque(traceback.walk_tb(error.__traceback__), FRAMES)
    places = [f"{frame.f_globals.get('__name__')}:{frame.f_code.co_name}" for frame, _ in frames]
    return hashlib.blake2b("\n".join([name_of(error), *places]).encode(errors="replace"), digest_size=8).hexdigest()


def name_of(error: BaseException) -> str:
    """Returns the class of an error with its module."""
    return f"{type(error).__module__}.{type(error).__qualname__}"


def sendable(text: str) -> str:
    """Returns text that UTF-8 can hold: lone surrogates are replaced."""
    return text.encode(errors="replace").decode()
