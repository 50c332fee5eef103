"""Files that are watched: each change is reloaded, also one that comes when no reload is possible."""

from __future__ import annotations

import contextlib
import queue
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from awoke.errors import ConfigError
from awoke.observe.web.loop import Loop
from awoke.swarm import watching
from awoke.swarm.watching import Watch

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
def loop() -> Iterator[Loop]:
    with contextlib.closing(Loop()) as loop:
        yield loop


@pytest.fixture
def watch(files: Files, loop: Loop, reloads: Reloads) -> Iterator[Watch]:
    watch = Watch(Path("/shop"), loop, reloads.begin)
    watch.open()
    with contextlib.closing(watch), contextlib.closing(files):
        yield watch


@pytest.mark.usefixtures("watch")
def test_a_change_is_reloaded(files: Files, loop: Loop, reloads: Reloads) -> None:
    files.save()
    loop.turn()
    assert len(reloads.ends) == 1


def test_a_change_while_no_reload_is_possible_is_reloaded_when_one_is(
    files: Files, loop: Loop, watch: Watch, reloads: Reloads
) -> None:
    """The swarm has no nodes yet, or is in a reload that anyone has begun."""
    reloads.is_possible = False
    files.save()
    loop.turn()
    assert not reloads.ends
    reloads.is_possible = True
    watch.reload_changed()
    assert len(reloads.ends) == 1
    watch.reload_changed()
    assert len(reloads.ends) == 1, "nothing has changed since"


def test_a_library_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, reloads: Reloads) -> None:
    def missing(module: str, extra: str) -> None:
        raise ConfigError(f"pip install 'awoke[{extra}]'", extra)

    monkeypatch.setattr(watching, "needs", missing)
    loop = Loop()
    watch = Watch(Path("/shop"), loop, reloads.begin)
    with contextlib.closing(loop), contextlib.closing(watch), pytest.raises(ConfigError, match=r"awoke\[watch\]"):
        watch.open()
