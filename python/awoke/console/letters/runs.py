"""Makes replays, tells how far each one is, and cancels them. They are kept in this process alone.

Thread: `awoke-console-replay`, one for each replay under way.

1. It records that the replay begins.
2. It reads the letters, and becomes a member of the group that stores which were sent.
3. It sends one letter after the other, and tells of each.
4. It records the result, and ends.
"""

from __future__ import annotations

import concurrent.futures
import logging
import secrets
import threading
from collections.abc import Callable
from typing import Protocol

import msgspec

from awoke.console.letters.views import ReplayResult, ReplayRun
from awoke.console.observable import Observable
from awoke.errors import AwokeError, ClosedError
from awoke.operate.dead_letters.replays import ReplayCancelled
from awoke.waiting.clock import wall_ms

RUNS_MAX = 4
"""The most replays at once."""
KEPT_MAX = 20
"""The last replays that are kept after their end."""
ENDED_WITHIN_S = 10.0
"""The longest wait for a replay at the end of the console."""

log = logging.getLogger(__name__)


class Replaying(Protocol):
    """A replay of the letters of one topic: `awoke.console.letters.replaying.Replay`."""

    def __enter__(self) -> Replaying: ...
    def __exit__(self, *_: object) -> None: ...
    def run(self, digest: str, tell: Callable[[int, int], None] | None = None) -> ReplayResult: ...
    def cancel(self) -> None: ...


Record = Callable[[Callable[[], str]], str]
"""Makes an act between two records of the audit, and returns its text."""


class Run:
    """A replay on a thread of its own. Any thread."""

    def __init__(self, view: ReplayRun, replay: Replaying, tell: Callable[[], None]) -> None:
        self._lock = threading.Lock()
        self._view = view  # Guarded by the lock; replaced, never changed.
        self._replay, self._tell = replay, tell
        self.ended = concurrent.futures.Future[None]()
        self.ended.set_running_or_notify_cancel()  # No waiting request can cancel it.
        self._thread: threading.Thread | None = None

    @property
    def view(self) -> ReplayRun:
        """The state of now."""
        with self._lock:
            return self._view

    def start(self, digest: str, record: Record) -> None:
        """Starts the thread."""
        self._thread = threading.Thread(
            target=self._make, args=(digest, record), name="awoke-console-replay", daemon=True
        )
        self._thread.start()

    def cancel(self) -> bool:
        """Ends the replay after the letter that is being sent; returns False if it has ended. Does not block."""
        with self._lock:
            if self._view.is_over:
                return False
            self._view = msgspec.structs.replace(self._view, state="stopping")
        self._replay.cancel()
        self._tell()
        return True

    def wait(self, timeout_s: float) -> bool:
        """Waits for the end of the replay; returns False if it does not come in time."""
        return bool(concurrent.futures.wait([self.ended], timeout_s).done)

    def join(self, timeout_s: float) -> None:
        """Waits for the end of the thread."""
        if self._thread is not None:
            self._thread.join(timeout_s)

    def _make(self, digest: str, record: Record) -> None:
        try:
            text, state = record(lambda: self._send(digest)), "done"
        except ReplayCancelled as error:
            text, state = str(error), "cancelled"
        except AwokeError as error:
            text, state = f"nothing was sent, or not all: {error}", "failed"
        except Exception:  # A bug: its operator is not to see a replay that never ends.
            log.exception("the replay of %s has failed", self.view.topic)
            text, state = "it has failed: see the log of the console", "failed"
        with self._lock:
            self._view = msgspec.structs.replace(self._view, state=state, text=text, ended_ms=wall_ms())
        self.ended.set_result(None)
        self._tell()

    def _send(self, digest: str) -> str:
        with self._replay as replay:
            result = replay.run(digest, self._on_sent)
        return answer_of(result)

    def _on_sent(self, sent: int, total: int) -> None:
        with self._lock:
            state = self._view.state if self._view.state == "stopping" else "sending"
            self._view = msgspec.structs.replace(self._view, sent=sent, total=total, state=state)
        self._tell()


class ReplayRuns(Observable):
    """The replays of one console. Any thread."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._runs: dict[str, Run] = {}  # Guarded by the lock, as all below; the oldest first.
        self._is_closed = False

    def start(self, topic: str, who: str, replay: Replaying, digest: str, record: Record) -> Run:
        """Starts a replay of a plan, and returns it. Does not block.

        Raises:
            AwokeError: One of the topic runs, or too many do. ClosedError: The console ends.
        """
        view = ReplayRun(id=secrets.token_hex(6), topic=topic, who=who, state="reading", began_ms=wall_ms())
        found = Run(view, replay, self._tell)
        with self._lock:
            running = [each.view for each in self._runs.values() if not each.view.is_over]
            if self._is_closed:
                raise ClosedError("the console ends")
            if any(each.topic == topic for each in running):
                raise AwokeError(f"a replay of {topic} runs already: wait for its end, or cancel it")
            if len(running) >= RUNS_MAX:
                raise AwokeError(f"{RUNS_MAX} replays run already: wait for the end of one, or cancel one")
            found.start(digest, record)  # First: one whose thread cannot start is no replay under way.
            self._runs[view.id] = found
            over = [name for name, each in self._runs.items() if each.view.is_over]
            for name in over[: max(0, len(over) - KEPT_MAX)]:
                del self._runs[name]
        self._tell()
        return found

    def find(self, topic: str, name: str) -> Run | None:
        """Returns the replay of a topic with this id."""
        with self._lock:
            found = self._runs.get(name)
        return found if found is not None and found.view.topic == topic else None

    def of(self, topic: str) -> list[ReplayRun]:
        """Returns the replays of a topic, the newest first."""
        with self._lock:
            found = [each.view for each in self._runs.values()]
        return [each for each in reversed(found) if each.topic == topic]

    def close(self) -> None:
        """Cancels all replays, and blocks until they have ended, or for ten seconds each."""
        with self._lock:
            self._is_closed = True
            runs = list(self._runs.values())
        for each in runs:
            each.cancel()
        for each in runs:
            each.join(ENDED_WITHIN_S)


def answer_of(result: ReplayResult) -> str:
    """Returns the text of a result.

    Raises:
        ReplayCancelled: It was cancelled. AwokeError: A letter was refused.
    """
    sent = f"{result.sent} letters of {result.topic} were sent"
    if result.refused:
        first = result.refused[0]
        text = f"{sent}, then {first.partition}:{first.offset} was refused: {first.reason}"
        raise AwokeError(f"{text}; {result.left} are left")
    if result.is_cancelled and result.left:
        total = result.sent + result.left
        raise ReplayCancelled(
            f"the replay was cancelled: {result.sent} of {total} letters of {result.topic} were sent, "
            f"{result.left} are left"
        )
    return f"{sent}; they are still in it"
