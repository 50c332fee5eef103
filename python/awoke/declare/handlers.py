"""Checks user code: its signature and kind before it runs, and after a call, that its body ran at all.

A generator, a coroutine that nothing awaits and a function that takes other arguments fail silently otherwise: the call
returns at once, and the message would count as done.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import types
from collections.abc import Callable
from typing import Any, Literal

from awoke._native import DeliveryHandle
from awoke.declare.consumer import Consumer
from awoke.declare.signatures import signature_of
from awoke.errors import ConfigError, HandlerDidNotRun

Kind = Literal["def", "async def", "generator", "async generator"]

HOOKS = ("assigned", "tick", "revoked", "lost", "shutdown")

GENERATORS = (types.GeneratorType, types.AsyncGeneratorType)


def kind_of(function: Callable[..., Any]) -> Kind:
    """Returns how a callable is called; of an object with `__call__`, that is looked at."""
    while isinstance(function, functools.partial):
        function = function.func
    functions = [function]
    if not inspect.isroutine(function) and not isinstance(function, type):
        functions.append(inspect.getattr_static(type(function), "__call__", None))
    for each in functions:
        if inspect.isasyncgenfunction(each):
            return "async generator"
        if inspect.iscoroutinefunction(each):
            return "async def"
        if inspect.isgeneratorfunction(each):
            return "generator"
    return "def"


def check_topic(topic: object, decorator: str) -> None:
    """Checks that a decorator was called with a topic.

    Raises:
        ConfigError: It got the function or class itself, because its parentheses are missing.
    """
    if callable(topic):
        name = getattr(topic, "__qualname__", topic)
        text = f"{name}: {decorator} needs parentheses and a topic: write {decorator}('orders')"
        raise ConfigError(text, "topic")


def check_function(function: Any, where: str, *, may_yield: bool = False) -> None:
    """Checks that a function can process one message for each call.

    Raises:
        ConfigError: It is no function, or is a generator, whose results go nowhere unless it `may_yield`.
    """
    if isinstance(function, type):
        text = f"{where}: is a class; derive from awoke.Consumer and use @app.consumer, or decorate a function"
        raise ConfigError(text, "handler")
    if not callable(function):
        raise ConfigError(f"{where}: a handler is a function, not {function!r}", "handler")
    if not may_yield:
        _check_body(function, where)


def check_consumer(consumer: type[Consumer], where: str) -> None:
    """Checks that the methods of a consumer class can be called, and that their bodies run then.

    Raises:
        ConfigError: There is no `consume`; a method is a generator; a hook takes other arguments, or is `async def` and
            `consume` is not.
    """
    if consumer.consume is Consumer.consume:
        text = f"{where}: has no method consume(self, batch), so its messages would never be processed"
        raise ConfigError(text, "consumer")
    _check_method(consumer, "consume", where)
    _check_method(consumer, "__init__", where, 0, "no argument")
    is_async = kind_of(consumer.consume) == "async def"
    for hook in HOOKS:
        _check_method(consumer, hook, where, 0, "no argument")
        if not is_async and kind_of(getattr(consumer, hook)) == "async def":
            text = f"{where}.{hook}: is async def, but consume is not, so nothing would await it; make both the same"
            raise ConfigError(text, "consumer")


def check_plain(function: Any, where: str) -> None:
    """Checks that a function that is called without an event loop is a plain `def`.

    Raises:
        ConfigError: It is no function, is `async def`, or is a generator.
    """
    if not callable(function):
        raise ConfigError(f"{where}: takes a function, not {function!r}", "handler")
    _check_body(function, where)
    if kind_of(function) != "def":
        raise ConfigError(f"{where}: {_name(function)} is async def, and nothing would await it; use def", "handler")


def check_ran(result: object, name: str) -> None:
    """Checks that what a call returned does not still have to be awaited or iterated. Call it with anything but None.

    Raises:
        HandlerDidNotRun: It does. A coroutine is closed.
    """
    kind: type[Any] = type(result)
    if not is_unfinished(kind):  # type: ignore[arg-type]
        return
    if hasattr(result, "send") and hasattr(result, "close"):
        with contextlib.suppress(Exception):
            result.close()  # So that Python does not warn of a coroutine that was never awaited.
    if issubclass(kind, GENERATORS):
        text = f"{name} returned {_article(kind.__name__)} that nothing iterates, so its body has not run: process the"
        raise HandlerDidNotRun(f"{text} message without yield")
    text = f"{name} returned {_article(kind.__name__)} that nothing has awaited, so its body has not run. Make {name}"
    text = f"{text} async def, and await the call in it; if a decorator wraps it, make the wrapper async def, too"
    raise HandlerDidNotRun(text)


@functools.lru_cache(maxsize=1_024)
def is_unfinished(kind: type[Any]) -> bool:
    """Tells whether values of a type still have to be awaited or iterated."""
    if issubclass(kind, DeliveryHandle):
        return False  # Its message is in the producer's queue already, awaited or not.
    return issubclass(kind, GENERATORS) or hasattr(kind, "__await__")


def _check_body(function: Any, where: str) -> None:
    if "generator" in kind_of(function):
        text = f"{where}: {_name(function)} has a yield, so a call would only make a generator and never run its body"
        raise ConfigError(text, "handler")


def has_self(consumer: type[Consumer], name: str) -> bool:
    """Tells whether the first parameter of a method is the instance."""
    return not isinstance(inspect.getattr_static(consumer, name), (staticmethod, classmethod))


def _check_method(consumer: type[Consumer], name: str, where: str, count: int | None = None, takes: str = "") -> None:
    """Checks a method, and its parameters where their `count` is given."""
    function = getattr(consumer, name)
    if not callable(function):
        raise ConfigError(f"{where}.{name}: must be a method, not {function!r}", "consumer")
    _check_body(function, f"{where}.{name}")
    if count is not None:
        _check_arguments(function, count + has_self(consumer, name), f"{where}.{name}", f"{takes} beside self")


def _check_arguments(function: Any, count: int, where: str, takes: str) -> None:
    try:
        # A decorator may add arguments of its own: only the outermost function's signature counts.
        signature = signature_of(function, follows_wrapped=False)
    except (TypeError, ValueError, NameError):
        return  # A function of a C library without a known signature.
    try:
        signature.bind(*range(count))
    except TypeError:
        text = f"{where}: awoke calls it with {takes}, which does not fit its parameters {signature}"
        raise ConfigError(text, "handler") from None


def does_not_fit(function: Any, where: str, takes: str) -> ConfigError:
    """Returns the error of a handler with parameters that nothing fills."""
    signature = signature_of(function, follows_wrapped=False)
    text = f"{where}: awoke calls it with {takes}, which does not fit its parameters {signature}"
    return ConfigError(f"{text}; an annotation may say what each of the others gets", "handler")


def _name(function: Any) -> str:
    return str(getattr(function, "__qualname__", function))


def _article(word: str) -> str:
    return f"{'an' if word[0] in 'aeiou' else 'a'} {word}"
