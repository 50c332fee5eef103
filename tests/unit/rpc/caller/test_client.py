"""Typed clients and the arguments of callers: what needs no broker."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Coroutine, Generator, Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest

import awoke
from awoke import rpc
from awoke.rpc.caller.client import MethodShape, shape_of

REPOSITORY = Path(__file__).resolve().parents[4]
TYPED = Path("tests") / "typing" / "rpc_clients.py"


class Declared(Protocol):
    def plain(self, sku: str, quantity: int = 1, *, note: str = "") -> float: ...
    def untyped(self, sku): ...  # type: ignore[no-untyped-def]
    def nothing(self) -> None: ...
    def many(self) -> list[int]: ...
    def iterator(self) -> Iterator[int]: ...
    def iterable(self) -> Iterable[int]: ...
    def generator(self) -> Generator[int, None, None]: ...
    async def awaited(self) -> float: ...
    def awaitable(self) -> Awaitable[float]: ...
    def coroutine(self) -> Coroutine[Any, Any, float]: ...
    def stream(self) -> AsyncIterator[int]: ...


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("plain", MethodShape("plain", ("sku", "quantity"), float, False, False)),
        ("untyped", MethodShape("untyped", ("sku",), Any, False, False)),
        ("nothing", MethodShape("nothing", (), type(None), False, False)),
        ("many", MethodShape("many", (), list[int], False, False)),
        ("iterator", MethodShape("iterator", (), int, False, True)),
        ("iterable", MethodShape("iterable", (), int, False, True)),
        ("generator", MethodShape("generator", (), int, False, True)),
        ("awaited", MethodShape("awaited", (), float, True, False)),
        ("awaitable", MethodShape("awaitable", (), float, True, False)),
        ("coroutine", MethodShape("coroutine", (), float, True, False)),
        ("stream", MethodShape("stream", (), int, True, True)),
    ],
)
def test_a_method_is_called_as_it_is_declared(name: str, shape: MethodShape) -> None:
    assert shape_of(name, name, getattr(Declared, name)) == shape


class WithRest(Protocol):
    def quote(self, *skus: str) -> float: ...


class WithTimeout(Protocol):
    def quote(self, timeout_s: float) -> float: ...


class WithCoroutineOfStream(Protocol):
    async def lines(self) -> AsyncIterator[int]: ...


class WithUnknown(Protocol):
    def quote(self) -> "Nowhere": ...  # type: ignore[name-defined]  # noqa: F821, UP037


class Empty(Protocol):
    def _hidden(self) -> None: ...


@pytest.mark.parametrize("methods", [WithRest, WithTimeout, WithCoroutineOfStream, WithUnknown, Empty, print, "Shop"])
async def test_a_class_that_can_not_be_called_by_name_is_refused(methods: Any) -> None:
    caller = rpc.Caller("shop", "127.0.0.1:1")  # On an event loop's thread nothing is opened yet.
    with pytest.raises(awoke.ConfigError) as refused:
        caller.client(methods)
    assert refused.value.property == "client"


async def test_an_async_client_has_no_method_that_blocks() -> None:
    caller = rpc.Caller("shop", "127.0.0.1:1")
    with pytest.raises(awoke.ConfigError, match=r"Declared\.plain would block"):
        caller.aclient(Declared)
    assert repr(caller.client(Declared)) == "<Declared of service 'shop'>"


def test_open_takes_the_arguments_of_the_constructor() -> None:
    parameters = inspect.signature(rpc.Caller).parameters.values()
    by_name = {each.name for each in parameters if each.kind == each.KEYWORD_ONLY}
    assert set(rpc.CallerOptions.__annotations__) == by_name


def test_mypy_accepts_and_refuses_calls_of_a_typed_client(tmp_path: Path) -> None:
    source = (REPOSITORY / TYPED).read_text()
    expected = {}
    for number, line in enumerate(source.splitlines(), 1):
        if found := re.search(r"type: ignore\[([a-z-]+)\]", line):
            expected[number] = found[1]
    bare = tmp_path / "bare.py"
    bare.write_text(re.sub(r"  # type: ignore\[[a-z-]+\]", "", source))
    cache = f"--cache-dir={REPOSITORY / '.mypy_cache' / 'typed'}"  # Without one, mypy reads all of awoke each time.
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", cache, "--no-error-summary", str(bare)]
    environment = {"MYPYPATH": str(REPOSITORY / "python"), "PATH": ""}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
    errors = re.findall(r"bare\.py:(\d+): error: .*\[([a-z-]+)\]", done.stdout)
    assert {int(number): code for number, code in errors} == expected, done.stdout + done.stderr
