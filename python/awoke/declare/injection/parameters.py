"""Reads the parameters of a handler, and of the functions that it depends on, once, when its route is made."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType
from typing import Any, NamedTuple

from awoke.declare.annotations import hint_of, said, type_name
from awoke.declare.handlers import Kind, does_not_fit, kind_of
from awoke.declare.injection.markers import SCOPES, DependsMark, Scope
from awoke.declare.injection.sources import (
    MISSING,
    OfFunction,
    PerCall,
    Source,
    is_value_type,
    marked_by_default,
    received_by,
    source_of,
    value_of,
)
from awoke.declare.signatures import signature_of
from awoke.errors import ConfigError

FIRST = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.VAR_POSITIONAL,
)
"""The kinds of a first parameter that takes the message."""
VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class Parameter(NamedTuple):
    """A parameter that gets an argument."""

    name: str
    source: Source | Dependency


class Dependency(NamedTuple):
    """A function of `Depends`, with its own parameters. Two of the same function and scope are one."""

    function: Callable[..., Any]
    scope: Scope
    kind: Kind
    parameters: tuple[Parameter, ...]

    @property
    def name(self) -> str:
        """The function's name."""
        return _name(self.function)

    @property
    def key(self) -> tuple[Callable[..., Any], Scope]:
        """The function and the scope, which make it one."""
        return self.function, self.scope


class Parameters(NamedTuple):
    """The parameters of a handler."""

    by_name: tuple[Parameter, ...] = ()
    """Those that are passed by name."""
    takes_received: bool = True
    """True if the message, or the batch, is its first argument."""
    value_type: Any = None
    """The type of values that the annotations say; None if they say none."""
    key_type: Any = None

    @property
    def dependencies(self) -> Sequence[Dependency]:
        """The functions that the handler depends on, those first that others need."""
        return in_order(self.by_name)


def parameters_of(
    function: Callable[..., Any],
    around: FrameType | None,
    where: str,
    *,
    is_batch: bool = False,
    has_self: bool = False,
) -> Parameters:
    """Returns the parameters of a handler, which gets a message or a batch.

    `around` is the frame in which it was defined. It `has_self` where it is a method without its object.

    Raises:
        ConfigError: A parameter has neither an annotation that says its argument, nor a default; a function that it
            depends on has one such, needs itself, or lives longer than its own arguments.
    """
    reading = _Reading(around, where, is_batch, int(has_self))
    takes = "one argument, the batch beside self" if is_batch else "one argument, the message"
    try:
        found = list(reading.filled(function))
    except (TypeError, ValueError, NameError):
        return Parameters()  # A function of a C library without a known signature.
    if not is_batch and found:
        _check_no_method(found[0][0], where)
    by_name: list[Parameter] = []
    takes_received, value_type, key_type = False, None, None
    named = (each for each, _ in found if each.kind not in VARIABLE)
    first = found[0][0] if found and found[0][0].kind in FIRST else next(named, None)
    for place, (each, is_of_wrapped) in enumerate(found):
        source = reading.first_source(each, function) if each is first else reading.source(each, function)
        if isinstance(source, PerCall):
            value_type, key_type = value_type or source.value_type, key_type or source.key_type
        is_received = source is None or (isinstance(source, PerCall) and source.is_received)
        if place == 0 and is_received and each.kind in FIRST:
            takes_received = True
        elif source is not None:
            _check_named(each, where)
            by_name.append(Parameter(each.name, reading.resolved(source, ())))
        elif each.default is each.empty and each.kind not in VARIABLE and not is_of_wrapped:
            raise does_not_fit(function, where, takes)
    if not takes_received and not by_name:
        raise does_not_fit(function, where, takes)
    check_awaited(by_name, where, is_async=kind_of(function).startswith("async"))
    return Parameters(tuple(by_name), takes_received, said(value_type), said(key_type))


def _check_no_method(first: inspect.Parameter, where: str) -> None:
    if first.name in ("self", "cls") and first.annotation is first.empty and first.kind in FIRST:
        text = f"{where}: is a method, whose {first.name!r} would get the message; pass the method of an object, as in"
        raise ConfigError(f"{text} app.on('orders')(shop.handle), or decorate a function", "handler")


def _check_named(parameter: inspect.Parameter, where: str) -> None:
    if parameter.kind is parameter.POSITIONAL_ONLY:
        raise ConfigError(f"{where}: parameter {parameter.name!r} can't be passed by its name", "handler")


def check_awaited(by_name: Sequence[Parameter], where: str, *, is_async: bool) -> None:
    """Checks that a handler can await the functions that it depends on.

    Raises:
        ConfigError: One of them is `async def`, and the handler is not.
    """
    for each in [] if is_async else in_order(by_name):
        if each.kind.startswith("async"):
            text = f"{where}: depends on {each.name}, which is async def; make the handler async def, too"
            raise ConfigError(text, "depends")


def dependency_of(depends: DependsMark, where: str) -> Dependency:
    """Returns a function of `Depends` with its parameters.

    Raises:
        ConfigError: As `parameters_of`.
    """
    return _Reading(None, where).dependency(depends, ())


class _Reading(NamedTuple):
    """Reads the parameters of one handler, and of all that it depends on."""

    around: FrameType | None
    where: str
    """The handler, for the texts of errors."""
    is_batch: bool = False
    first: int = 0
    """The place of its first parameter behind `self`."""

    def filled(self, function: Callable[..., Any]) -> Iterator[tuple[inspect.Parameter, bool]]:
        """Yields the parameters that a call fills, and whether only a function that the handler wraps has them.

        A decorator may add arguments of its own. What it passes on by name may still be said by the function within.
        """
        outer = list(signature_of(function, follows_wrapped=False).parameters.values())
        takes_all = bool(outer) and outer[0].kind is inspect.Parameter.VAR_POSITIONAL  # The object of a method, too.
        outer = outer if takes_all else outer[self.first :]
        inner: Sequence[inspect.Parameter] = []
        if any(each.kind is each.VAR_KEYWORD for each in outer) and hasattr(function, "__wrapped__"):
            inner = list(signature_of(function).parameters.values())[self.first :]
        if takes_all and inner and not self._takes_received(inner[0], function):
            outer = outer[1:]
        else:
            inner = inner[1:]
        names = {each.name for each in outer}
        yield from ((each, False) for each in outer)
        yield from ((each, True) for each in inner if each.name not in names)

    def _takes_received(self, first: inspect.Parameter, function: Callable[..., Any]) -> bool:
        source = self.first_source(first, function)
        return first.kind in FIRST and (source is None or (isinstance(source, PerCall) and source.is_received))

    def source(self, parameter: inspect.Parameter, function: Callable[..., Any]) -> Source | None:
        """Returns where the argument of a parameter comes from; None if neither annotation nor default say it."""
        default = MISSING if parameter.default is parameter.empty else parameter.default
        if parameter.annotation is parameter.empty:
            try:
                return marked_by_default(str, default)
            except TypeError as error:
                raise ConfigError(f"{self.where}: parameter {parameter.name!r}: {error}", "handler") from None
        module, name = getattr(function, "__module__", "awoke"), getattr(function, "__qualname__", "")
        try:
            hint = hint_of(parameter.annotation, function, self.around)
            source = source_of(hint, default, f"{module}.{name}".rstrip("."))
        except TypeError as error:
            raise ConfigError(f"{self.where}: parameter {parameter.name!r}: {error}", "handler") from None
        except ConfigError as error:
            source = received_by(parameter.annotation)  # The route may say the types that it names.
            if source is None:
                raise ConfigError(f"{self.where}: parameter {parameter.name!r}: {error}", error.property) from None
        if isinstance(source, PerCall):
            self._check(source, parameter.name)
        return source

    def first_source(self, parameter: inspect.Parameter, function: Callable[..., Any]) -> Source | None:
        """Returns the same of the first parameter: one of another type than the message's gets the value.

        Raises:
            ConfigError: It is of a class, whose `consume` gets a batch; else as `source`.
        """
        source = self.source(parameter, function)
        if source is not None or parameter.annotation is parameter.empty or parameter.kind in VARIABLE:
            return source
        try:
            hint = hint_of(parameter.annotation, function, self.around)
        except ConfigError:
            return None
        if not is_value_type(hint):
            return None
        if not self.is_batch:
            return value_of(hint)
        kind = typing.get_origin(hint) or hint
        if isinstance(kind, type) and kind.__module__ != "collections.abc":
            text = f"{self.where}: parameter {parameter.name!r} is annotated as {type_name(hint)}, and consume gets a"
            raise ConfigError(f"{text} batch; annotate awoke.Batch[…] with the type of a value", "handler")
        return None

    def _check(self, source: PerCall, name: str) -> None:
        text = None
        if self.is_batch and source.is_of_message:
            text = "is about one message, and consume gets a batch of them"
        elif not self.is_batch and source.is_received and not source.is_of_message:
            text = "is a batch, and a function gets one message for each call"
        if text is not None:
            raise ConfigError(f"{self.where}: parameter {name!r} {text}", "handler")

    def resolved(self, source: Source, above: tuple[Callable[..., Any], ...]) -> Source | Dependency:
        """Returns a source; one of `Depends` with the parameters of its function. `above` are those that need it."""
        return self.dependency(source.depends, above) if isinstance(source, OfFunction) else source

    def dependency(self, depends: DependsMark, above: tuple[Callable[..., Any], ...]) -> Dependency:
        """Returns a function of `Depends` with its parameters."""
        function, kind = depends.function, kind_of(depends.function)
        if function in above:
            names = [_name(each) for each in (*above[above.index(function) :], function)]
            raise ConfigError(f"{self.where}: cyclic dependencies: {' needs '.join(names)}", "depends")
        here = f"{self.where}: {_name(function)}"
        if depends.scope == "app" and kind != "def":
            text = f"{here}: scope 'app' takes a plain def that returns: what it makes is shared and is never closed"
            raise ConfigError(text, "depends")
        found = []
        for each in _parameters(function):
            source = self.source(each, function)
            if source is None:
                if each.default is not each.empty or each.kind in VARIABLE:
                    continue
                text = f"{here}: nothing says what its parameter {each.name!r} gets; annotate it"
                raise ConfigError(f"{text}, as in {each.name}: Annotated[Session, awoke.Depends(session)]", "depends")
            _check_named(each, here)
            if SCOPES.index(source.scope) > SCOPES.index(depends.scope):
                text = f"{here}: has scope {depends.scope!r}, and its parameter {each.name!r} lives shorter"
                raise ConfigError(f"{text}; give {_name(function)} scope={source.scope!r}", "depends")
            found.append(Parameter(each.name, self.resolved(source, (*above, function))))
        return Dependency(function, depends.scope, kind, tuple(found))


def _name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__qualname__", function))


def _parameters(function: Callable[..., Any]) -> Sequence[inspect.Parameter]:
    try:
        return list(signature_of(function).parameters.values())
    except (TypeError, ValueError, NameError):
        return []


def in_order(parameters: Sequence[Parameter]) -> Sequence[Dependency]:
    """Returns the dependencies of parameters, each once, those first that others need."""
    found: dict[Any, Dependency] = {}

    def add(each: Parameter) -> None:
        if isinstance(each.source, Dependency) and each.source.key not in found:
            for inner in each.source.parameters:
                add(inner)
            found[each.source.key] = each.source

    for each in parameters:
        add(each)
    return list(found.values())


def overridden(
    parameters: Sequence[Parameter], by: Mapping[Callable[..., Any], Callable[..., Any]]
) -> tuple[Parameter, ...]:
    """Returns parameters with other functions in place of those that are overridden.

    Raises:
        ConfigError: The other function can't live as long as the one that it replaces.
    """

    def of(each: Parameter) -> Parameter:
        source = each.source
        if not isinstance(source, Dependency):
            return each
        if source.function in by:
            return Parameter(each.name, dependency_of(DependsMark(by[source.function], source.scope), "override"))
        return Parameter(each.name, source._replace(parameters=overridden(source.parameters, by)))

    return tuple(of(each) for each in parameters) if by else tuple(parameters)
