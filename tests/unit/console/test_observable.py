"""A changed object tells each function, until it is no longer to be told."""

from __future__ import annotations

from awoke.console.observable import Observable


class Counter(Observable):
    def count(self) -> None:
        self._tell()


def test_a_function_is_called_after_each_change_until_it_ends_that() -> None:
    counter, told = Counter(), list[str]()
    first = counter.subscribe(lambda: told.append("first"))
    counter.subscribe(lambda: told.append("second"))
    counter.count()
    assert sorted(told) == ["first", "second"]
    first()
    first()  # Ending it again does nothing.
    counter.count()
    assert sorted(told) == ["first", "second", "second"]


def test_a_function_may_subscribe_and_end_while_it_is_called() -> None:
    counter, told = Counter(), list[str]()

    def once() -> None:
        told.append("once")
        end()
        counter.subscribe(lambda: told.append("later"))

    end = counter.subscribe(once)
    counter.count()
    assert told == ["once"]
    counter.count()
    assert told == ["once", "later"]
