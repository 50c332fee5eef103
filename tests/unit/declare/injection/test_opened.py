"""Generators of functions of Depends: begun, closed behind their yield, and what they may not do."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

import awoke
from awoke.declare.injection.opened import DONE, Failed, Open, add_notes, close, first
from awoke.waiting.drive import run_now

ERROR = ValueError("no good")


class Case:
    """Generators that note their calls."""

    def __init__(self) -> None:
        self.said: list[Any] = []

    def plain(self, name: str, raises: BaseException | None = None, *, hides: bool = False) -> Iterator[str]:
        try:
            yield name
        except BaseException as error:
            self.said.append((name, error))
            if not hides:
                raise
        else:
            self.said.append(name)
        finally:
            if raises is not None:
                raise raises

    async def later(self, name: str, raises: BaseException | None = None, *, hides: bool = False) -> AsyncIterator[str]:
        within = self.plain(name, raises, hides=hides)
        try:
            yield next(within)
        except BaseException as error:
            try:
                within.throw(error)  # type: ignore[attr-defined]
            except StopIteration:
                return
        else:
            next(within, None)

    def opened(self, *generators: Any) -> list[Open]:
        """Returns generators that are begun, plain or async ones, under their numbers."""
        return [(each, str(number)) for number, each in enumerate(generators)]


def begun(case: Case, *names: str, **options: Any) -> list[Open]:
    generators = [case.plain(name, **options) for name in names]
    for each in generators:
        next(each)
    return case.opened(*generators)


async def begun_async(case: Case, *names: str, **options: Any) -> list[Open]:
    generators = [case.later(name, **options) for name in names]
    for each in generators:
        await anext(each)
    return case.opened(*generators)


def close_now(opened: list[Open], error: BaseException | None = None) -> Failed:
    """Closes generators none of which is async."""
    return run_now(close(opened, error), "test")


def test_a_generator_gives_what_it_yields_first() -> None:
    case = Case()
    assert first(next(case.plain("a"), DONE), "a") == "a"


def test_a_generator_that_yields_nothing_has_no_value() -> None:
    with pytest.raises(awoke.HandlerDidNotRun, match="session: ended without a yield"):
        first(next(iter(()), DONE), "session")


def twice() -> Iterator[int]:
    with contextlib.suppress(ValueError):
        yield 1
    yield 2


async def twice_async() -> AsyncIterator[int]:
    with contextlib.suppress(ValueError):
        yield 1
    yield 2


@pytest.mark.parametrize("error", [None, ERROR])
def test_a_generator_that_yields_more_than_once_is_closed_and_fails(error: BaseException | None) -> None:
    async def run() -> Any:
        generator: Any = twice_async()
        await anext(generator)
        return generator, await close([(generator, "session")], error)

    generator: Any = twice()
    next(generator)
    later, failed = asyncio.run(run())
    for name, raised in [*failed, *close_now([(generator, "session")], error)]:
        assert name == "session"
        assert isinstance(raised, awoke.HandlerDidNotRun)
        assert "yields more than once" in str(raised)
    assert (generator.gi_frame, later.ag_frame) == (None, None)


def test_all_are_closed_the_last_one_first() -> None:
    case = Case()
    assert close_now(begun(case, "a", "b", "c")) == []
    assert case.said == ["c", "b", "a"]


def test_async_ones_are_closed_between_the_others() -> None:
    case = Case()

    async def run() -> Any:
        opened = [*begun(case, "a"), *await begun_async(case, "b"), *begun(case, "c")]
        return await close(opened)

    assert asyncio.run(run()) == []
    assert case.said == ["c", "b", "a"]


@pytest.mark.parametrize("hides", [False, True])
def test_each_gets_the_error_that_ends_the_scope_whatever_the_others_do_with_it(hides: bool) -> None:
    case = Case()

    async def run() -> Any:
        opened = [*await begun_async(case, "a"), *await begun_async(case, "b", hides=hides)]
        return await close(opened, ERROR)

    assert close_now([*begun(case, "a"), *begun(case, "b", hides=hides)], ERROR) == []
    assert asyncio.run(run()) == []
    assert case.said == [("b", ERROR), ("a", ERROR)] * 2


@pytest.mark.parametrize("error", [None, ERROR])
def test_those_that_fail_are_named_and_keep_none_of_the_others_open(error: BaseException | None) -> None:
    case, other = Case(), OSError("no connection")

    async def run() -> Any:
        return await close([*await begun_async(case, "a"), *await begun_async(case, "b", raises=other)], error)

    assert close_now([*begun(case, "a"), *begun(case, "b", raises=other)], error) == [("0", other)]
    assert asyncio.run(run()) == [("0", other)]
    assert [each if error is None else each[0] for each in case.said] == ["b", "a"] * 2


def test_a_list_that_was_closed_is_empty() -> None:
    case = Case()
    opened = begun(case, "a")
    close_now(opened)
    assert (opened, close_now(opened), case.said) == ([], [], ["a"])


def test_an_error_says_what_failed_because_of_it() -> None:
    error = ValueError("no good")
    add_notes(error, [("session", OSError("no connection"))])
    assert error.__notes__ == ["session failed, too, while it was closed: OSError: no connection"]
