"""Events of the app: its start and stop, its background functions and threads."""

from __future__ import annotations

import logging
from typing import ClassVar

from awoke.observe.events.event import Counter, Event

__all__ = [
    "AppResized",
    "AppStarted",
    "AppStopped",
    "AppStopping",
    "BackgroundFailure",
    "BackgroundOverdue",
    "ClockStepped",
    "LoopBlocked",
    "ShutdownFailed",
    "ThreadLeaked",
    "TopicDiffers",
    "TopicMatched",
    "TopicRefused",
    "TopicUnchecked",
]


class AppStarted(Event, frozen=True, kw_only=True):
    """The app has joined its groups; `group` has their names, separated by commas."""

    name: ClassVar[str] = "app.started"
    usual_level: ClassVar[int] = logging.INFO
    app: str
    group: str
    topics: list[str]


class AppStopping(Event, frozen=True, kw_only=True):
    """A stop begins."""

    name: ClassVar[str] = "app.stopping"
    usual_level: ClassVar[int] = logging.INFO
    app: str


class AppStopped(Event, frozen=True, kw_only=True):
    """Everything has ended; `is_clean` is false where work was left, and the exit code is 3."""

    name: ClassVar[str] = "app.stopped"
    usual_level: ClassVar[int] = logging.INFO
    advice: ClassVar[str] = "see the lines before it"
    app: str
    is_clean: bool


class AppResized(Event, frozen=True, kw_only=True):
    """The number of worker threads was changed."""

    name: ClassVar[str] = "app.resized"
    usual_level: ClassVar[int] = logging.INFO
    app: str
    workers: int


class TopicMatched(Event, frozen=True, kw_only=True):
    """A pattern of the app has matched a topic that was created while it runs."""

    name: ClassVar[str] = "topic.matched"
    usual_level: ClassVar[int] = logging.INFO
    group: str = ""
    topic: str


class TopicRefused(Event, frozen=True, kw_only=True):
    """A new topic can't be read: two patterns match it, or its handler lacks an argument. Others go on."""

    name: ClassVar[str] = "topic.refused"
    usual_level: ClassVar[int] = logging.ERROR
    advice: ClassVar[str] = "correct what the error says, and restart the app"
    error: BaseException


class ShutdownFailed(Event, frozen=True, kw_only=True):
    """A shutdown function has raised."""

    name: ClassVar[str] = "shutdown.failed"
    usual_level: ClassVar[int] = logging.ERROR
    advice: ClassVar[str] = "correct the function; the others were called"
    is_of_user_code: ClassVar[bool] = True
    counter: ClassVar[Counter | None] = Counter(
        "awoke_shutdown_failures_total", "Exceptions of shutdown functions.", {"function": "function"}
    )
    function: str
    error: BaseException


class BackgroundFailure(Event, frozen=True, kw_only=True):
    """A background function has raised; `restart_in_s` is None if it does not run again."""

    name: ClassVar[str] = "background.failed"
    usual_level: ClassVar[int] = logging.ERROR
    advice: ClassVar[str] = "correct the function"
    is_of_user_code: ClassVar[bool] = True
    counter: ClassVar[Counter | None] = Counter(
        "awoke_background_failures_total", "Exceptions of background functions.", {"owner": "owner"}
    )
    owner: str
    function: str
    failures: int
    restart_in_s: float | None
    error: BaseException


class BackgroundOverdue(Event, frozen=True, kw_only=True):
    """Background threads did not end with their consumer."""

    name: ClassVar[str] = "background.overdue"
    usual_level: ClassVar[int] = logging.ERROR
    advice: ClassVar[str] = "have them wait on the `stop` token"
    owner: str
    threads: list[str]


class ThreadLeaked(Event, frozen=True, kw_only=True):
    """A thread that a consumer started outlives it."""

    name: ClassVar[str] = "thread.leaked"
    usual_level: ClassVar[int] = logging.WARNING
    advice: ClassVar[str] = "start it with `self.background`"
    counter: ClassVar[Counter | None] = Counter(
        "awoke_leaked_threads_total", "Threads that outlived the consumer that started them.", {"owner": "owner"}
    )
    owner: str
    handler: str
    thread: str
    started_at: str


class LoopBlocked(Event, frozen=True, kw_only=True):
    """A call blocks the event loop of async functions, and with it all of them; debug where the log has its stack."""

    name: ClassVar[str] = "loop.blocked"
    usual_level: ClassVar[int] = logging.WARNING
    advice: ClassVar[str] = "await something that does not block, use `asyncio.to_thread`, or make the function `def`"
    counter: ClassVar[Counter | None] = Counter(
        "awoke_blocked_loops_total",
        "Calls that blocked an event loop of async functions for half a second or more.",
        {"loop": "loop", "function": "function"},
    )
    loop: str
    """The thread of the loop: `awoke-loop` for handlers, `awoke-rpc-loop` for methods."""
    place: str
    """The file, line and function of the innermost call of user code."""
    function: str
    for_s: float
    """The time until now."""
    is_new: bool
    """False: it was told of this place before."""

    @property
    def log_level(self) -> int:
        """DEBUG where it is not new."""
        return self.usual_level if self.is_new else logging.DEBUG


class ClockStepped(Event, frozen=True, kw_only=True):
    """The system's clock was set."""

    name: ClassVar[str] = "clock.stepped"
    usual_level: ClassVar[int] = logging.WARNING
    advice: ClassVar[str] = "nothing: waits use another clock"
    counter: ClassVar[Counter | None] = Counter("awoke_clock_steps_total", "Times that the system's clock was set.")
    client: str
    by_ms: int


class TopicDiffers(Event, frozen=True, kw_only=True):
    """At start a topic is not as the app declares it; `option` is `partitions`, `replication` or a setting."""

    name: ClassVar[str] = "topic.differs"
    usual_level: ClassVar[int] = logging.WARNING
    advice: ClassVar[str] = "`awoke topics plan` shows all differences, `awoke topics apply` ends those that it can"
    topic: str
    option: str
    found: str
    declared: str


class TopicUnchecked(Event, frozen=True, kw_only=True):
    """At start the settings of a declared topic could not be compared."""

    name: ClassVar[str] = "topic.unchecked"
    usual_level: ClassVar[int] = logging.WARNING
    advice: ClassVar[str] = "allow the user `DESCRIBE_CONFIGS` on the topic, or set `topics_check=off`"
    topic: str
    error: BaseException
