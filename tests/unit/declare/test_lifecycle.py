"""Start-up and shutdown functions, how they belong together, and requests to stop an app."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from awoke.declare.lifecycle import Lifecycle, StopRequests, lifecycle_function
from awoke.errors import ConfigError


def functions(*names: str) -> list[Any]:
    """Returns functions with these names."""

    def named(name: str) -> Any:
        def function() -> None: ...

        function.__qualname__ = name
        return function

    return [named(name) for name in names]


def names_of(lifecycle: Lifecycle, started: int) -> list[str]:
    return [each.name for each in lifecycle.shutdowns_after(started)]


def test_shutdown_functions_run_in_reverse_order_for_what_was_started() -> None:
    lifecycle = Lifecycle()
    connect, load, unload, disconnect = functions("connect", "load", "unload", "disconnect")
    lifecycle.add_startup(connect)
    lifecycle.add_startup(load)
    lifecycle.add_shutdown(disconnect)
    lifecycle.add_shutdown(unload)
    assert [each.name for each in lifecycle.startups] == ["connect", "load"]
    assert names_of(lifecycle, 2) == ["unload", "disconnect"]
    assert names_of(lifecycle, 1) == ["disconnect"], "load has failed: there is nothing to unload"
    assert names_of(lifecycle, 0) == []


def test_a_shutdown_function_belongs_to_a_start_up_function_before_it() -> None:
    lifecycle = Lifecycle()
    alone, connect, disconnect, more = functions("alone", "connect", "disconnect", "more")
    lifecycle.add_shutdown(alone)
    lifecycle.add_startup(connect)
    lifecycle.add_shutdown(disconnect)
    lifecycle.add_shutdown(more)
    assert [each.startup for each in lifecycle.shutdowns] == [None, 0, None]
    assert names_of(lifecycle, 0) == ["more", "alone"], "these belong to no start-up function, and run always"
    assert names_of(lifecycle, 1) == ["more", "disconnect", "alone"]


async def later() -> None: ...


def test_an_app_needs_a_loop_for_async_functions_only() -> None:
    lifecycle = Lifecycle()
    lifecycle.add_startup(*functions("connect"))
    assert not lifecycle.has_async
    lifecycle.add_shutdown(functools.partial(later))
    assert lifecycle.has_async


class Calls:
    """Objects that are called as functions are."""

    class Async:
        async def __call__(self) -> None: ...

    class Yields:
        def __call__(self) -> Iterator[int]:
            yield 1


@pytest.mark.parametrize(
    ("function", "is_async"),
    [(later, True), (Calls.Async(), True), (functools.partial(later), True), (print, False), (lambda x=1: x, False)],
)
def test_a_function_is_known_as_async_or_not(function: Any, is_async: bool) -> None:
    assert lifecycle_function(function, "on_startup").is_async is is_async


def yields() -> Iterator[int]:
    yield 1


async def yields_later() -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize("function", [yields, yields_later, Calls.Yields()])
def test_a_function_with_a_yield_is_refused(function: Any) -> None:
    with pytest.raises(
        ConfigError, match=r"@app\.on_shutdown takes a function that returns; .* has a yield"
    ) as refused:
        Lifecycle().add_shutdown(function)
    assert refused.value.property == "on_shutdown"


def test_a_function_that_needs_arguments_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"@app\.on_startup calls .*<lambda> without arguments: missing"):
        Lifecycle().add_startup(lambda app: None)  # type: ignore[arg-type, misc]


def test_a_request_reaches_every_runner_that_listens() -> None:
    requests, heard = StopRequests(), list[str]()
    end_first = requests.listen(lambda: heard.append("first"))
    requests.listen(lambda: heard.append("second"))
    requests.request()
    assert heard == ["first", "second"]
    assert end_first is not None
    end_first()
    end_first()
    requests.request()
    assert heard == ["first", "second", "second"]


def test_a_request_before_the_first_start_ends_that_start_only() -> None:
    requests, heard = StopRequests(), list[str]()
    requests.request()
    requests.request()
    assert requests.listen(lambda: heard.append("first")) is None
    assert requests.listen(lambda: heard.append("second")) is not None
    requests.request()
    assert heard == ["second"]


def test_a_request_between_two_runs_is_for_neither() -> None:
    requests = StopRequests()
    end = requests.listen(lambda: None)
    assert end is not None
    end()
    requests.request()
    assert requests.listen(lambda: None) is not None


def test_a_listener_may_end_its_listening_when_it_is_called() -> None:
    requests, heard = StopRequests(), list[str]()

    def stop() -> None:
        heard.append("stop")
        assert end is not None
        end()

    end = requests.listen(stop)
    requests.request()
    requests.request()
    assert heard == ["stop"]
