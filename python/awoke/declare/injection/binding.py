"""Makes the call of a handler with all of its arguments, when the app has started."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from awoke.declare.handlers import Kind, check_ran
from awoke.declare.injection.opened import DONE, Open, add_notes, close, first
from awoke.declare.injection.parameters import Dependency, Parameter, Parameters, in_order
from awoke.declare.injection.sources import Assignment, OfApp, PerAssignment, PerCall
from awoke.declare.injection.values import Scoped
from awoke.waiting.drive import run_now

Made = Mapping[Any, Any]
"""Values by the keys of the functions of `Depends` that have returned them."""

CallWith = Callable[[Callable[..., Any], Any], Any]
"""Calls a handler, with the message or the batch that it received, and with its other arguments."""

Get = Callable[[Any, Made, Made], Any]
"""Returns an argument: of what was received, of the values of the assignment, and of those of the job."""

Last = Callable[[Callable[..., Any], Any, Made, Made], Any]
"""Calls a handler, when the functions of the job have returned."""

CLOSING = "a function with a yield"
"""The name of the flow that closes generators, none of which is async."""

LONG = ("app", "process")
"""The scopes that are made before the first message."""


class KnownAssignments(Protocol):
    """The values of the assignments of one route."""

    def known(self) -> Made | None:
        """Returns those of the calling job's assignment; None if they are not made yet."""

    async def made(self) -> Made:
        """Returns the same, made on first use."""


class BindingStep(NamedTuple):
    """A function of `Depends` that is called for each job."""

    key: Any
    function: Callable[..., Any]
    kind: Kind
    name: str
    arguments: Sequence[tuple[str, Get]]


def bind(parameters: Parameters, process: Scoped, assignments: KnownAssignments, *, is_async: bool) -> CallWith:
    """Returns a function that calls a handler. It returns a coroutine where that is `async def`.

    What does not depend on the message is looked up here, and once.
    """
    constant = {each.name: process.argument(each.source) for each in parameters.by_name if is_constant(each)}
    others = [each for each in parameters.by_name if not is_constant(each)]
    if all(isinstance(each.source, PerCall) for each in others):
        return _without_functions(constant, others, takes_received=parameters.takes_received)
    steps = [
        BindingStep(each.key, each.function, each.kind, each.name, _getters(each.parameters, process))
        for each in in_order(others)
        if each.scope == "job"
    ]
    last = _last(constant, _getters(others, process), takes_received=parameters.takes_received)
    needed = assignments if any(map(_is_of_assignment, others)) else None
    return _awaited(steps, last, needed) if is_async else _called(steps, last, needed)


def is_constant(parameter: Parameter) -> bool:
    """Tells whether an argument is the same for all calls in a process."""
    source = parameter.source
    return isinstance(source, OfApp) or (isinstance(source, Dependency) and source.scope in LONG)


def _is_of_assignment(parameter: Parameter) -> bool:
    source = parameter.source
    is_inner = isinstance(source, Dependency) and any(map(_is_of_assignment, source.parameters))
    return is_inner or source.scope == "assignment"


def _getters(parameters: Sequence[Parameter], process: Scoped) -> Sequence[tuple[str, Get]]:
    return [(each.name, _getter(each, process)) for each in parameters]


def _getter(parameter: Parameter, process: Scoped) -> Get:
    source = parameter.source
    if is_constant(parameter):
        constant = process.argument(source)
        return lambda received, assigned, made: constant
    if isinstance(source, PerCall):
        get = source.get
        return lambda received, assigned, made: get(received)
    if isinstance(source, PerAssignment):
        return lambda received, assigned, made: assigned[Assignment]
    assert isinstance(source, Dependency)
    key = source.key
    if source.scope == "assignment":
        return lambda received, assigned, made: assigned[key]
    return lambda received, assigned, made: made[key]


def _without_functions(constant: Mapping[str, Any], others: Sequence[Parameter], *, takes_received: bool) -> CallWith:
    """Returns the call of a handler whose arguments need no function. It awaits nothing, so it serves both kinds."""
    getters = [(each.name, each.source.get) for each in others if isinstance(each.source, PerCall)]
    if takes_received and not getters:
        return lambda function, received: function(received, **constant)
    if takes_received and len(getters) == 1 and not constant:
        ((name, get),) = getters
        return lambda function, received: function(received, **{name: get(received)})
    if not takes_received and len(getters) == 1 and not constant:
        ((name, get),) = getters
        return lambda function, received: function(**{name: get(received)})
    if takes_received:
        return lambda function, received: function(
            received, **constant, **{name: get(received) for name, get in getters}
        )
    return lambda function, received: function(**constant, **{name: get(received) for name, get in getters})


def _last(constant: Mapping[str, Any], arguments: Sequence[tuple[str, Get]], *, takes_received: bool) -> Last:
    if not takes_received:
        return lambda function, received, assigned, made: function(
            **constant, **{name: get(received, assigned, made) for name, get in arguments}
        )
    if len(arguments) == 1 and not constant:
        ((name, get),) = arguments
        return lambda function, received, assigned, made: function(received, **{name: get(received, assigned, made)})
    return lambda function, received, assigned, made: function(
        received, **constant, **{name: get(received, assigned, made) for name, get in arguments}
    )


# The next two are the same, but for the waits: one flow for both would cost each `def` call a microsecond.


def _called(steps: Sequence[BindingStep], call_handler: Last, assignments: KnownAssignments | None) -> CallWith:
    """Returns the call of a `def`."""
    nothing: Made = {}
    fine: set[type] = {type(None)}

    def call(function: Callable[..., Any], received: Any) -> Any:
        assigned = nothing
        if assignments is not None:
            assigned = assignments.known() or run_now(assignments.made(), "a function of scope assignment")
        made: dict[Any, Any] = {}
        opened: list[Open] = []
        try:
            for key, make, kind, name, arguments in steps:
                found = (
                    make(**{each: get(received, assigned, made) for each, get in arguments}) if arguments else make()
                )
                if kind == "generator":
                    opened.append((found, name))
                    found = first(next(found, DONE), name)
                elif found.__class__ not in fine:
                    check_ran(found, name)
                    fine.add(found.__class__)
                made[key] = found
            result = call_handler(function, received, assigned, made)
        except BaseException as error:
            if opened:
                add_notes(error, run_now(close(opened, error), CLOSING))
            raise
        if opened:
            for _, failed in run_now(close(opened), CLOSING):
                raise failed
        return result

    return call


def _awaited(steps: Sequence[BindingStep], call_handler: Last, assignments: KnownAssignments | None) -> CallWith:
    """Returns the call of an `async def`."""
    nothing: Made = {}
    fine: set[type] = {type(None)}

    async def call(function: Callable[..., Any], received: Any) -> Any:
        assigned = nothing
        if assignments is not None:
            assigned = assignments.known() or await assignments.made()
        made: dict[Any, Any] = {}
        opened: list[Open] = []
        try:
            for key, make, kind, name, arguments in steps:
                found = (
                    make(**{each: get(received, assigned, made) for each, get in arguments}) if arguments else make()
                )
                if kind == "async def":
                    found = await found
                elif kind == "async generator":
                    opened.append((found, name))
                    found = first(await anext(found, DONE), name)
                elif kind == "generator":
                    opened.append((found, name))
                    found = first(next(found, DONE), name)
                elif found.__class__ not in fine:
                    check_ran(found, name)
                    fine.add(found.__class__)
                made[key] = found
            result = await call_handler(function, received, assigned, made)
        except BaseException as error:
            if opened:
                add_notes(error, await close(opened, error))
            raise
        if opened:
            for _, failed in await close(opened):
                raise failed
        return result

    return call
