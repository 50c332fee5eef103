"""Makes what functions of `Depends` return for a long scope: an app, a process, an assignment."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import Context, copy_context
from typing import Any

from awoke.declare.consumer import Application
from awoke.declare.handlers import check_ran
from awoke.declare.injection.opened import DONE, Failed, Open, close, first
from awoke.declare.injection.parameters import Dependency
from awoke.declare.injection.sources import Assignment, OfApp, PerAssignment, Source
from awoke.waiting.drive import within


class Scoped:
    """The values of one scope: made in order, closed in reverse. One thread or task at a time."""

    def __init__(
        self,
        app: Application,
        outer: Mapping[Any, Any],
        assignment: Assignment | None = None,
        context: Context | None = None,
    ) -> None:
        self._app = app
        self.made: dict[Any, Any] = dict(outer)
        """The values by the keys of their functions, with those of longer scopes, and the assignment."""
        if assignment is not None:
            self.made[Assignment] = assignment
        self._opened: list[Open] = []
        self._context = copy_context() if context is None else context
        """The functions run in it, and generators are closed in it: what they set is their own."""

    def within(self, assignment: Assignment | None = None) -> Scoped:
        """Returns the values of a shorter scope, with none of its own yet."""
        return Scoped(self._app, self.made, assignment, None if assignment is None else self._context.copy())

    async def make(self, dependency: Dependency) -> None:
        """Calls a function of `Depends`, if its value is not there yet.

        Raises what the function raises.
        """
        if dependency.key not in self.made:
            await within(self._context, self._make(dependency))

    async def _make(self, dependency: Dependency) -> None:
        found: Any = dependency.function(**{each.name: self.argument(each.source) for each in dependency.parameters})
        if dependency.kind == "def":
            check_ran(found, dependency.name)
        elif dependency.kind == "async def":
            found = await found
        else:
            self._opened.append((found, dependency.name))
            is_async = dependency.kind == "async generator"
            found = first(await anext(found, DONE) if is_async else next(found, DONE), dependency.name)
        self.made[dependency.key] = found

    def argument(self, source: Source | Dependency) -> Any:
        """Returns the argument of a parameter that does not depend on the message."""
        if isinstance(source, Dependency):
            return self.made[source.key]
        if isinstance(source, OfApp):
            return source.get(self._app)
        assert isinstance(source, PerAssignment)
        return self.made[Assignment]

    async def close(self, error: BaseException | None = None) -> Failed:
        """Closes all in reverse order, with the error that ends the scope; returns the functions that failed."""
        return await within(self._context, close(self._opened, error))
