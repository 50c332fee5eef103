"""Typed clients: objects with the methods of a `typing.Protocol` or class, which call methods of a service."""

from __future__ import annotations

import collections.abc
import inspect
import typing
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol

from awoke.errors import ConfigError
from awoke.payloads.formats import json
from awoke.rpc.call_options import CALLER_WORDS
from awoke.rpc.forms import form_in, is_form, only_form

STREAMS = (collections.abc.Iterator, collections.abc.Iterable, collections.abc.Generator)
ASYNC_STREAMS = (collections.abc.AsyncIterator, collections.abc.AsyncIterable, collections.abc.AsyncGenerator)
AWAITABLES = (collections.abc.Awaitable, collections.abc.Coroutine)


class ServiceCaller(Protocol):
    """Calls methods of a service."""

    @property
    def service(self) -> str: ...
    @property
    def call(self) -> Callable[..., Any]: ...
    @property
    def acall(self) -> Callable[..., Any]: ...
    @property
    def stream(self) -> Callable[..., Any]: ...


class Proxy:
    """A service's methods as attributes."""

    def __init__(self, call: Callable[..., Any]) -> None:
        self._call = call

    def __getattr__(self, method: str) -> Callable[..., Any]:
        if method.startswith("_"):
            raise AttributeError(method)
        return partial(self._call, method)


class TypedClient:
    """A service's methods as attributes, which are set when it is made."""

    def __init__(self, service: str, name: str) -> None:
        self.__service, self.__name = service, name

    def __repr__(self) -> str:
        return f"<{self.__name} of service {self.__service!r}>"

    if not TYPE_CHECKING:

        def __getattr__(self, method: str) -> Any:
            text = f"{self.__name} has no method {method!r} that service {self.__service!r} could be asked for"
            raise AttributeError(text)


class MethodShape(NamedTuple):
    """The call of a class's method."""

    name: str
    parameters: tuple[str, ...]
    """The names of those that may be given by their place."""
    returns: Any
    """The type or the format of the result, or of each result of a stream."""
    is_async: bool
    is_stream: bool
    argument: Any = None
    """The format of the only argument; None: JSON."""


def client_of(caller: ServiceCaller, methods: Any, timeout_s: float | None, *, is_async: bool = False) -> Any:
    """Returns an object with the public methods of a class. Each calls the service's method of its name.

    Raises:
        ConfigError: no class, one without methods, or a method that can't be called by name.
    """
    if not isinstance(methods, type):
        raise ConfigError(f"a client is made of a typing.Protocol or a class, not of {methods!r}", "client")
    client = TypedClient(caller.service, methods.__name__)
    for name, function in functions_of(methods):
        shape = shape_of(f"{methods.__name__}.{name}", name, function)
        if is_async and not shape.is_async:
            text = f"{methods.__name__}.{name} would block an event loop: declare it async def, or use client(…)"
            raise ConfigError(text, "client")
        setattr(client, name, calling(caller, shape, timeout_s))
    return client


def functions_of(methods: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Gives the public methods of a class, inherited ones too.

    Raises:
        ConfigError: there is none.
    """
    found: dict[str, Callable[..., Any]] = {}
    for base in reversed(methods.__mro__):
        if base not in (object, Protocol, Generic):
            own = {name: each for name, each in vars(base).items() if not name.startswith("_")}
            found.update({name: each for name, each in own.items() if inspect.isfunction(each)})
    if not found:
        raise ConfigError(f"{methods.__name__} has no public methods to call", "client")
    yield from found.items()


def shape_of(path: str, name: str, function: Callable[..., Any]) -> MethodShape:
    """Reads a method's signature and annotations.

    Raises:
        ConfigError: it can't be called by name, or an annotation means nothing.
    """
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as error:
        raise ConfigError(f"{path}: its annotations can't be read: {error}", "client") from None
    hint, parameters = hints.get("return", Any), list(inspect.signature(function).parameters.values())[1:]
    for each in parameters:
        if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD, each.POSITIONAL_ONLY) or each.name in CALLER_WORDS:
            text = f"{path}, parameter {each.name!r}: a remote method can't have it; see `Rpc.method`"
            raise ConfigError(text, "client")
    places = tuple(each.name for each in parameters if each.kind == each.POSITIONAL_OR_KEYWORD)
    origin, is_coroutine = typing.get_origin(hint) or hint, inspect.iscoroutinefunction(function)
    if is_coroutine and origin in ASYNC_STREAMS:
        raise ConfigError(f"{path}: a stream is declared with def, not async def: def {name}(…) -> {hint}", "client")
    is_stream = origin in STREAMS or origin in ASYNC_STREAMS
    is_async = is_coroutine or origin in ASYNC_STREAMS or origin in AWAITABLES
    returns = result_of(hint, origin, is_stream)
    returns = form_in(returns) or returns
    if returns is not Any and returns is not None and not is_form(returns):
        try:
            json.result_decoder(returns)
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}", "client") from None
    argument = argument_of(path, {each.name: hints.get(each.name) for each in parameters})
    return MethodShape(name, places, returns, is_async, is_stream, argument)


def argument_of(path: str, hints: Mapping[str, Any]) -> Any:
    """Returns the format that the annotation of the only parameter names; None: JSON.

    Raises:
        ConfigError: there are more parameters beside it.
    """
    try:
        return only_form(hints)
    except TypeError as error:
        raise ConfigError(f"{path}: {error}", "client") from None


def result_of(hint: Any, origin: Any, is_stream: bool) -> Any:
    """Returns the type of one result."""
    if not is_stream and origin not in AWAITABLES:
        return hint
    inner = typing.get_args(hint) or (Any,)
    return inner[-1] if origin is collections.abc.Coroutine else inner[0]


def calling(caller: ServiceCaller, shape: MethodShape, timeout_s: float | None) -> Callable[..., Any]:
    """Returns the function that calls a method of this shape."""
    name, returns, places = shape.name, shape.returns, shape.parameters
    remote = caller.stream if shape.is_stream else caller.acall if shape.is_async else caller.call
    ask = partial(remote, name, timeout_s=timeout_s, argument=shape.argument, returns=returns)
    turn: Callable[[Any], Any] | None = None
    if shape.is_stream:
        turn = aiter if shape.is_async else iter

    def method(*args: Any, **kwargs: Any) -> Any:
        result = ask(**by_name(name, places, args, kwargs)) if args else ask(**kwargs)
        return result if turn is None else turn(result)

    method.__name__ = method.__qualname__ = name
    return method


def by_name(method: str, places: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Returns all arguments by name.

    Raises:
        TypeError: there are too many, or one comes twice.
    """
    if len(args) > len(places):
        raise TypeError(f"{method}() takes {len(places)} arguments by place, {len(args)} were given")
    for name, value in zip(places, args, strict=False):
        if name in kwargs:
            raise TypeError(f"{method}() got several values for argument {name!r}")
        kwargs[name] = value
    return kwargs
