"""The functions that an app's handlers depend on: others in their place, and values that processes share."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator

from awoke.declare.consumer import Application
from awoke.declare.injection.markers import DependsMark
from awoke.declare.injection.parameters import Parameter, dependency_of, in_order, overridden
from awoke.declare.injection.values import Scoped
from awoke.waiting.drive import run_now


class AppDependencies:
    """The functions of `Depends` of one app. Any thread."""

    def __init__(self, app: Application) -> None:
        self._app = app
        self._lock = threading.Lock()
        self._others: dict[Callable[..., object], Callable[..., object]] = {}
        self._shared = Scoped(app, {})
        """The values of the scope `app`."""

    @contextlib.contextmanager
    def override(self, function: Callable[..., object], other: Callable[..., object]) -> Iterator[None]:
        """Calls another function in place of one, in apps that start within the block.

        Raises:
            ConfigError: A parameter of the other has no annotation that says its argument.
        """
        before = dict(self._others)
        dependency_of(DependsMark(other), "override")  # So that a mistake is told where it is written.
        self._others[function] = other
        try:
            yield
        finally:
            self._others = before

    def of(self, parameters: Iterable[Parameter]) -> tuple[Parameter, ...]:
        """Returns parameters with the functions that count now.

        Raises:
            ConfigError: Another function can't live as long as the one that it replaces.
        """
        return overridden(tuple(parameters), self._others)

    def share(self, parameters: Iterable[Parameter]) -> None:
        """Makes what the scope `app` has, unless it is made already. Blocks as long as the functions do.

        Raises what a function raises.
        """
        with self._lock:
            for each in in_order(self.of(parameters)):
                if each.scope == "app":
                    run_now(self._shared.make(each), each.name)

    def of_process(self) -> Scoped:
        """Returns the values of a process: those that all share, and none of its own yet."""
        return self._shared.within()
