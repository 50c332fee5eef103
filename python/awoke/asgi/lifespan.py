"""Starts the producer and the callers of an app with a web application, and closes them in order with it."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any
from weakref import WeakSet

import awoke
from awoke.errors import ConfigError
from awoke.observe.tracing import Tracer
from awoke.payloads.message import Outgoing, header_pairs
from awoke.rpc import CallerOptions
from awoke.runtime.process.embedding import on_thread
from awoke.runtime.process.stopping import remaining_s

logger = logging.getLogger(__name__)

Lifespan = Callable[[Any], AbstractAsyncContextManager[Mapping[str, Any]]]
"""Takes the web application; its block lasts from before the first request until after the last."""
STATE = "awoke"
"""The name of the app in the state of the web application and of its requests."""


def lifespan(
    app: awoke.App,
    *,
    callers: Iterable[str] | Mapping[str, CallerOptions] = (),
    connect: bool = True,
    consume: bool = False,
) -> Lifespan:
    """Returns a lifespan for `FastAPI(lifespan=…)` or `Starlette(lifespan=…)`. Opens nothing: a preload may call it.

    When the web application starts, the brokers are asked, and the producer and the callers of the services in
    `callers` are opened: what fails ends the start. With `connect=False` each connects on first use instead. When
    the web application stops, callers are closed first, then the producer, which delivers what is queued. Neither
    blocks the event loop. Messages are consumed only with `consume=True`, as by `App.serving`.

    Raises, when the web application starts:
        ConfigError: a wrong setting; the app belongs to another web application that runs in this process.
        BrokerUnreachable, UnknownTopic; ForkedClientError: the app's producer was used before the process was forked.
    """
    part = WebPart(app, callers, connect=connect, consume=consume)
    return part.run


class WebPart:
    """The app as a part of one web application."""

    def __init__(
        self, app: awoke.App, callers: Iterable[str] | Mapping[str, CallerOptions], *, connect: bool, consume: bool
    ) -> None:
        self._app = app
        self._callers: dict[str, CallerOptions] = (
            dict(callers) if isinstance(callers, Mapping) else {service: CallerOptions() for service in callers}
        )
        self._connects, self._consumes = connect, consume
        self._is_traced = False

    @contextlib.asynccontextmanager
    async def run(self, web: Any) -> AsyncIterator[Mapping[str, Any]]:
        """Runs the app beside a web application, whose state gets the app; see `lifespan`."""
        async with contextlib.AsyncExitStack() as stack:
            stack.enter_context(in_use(self._app))
            self._trace()
            if self._consumes:
                await stack.enter_async_context(self._app.serving())
            # Registered first: it also closes what was opened before `_open` failed.
            stack.push_async_callback(on_thread, self._close, "awoke-stopping")
            await on_thread(self._open, "awoke-starting")
            state = getattr(web, "state", None)
            if state is not None:
                setattr(state, STATE, self._app)
            yield {STATE: self._app}

    def _trace(self) -> None:
        """Makes messages that requests send continue their traces."""
        settings = self._app.settings
        if not settings.tracing or self._is_traced:
            return
        tracer = Tracer(self._app.name, settings.group or self._app.name)

        def continue_trace(message: Outgoing) -> Outgoing:
            return message._replace(headers=tracer.headers(header_pairs(message.headers)))

        self._app.outgoing(continue_trace)
        self._is_traced = True

    def _open(self) -> None:
        """Connects the producer and the callers, if they are to connect at the start. Blocks."""
        if not self._connects:
            return
        settings = self._app.settings
        if not self._consumes:
            with awoke.Admin(settings=settings) as admin:
                admin.brokers(settings.startup_timeout_s)
        self._app.producer.flush(
            0
        )  # Made now: a wrong setting ends the start, and so does a producer of another process.
        for service, options in self._callers.items():
            self._app.caller(service, **options).__enter__()

    def _close(self) -> None:
        """Ends calls, and delivers what is queued. Blocks up to `shutdown_timeout_s`."""
        until_s = time.monotonic() + self._app.settings.shutdown_timeout_s
        self._app.close_callers(remaining_s(until_s, 1.0))
        undelivered = self._app.close_producer(remaining_s(until_s, 1.0))
        if undelivered:
            logger.error("%d produced messages were not acknowledged before the web application ended", undelivered)
        self._app.schemas.close(remaining_s(until_s, 1.0))


_used: WeakSet[awoke.App] = WeakSet()
_using = threading.Lock()


@contextlib.contextmanager
def in_use(app: awoke.App) -> Iterator[None]:
    """Keeps a second web application of this process from using the app: the first to end would close its producer.

    Raises:
        ConfigError: the app is in use.
    """
    with _using:
        if app in _used:
            text = f"app {app.name!r} belongs to another web application that runs in this process: give each its own"
            raise ConfigError(text, "lifespan")
        _used.add(app)
    try:
        yield
    finally:
        with _using:
            _used.discard(app)


def found_app(scope: Mapping[str, Any]) -> awoke.App | None:
    """Returns the app of a request, from its ASGI scope; None where the web application has none. Does not block."""
    found = scope.get("state", {}).get(STATE) or getattr(getattr(scope.get("app"), "state", None), STATE, None)
    return found if isinstance(found, awoke.App) else None


def app_of(scope: Mapping[str, Any]) -> awoke.App:
    """Returns the app of a request, from its ASGI scope. Does not block.

    Raises:
        ConfigError: the web application has no lifespan of awoke's, or it has not started.
    """
    found = found_app(scope)
    if found is None:
        text = "this web application has no awoke app: give it lifespan=awoke.fastapi.lifespan(app), and let it start"
        raise ConfigError(text, "lifespan")
    return found
