"""Files that are watched: each change is reloaded, also one that comes during a reload."""

from __future__ import annotations

import contextlib
import queue
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from awoke.errors import ConfigError
from awoke.swarm import watching
from awoke.swarm.watching import Watch
from awoke.web.loop import Loop

OnEnd = Callable[[str | None], object]


class Files:
    """The library, and the changes that it reports. The scenarios use the real one."""

    def __init__(self) -> None:
        self.changes: queue.SimpleQueue[set[tuple[int, str]]] = queue.SimpleQueue()

    def PythonFilter(self) -> None: ...  # noqa: N802 - the library's name

    def watch(self, *_: Path, **__: Any) -> Iterator[set[tuple[int, str]]]:
        return iter(self.changes.get, set[tuple[int, str]]())

    def save(self) -> None:
        self.changes.put({(1, "/shop/shop.py")})

    def close(self) -> None:
        self.changes.put(set())


class Reloads:
    """The reloads of a swarm: `ends` are those that have begun."""

    def __init__(self) -> None:
        self.ends: list[OnEnd] = []
        self.is_possible = True

    def begin(self, on_end: OnEnd) -> bool:
        if self.is_possible:
            self.ends.append(on_end)
        return self.is_possible


@pytest.fixture
def reloads() -> Reloads:
    return Reloads()


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> Files:
    files = Files()
    monkeypatch.setattr(watching, "needs", lambda module, extra: files)
    return files


@pytest.fixture
def loop(files: Files, reloads: Reloads) -> Iterator[Loop]:
    loop = Loop()
    watch = Watch(Path("/shop"), loop, reloads.begin)
    watch.open()
    with contextlib.closing(loop), contextlib.closing(watch), contextlib.closing(files):
        yield loop


def test_a_change_is_reloaded(files: Files, loop: Loop, reloads: Reloads) -> None:
    files.save()
    loop.turn()
    assert len(reloads.ends) == 1


def test_a_change_during_a_reload_is_reloaded_after_it(files: Files, loop: Loop, reloads: Reloads) -> None:
    files.save()
    loop.turn()
    reloads.is_possible = False
    files.save()
    loop.turn()
    assert len(reloads.ends) == 1
    reloads.is_possible = True
    reloads.ends[0]("SyntaxError: invalid syntax")
    assert len(reloads.ends) == 2
    reloads.ends[1](None)
    assert len(reloads.ends) == 2, "nothing has changed since"


def test_a_library_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, reloads: Reloads) -> None:
    def missing(module: str, extra: str) -> None:
        raise ConfigError(f"pip install 'awoke[{extra}]'", extra)

    monkeypatch.setattr(watching, "needs", missing)
    loop = Loop()
    watch = Watch(Path("/shop"), loop, reloads.begin)
    with contextlib.closing(loop), contextlib.closing(watch), pytest.raises(ConfigError, match=r"awoke\[watch\]"):
        watch.open()
