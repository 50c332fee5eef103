"""The handler of a route, as strategies call it: its arguments, its middleware, and the choice among several handlers.

From the outside in: the app's middleware, that of routers and of the route, the decoding, the choice, the functions of
`Depends`, the handler. A handler that takes only the message, without middleware, is called as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from awoke._native import Batch, HookJob, Job
from awoke.declare.choosing import choice
from awoke.declare.consumer import Consumer
from awoke.declare.handlers import kind_of
from awoke.declare.incoming import around
from awoke.declare.injection.binding import CallWith, Made, bind
from awoke.declare.injection.opened import Failed, add_notes
from awoke.declare.injection.parameters import Parameters, in_order
from awoke.declare.injection.sources import Assignment
from awoke.declare.injection.values import Scoped
from awoke.declare.routing import Route
from awoke.errors import FencedError, end_in
from awoke.observe.events import HookFailed
from awoke.observe.ledger import current_work
from awoke.runtime.jobs.outputs import Yielded
from awoke.runtime.process.assigned import Key, key_of
from awoke.runtime.process.context import RouteContext
from awoke.waiting.drive import FlowLock


class Assignments:
    """The values of functions of `Depends` for each assignment of one route. Any thread."""

    def __init__(self, route: Route, context: RouteContext) -> None:
        self._route, self._context = route, context
        self._making: dict[Key, FlowLock] = {}
        """Held while the values of an assignment are made, which several of its jobs may want."""
        self._scoped: dict[Key, Scoped] = {}

    def known(self) -> Made | None:
        """Returns the values of the calling job's assignment; None if they are not made yet. Does not block."""
        found = self._scoped.get(key_of(current_work()))
        return None if found is None else found.made

    async def made(self) -> Made:
        """Returns the values of the calling job's assignment, made on first use.

        Raises what a function raises; FencedError: the partition was taken away meanwhile.
        """
        job = current_work()
        key = key_of(job)
        async with self._making.setdefault(key, FlowLock()):
            if key not in self._scoped:
                self._check_current(job)
                scoped = await self._make(Assignment(*key[:2]))
                try:
                    self._check_current(job)
                except FencedError as error:
                    add_notes(error, await scoped.close(error))  # No hook comes for it any more.
                    raise
                self._scoped[key] = scoped
            return self._scoped[key].made

    def _check_current(self, job: Job) -> None:
        if not job.assignment().is_current:
            raise FencedError(f"{job.topic}[{job.partition}] was taken away meanwhile", job.topic, job.partition)

    async def _make(self, assignment: Assignment) -> Scoped:
        dependencies = self._context.dependencies
        scoped = dependencies.values.within(assignment)
        parameters = [each for every in self._route.all_parameters for each in dependencies.known.of(every.by_name)]
        try:
            for each in in_order(parameters):
                if each.scope == "assignment":
                    await scoped.make(each)
        except BaseException as error:
            add_notes(error, await scoped.close(error))
            raise
        return scoped

    async def close(self, key: Key) -> Failed:
        """Closes what belongs to an assignment that has ended; returns the functions that failed."""
        scoped = self._scoped.pop(key, None)
        self._making.pop(key, None)
        return [] if scoped is None else await scoped.close()


class HandlerCalls:
    """The calls of one route's handler. Any thread."""

    def __init__(self, route: Route, context: RouteContext) -> None:
        self.route, self._context = route, context
        self.name, self.is_async = route.name, route.is_async
        self._incoming = context.app.around(route)
        self.is_typed = route.is_typed and not self._incoming
        """True if the strategy decodes a message's value before the call; else the call does."""
        self._assignments = Assignments(route, context)
        is_plain = all(not each.by_name and each.takes_received for each in route.all_parameters)
        self.is_late = not is_plain or bool(self._incoming)
        """True if the handler can be called only after `bind`."""
        self.function: Callable[[Any], Any] = route.function
        """Calls the handler of a function route with a message; it returns a coroutine where that is `async def`."""
        self._consume: Callable[[Consumer, Batch[Any]], Any] | None = None
        if not self.is_late and route.consumer is None:
            self.function = self._choice(lambda function, _: collected(function))

    def bind(self) -> None:
        """Looks up the arguments that do not depend on the message. To be called before the first job. May block.

        Raises what the app raises, as for a caller of a service that is not there.
        """
        route = self.route
        if route.consumer is None:
            self.function = around(self._incoming, self._choice(self._bound), is_async=self.is_async)
            return
        (parameters,) = route.all_parameters
        self._consume = self._with_batch(self._call_of(parameters))

    @property
    def consume(self) -> Callable[[Consumer, Batch[Any]], Any] | None:
        """Calls `consume` of an instance with a batch and its other arguments; None where it is called as it is."""
        return self._consume

    def _with_batch(self, call: CallWith | None) -> Callable[[Consumer, Batch[Any]], Any]:
        def consume(instance: Consumer, batch: Batch[Any]) -> Any:
            function = instance.consume if call is None else partial(call, instance.consume)
            return around(self._incoming, function, is_async=self.is_async)(batch)

        return consume

    def _choice(self, made: Callable[[Callable[..., Any], Parameters], Callable[[Any], Any]]) -> Callable[[Any], Any]:
        """Returns the call of the handler, or of the one among several that takes the message."""
        route = self.route
        if route.handlers is not None:
            return choice([(each.takes, made(each.function, each.parameters)) for each in route.handlers.cases])
        (parameters,) = route.all_parameters
        return made(route.function, parameters)

    def _bound(self, function: Callable[..., Any], parameters: Parameters) -> Callable[[Any], Any]:
        call, function = self._call_of(parameters), collected(function)
        if not (self.route.is_typed and self._incoming):
            return function if call is None else partial(call, function)

        def decoded(message: Any) -> Any:
            message.value  # noqa: B018 - a value that does not decode is the message's error, not the handler's
            return function(message) if call is None else call(function, message)

        return decoded

    def _call_of(self, parameters: Parameters) -> CallWith | None:
        """Returns what calls a handler with its arguments; None where it takes what it receives, and no more."""
        if parameters.takes_received and not parameters.by_name:
            return None
        dependencies = self._context.dependencies
        parameters = parameters._replace(by_name=dependencies.known.of(parameters.by_name))
        return bind(parameters, dependencies.values, self._assignments, is_async=self.is_async)

    async def close_assignment(self, hook: HookJob) -> None:
        """Closes what belongs to an assignment that has ended; what a function raises is an event."""
        for name, error in await self._assignments.close(key_of(hook)):
            if (end := end_in(error)) is not None:
                self._context.stop_app(end)
            self._context.events.emit(
                HookFailed(
                    hook=hook.name,
                    handler=f"{self.name}, Depends({name})",
                    topic=hook.topic,
                    partition=hook.partition,
                    error=error,
                )
            )


def collected(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a generator function as one that returns all that it yields; any other as it is."""
    kind = kind_of(function)
    if kind == "generator":
        return lambda *arguments, **named: Yielded(function(*arguments, **named))
    if kind != "async generator":
        return function

    async def gather(*arguments: Any, **named: Any) -> Yielded:
        return Yielded([each async for each in function(*arguments, **named)])

    return gather
