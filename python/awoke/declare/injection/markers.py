"""The marks of a handler's parameters, for `Annotated`: `tenant: Annotated[str, awoke.Header("tenant")]`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from awoke.errors import ConfigError

Scope = Literal["app", "process", "assignment", "job"]
"""The life of a value that a function of `Depends` returns: see `Depends`."""

SCOPES: tuple[Scope, ...] = ("app", "process", "assignment", "job")
"""The scopes, from the longest life to the shortest."""

Type = TypeVar("Type")

# The marks are structs: two tuples without a field are equal, and `Annotated` would take one for the other.


class IsValue(msgspec.Struct, frozen=True):
    """Marks the parameter that gets the value of the message."""


class IsKey(msgspec.Struct, frozen=True):
    """Marks the parameter that gets the key of the message."""


Value = Annotated[Type, IsValue()]
"""The value of the message, decoded: `order: awoke.Value[Order]`."""

Key = Annotated[Type, IsKey()]
"""The key of the message, decoded: `id: awoke.Key[int]`."""


class HeaderMark(msgspec.Struct, frozen=True):
    """The mark that `Header` makes."""

    name: str


def Header(name: str) -> Any:  # noqa: N802 - as `Depends`.
    """Marks the parameter that gets a header of the message, as text, bytes, or a type that text can be read as.

    It may also be the default of the parameter: `tenant: str = Header("tenant")`. If the header occurs more than once,
    the last value counts. Without the header the parameter gets its default, or None if its type takes that; else the
    message fails with a `DecodeError`.
    """
    return HeaderMark(name)


class Service(msgspec.Struct, frozen=True):
    """Marks the parameter that gets the app's caller of a service: `Annotated[awoke.rpc.Caller, Service("prices")]`."""

    name: str


class DependsMark:
    """The mark that `Depends` makes."""

    __slots__ = ("function", "scope")

    def __init__(self, function: Callable[..., Any], scope: Scope = "job") -> None:
        if not callable(function):
            raise ConfigError(f"Depends takes a function, as in Depends(session), not {function!r}", "depends")
        if scope not in SCOPES:
            raise ConfigError(f"Depends: scope is one of {', '.join(SCOPES)}, not {scope!r}", "depends")
        self.function = function
        self.scope = scope

    def __repr__(self) -> str:
        return f"Depends({getattr(self.function, '__qualname__', self.function)}, scope={self.scope!r})"


def Depends(function: Callable[..., Any], scope: Scope = "job") -> Any:  # noqa: N802 - the name that FastAPI gave it.
    """Marks the parameter that gets what a function returns, or yields once: `Annotated[Session, Depends(session)]`.

    It may also be the default of the parameter: `session: Session = Depends(session)`.
    The function's own parameters are filled in the same way. It is called once for each life of the `scope`:

    - `job` (the default): one call of the handler;
    - `assignment`: from the first job of a partition until the partition is revoked or lost, or the app stops;
    - `process`: from the start of the process, after the functions of `on_startup`, until its stop;
    - `app`: once, and in a swarm before the processes are forked, which share it. It must return what survives a
      fork: no client, connection or thread.

    A function with a `yield` goes on behind it at the end of the scope, in reverse order. At the end of a job, it does
    so before the message counts as done, and gets the exception that ends the job; it can't hide it. `async def`
    functions need an `async def` handler.

    Raises:
        ConfigError: It is no function, or there is no such scope.
    """
    return DependsMark(function, scope)
