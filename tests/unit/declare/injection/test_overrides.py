"""Other functions in place of those that handlers depend on, and what the processes of an app share."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Annotated, Any

import pytest

import awoke
from awoke.declare.injection import Depends
from awoke.declare.injection.overrides import AppDependencies
from awoke.declare.injection.parameters import in_order
from awoke.settings import Settings
from tests.unit.declare.injection.fakes import app, parameters

said: list[str] = []


@pytest.fixture(autouse=True)
def quiet() -> None:
    said.clear()


def pool(settings: Settings) -> str:
    said.append("pool")
    return "pool"


def session(of: Annotated[str, Depends(pool, scope="app")]) -> Iterator[str]:
    yield of


def other(settings: Settings) -> str:
    said.append("other")
    return "other"


def another() -> str:
    return "another"


def unknown(more: int) -> str:
    return "unknown"


def handle(message: Any, it: Annotated[str, Depends(session)]) -> None: ...


GIVEN = parameters(handle).by_name


def names(known: AppDependencies) -> list[str]:
    return [each.name for each in in_order(known.of(GIVEN))]


def test_a_function_is_replaced_within_the_block_also_where_another_needs_it() -> None:
    known = AppDependencies(app())
    assert names(known) == ["pool", "session"]
    with known.override(pool, other):
        assert names(known) == ["other", "session"]
        with known.override(pool, another), known.override(session, another):
            assert names(known) == ["another"]
        assert names(known) == ["other", "session"]
    assert names(known) == ["pool", "session"]


def test_a_block_that_fails_ends_its_override() -> None:
    known = AppDependencies(app())
    with pytest.raises(ValueError, match="no good"), known.override(pool, other):
        raise ValueError("no good")
    assert names(known) == ["pool", "session"]


def test_a_function_that_can_not_be_called_is_refused_and_changes_nothing() -> None:
    known = AppDependencies(app())
    with pytest.raises(awoke.ConfigError, match="override: unknown: nothing says what its parameter 'more' gets"):
        known.override(pool, unknown).__enter__()
    with pytest.raises(awoke.ConfigError, match="Depends takes a function"):
        known.override(pool, "text").__enter__()  # type: ignore[arg-type]
    assert names(known) == ["pool", "session"]


def test_processes_share_what_the_app_has_and_nothing_else() -> None:
    known = AppDependencies(app())
    known.share(GIVEN)
    known.share(GIVEN)
    assert said == ["pool"]
    one, another_process = known.of_process(), known.of_process()
    assert list(one.made.values()) == list(another_process.made.values()) == ["pool"]
    one.made["own"] = 1
    assert "own" not in another_process.made


def test_an_app_that_is_run_with_another_function_has_its_value() -> None:
    known = AppDependencies(app())
    known.share(GIVEN)
    with known.override(pool, other):
        known.share(GIVEN)
        assert [known.of_process().made[each.key] for each in in_order(known.of(GIVEN))[:1]] == ["other"]
    assert said == ["pool", "other"]


def test_a_function_that_fails_is_called_again_at_the_next_start() -> None:
    def refuse() -> str:
        said.append("refuse")
        raise OSError("no database")

    known = AppDependencies(app())
    with known.override(pool, refuse):
        for _ in range(2):
            with pytest.raises(OSError, match="no database"):
                known.share(GIVEN)
    assert said == ["refuse", "refuse"]
    assert known.of_process().made == {}


def test_threads_that_start_an_app_at_once_make_its_values_once() -> None:
    known, together = AppDependencies(app()), threading.Barrier(8)

    def start() -> None:
        together.wait(30)
        known.share(GIVEN)

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert said == ["pool"]
