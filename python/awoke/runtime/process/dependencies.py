"""Makes and closes what functions of `Depends` return for the whole life of a process."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import Future
from typing import Any

from awoke.declare.injection.overrides import AppDependencies
from awoke.declare.injection.parameters import Dependency, Parameter, check_awaited, in_order
from awoke.declare.routing import Route
from awoke.observe.events import Events, ShutdownFailed
from awoke.waiting.drive import run_now

CallAsync = Callable[[Callable[[], Coroutine[Any, Any, Any]]], "Future[Any]"]
"""Calls an async function on the runtime's event loop."""


class ProcessDependencies:
    """The values of one run of an app. `open` and `close` are called once each, on any thread."""

    def __init__(self, known: AppDependencies, routes: Iterable[Route], events: Events, call_async: CallAsync) -> None:
        self.known, self._routes, self._events, self._call_async = known, routes, events, call_async
        self.values = known.of_process()
        """The values by the functions that have returned them."""
        self._is_async = False

    def open(self) -> None:
        """Calls the functions with the scopes `app` and `process`, those first that others need. Blocks.

        Raises what one of them raises; ConfigError: an overriding function does not suit a handler.
        """
        for each in self._begin():
            self._run(self.values.make(each), each.name, is_async=each.kind.startswith("async"))

    async def open_here(self) -> None:
        """As `open`, on the running event loop, or on the thread that drives this flow."""
        for each in self._begin():
            await self.values.make(each)

    def _begin(self) -> list[Dependency]:
        """Makes what the scope `app` has; returns the functions with the scope `process`, in order."""
        self._check()
        parameters = parameters_of_routes(self._routes)
        self.known.share(parameters)
        self.values = self.known.of_process()
        return [each for each in in_order(self.known.of(parameters)) if each.scope == "process"]

    def _check(self) -> None:
        for route in self._routes:
            for parameters in route.all_parameters:
                check_awaited(
                    self.known.of(parameters.by_name), f"route {route.topic!r}: {route.name}", is_async=route.is_async
                )

    def close(self) -> None:
        """Closes what is open, in reverse order; what a function raises is an event. Blocks."""
        self._run(self.close_here(), "dependencies", is_async=self._is_async)

    async def close_here(self) -> None:
        """As `close`, on the running event loop, or on the thread that drives this flow."""
        for name, error in await self.values.close():
            self._events.emit(ShutdownFailed(function=name, error=error))

    def _run(self, flow: Coroutine[Any, Any, None], name: str, *, is_async: bool) -> None:
        if is_async:
            self._is_async = True
            self._call_async(lambda: flow).result()
        else:
            run_now(flow, name)


def parameters_of_routes(routes: Iterable[Route]) -> list[Parameter]:
    """Returns the parameters of all handlers of routes that get more than the message."""
    return [each for route in routes for parameters in route.all_parameters for each in parameters.by_name]
