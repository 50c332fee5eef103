"""A service for a test: it answers remote calls with functions of the test, and records them."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from awoke.app.app import App
from awoke.declare.handlers import kind_of
from awoke.errors import ConfigError
from awoke.testing.probe import Probe


@dataclass(frozen=True)
class ServiceCall:
    """A remote call that a service of a test has got."""

    method: str
    arguments: Mapping[str, Any]
    """By name, without those that the caller has left out."""


class TestService:
    """A service that answers with functions of the test, and records their calls. Any thread.

    Made by the fixture `awoke_service`.
    """

    __test__ = False
    """Says that this is no class of tests."""

    def __init__(self, name: str, functions: Mapping[str, Callable[..., Any]], run: Callable[[App], Probe]) -> None:
        self.app = App(name)
        """The app that serves the functions."""
        self._lock = threading.Lock()
        self._calls: list[ServiceCall] = []
        for method, function in functions.items():
            self.app.rpc.method(name=method)(self._recorded(method, function))
        self.probe = run(self.app)
        """The probe of that app."""

    @property
    def calls(self) -> list[ServiceCall]:
        """The calls until now, in the order in which they began."""
        with self._lock:
            return list(self._calls)

    def call(self, method: str, *, timeout_s: float = 10.0, **arguments: Any) -> Any:
        """Calls a method over Kafka and returns its result. Blocks.

        Raises:
            RpcError: As the method says, or `DeadlineExceeded` after `timeout_s`.
        """
        return self.app.caller(self.app.name).call(method, timeout_s=timeout_s, **arguments)

    async def acall(self, method: str, *, timeout_s: float = 10.0, **arguments: Any) -> Any:
        """Calls a method over Kafka and returns its result, for a test that is `async def`.

        Raises:
            RpcError: As the method says, or `DeadlineExceeded` after `timeout_s`.
        """
        return await self.app.caller(self.app.name).acall(method, timeout_s=timeout_s, **arguments)

    def _recorded(self, method: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Returns a function that records each call before it calls another one.

        Raises:
            ConfigError: The function is a generator.
        """
        if "generator" in kind_of(function):
            raise ConfigError(f"method {method!r} of a test service is a generator: give a function", "awoke_service")
        signature = inspect.signature(function)

        def record(arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
            with self._lock:
                self._calls.append(ServiceCall(method, signature.bind(*arguments, **named).arguments))

        @functools.wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            record(arguments, named)
            return function(*arguments, **named)

        @functools.wraps(function)
        async def acall(*arguments: Any, **named: Any) -> Any:
            record(arguments, named)
            return await function(*arguments, **named)

        return acall if kind_of(function) == "async def" else call
