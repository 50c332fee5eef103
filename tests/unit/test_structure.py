"""The shape of the code: layers, exported names, the error tree, the stub."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys

import pytest

import awoke
from awoke import _native, errors
from tests.support.layers import rooms, upward
from tests.support.python_syntax import (
    MODULES,
    REPOSITORY,
    circles,
    disguised_sleeps,
    exported_names,
    foreign_privates,
    imports_of,
    names_in,
    polling_lines,
    sleeping_lines,
    tree_of,
    twins,
)
from tests.support.rust_syntax import FFI, SLEEP, lines_with, product_files


def test_imports_point_downward() -> None:
    assert upward(MODULES) == []


def test_no_rooms_import_one_another() -> None:
    graph = rooms(MODULES)
    assert [sorted(rooms) for rooms in circles(graph)] == []


def test_no_modules_import_one_another() -> None:
    graph = {module: imports_of(module) for module in MODULES}
    assert [sorted(each) for each in circles(graph)] == []


def test_a_circle_is_found_with_all_of_its_modules() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}, "e": set[str]()}
    assert circles(graph) == {frozenset("abc")}


@pytest.mark.parametrize(
    ("statement", "imported"),
    [
        ("import awoke.observe", "awoke.observe"),
        ("from awoke import observe", "awoke.observe"),
        ("from awoke.observe import Events", "awoke.observe"),
        ("from . import failures", "awoke.runtime.failures"),
        ("from .failures import Failures", "awoke.runtime.failures"),
        ("from ..observe import Events", "awoke.observe"),
        ("def late():\n    from awoke.observe import Events", "awoke.observe"),
        ("if TYPE_CHECKING:\n    from awoke.observe import Events", "awoke.observe"),
    ],
)
def test_every_form_of_import_is_seen(statement: str, imported: str) -> None:
    found = [name for node in ast.walk(ast.parse(statement)) for name in names_in(node, "awoke.runtime")]
    assert found == [imported]


def test_the_engine_knows_no_python() -> None:
    manifest = (REPOSITORY / "crates" / "engine" / "Cargo.toml").read_text()
    assert "pyo3" not in manifest


def test_only_the_kafka_crate_calls_librdkafka() -> None:
    sources = [file for crate in ("engine", "wake", "bridge") for file in (REPOSITORY / "crates" / crate).rglob("*.rs")]
    manifests = [REPOSITORY / "crates" / crate / "Cargo.toml" for crate in ("engine", "wake", "bridge")]
    binding = re.compile(r"\brdkafka[_-]sys\b|\bkafka::ffi\b|\bffi::rd_kafka|\bffi::RD_KAFKA")
    assert [str(file) for file in [*sources, *manifests] if binding.search(file.read_text())] == []
    engine = (REPOSITORY / "crates" / "engine" / "src" / "lib.rs").read_text()
    assert "#![deny(unsafe_code)]" in engine


def test_everything_public_is_exported_once() -> None:
    assert sorted(awoke.__all__) == sorted(set(awoke.__all__))
    public = {name for name, value in vars(errors).items() if inspect.isclass(value)}
    assert public <= set(awoke.__all__)
    assert all(hasattr(awoke, name) for name in awoke.__all__)


def test_every_error_stands_in_the_tree() -> None:
    assert errors.__doc__ is not None
    for name, value in vars(errors).items():
        if inspect.isclass(value) and issubclass(value, Exception):
            assert name in errors.__doc__
            assert issubclass(value, errors.AwokeError)


REAL_TIME = {
    "bounds of waits for brokers, registries, threads and processes": """
        admin.connection admin.groups admin.topics asgi.lifespan console.reporter console.web.application
        console.web.serving
        declare.reader observe.ledger observe.web.listener observe.web.loop operate.dead_letters.replays
        payloads.registry.exchange payloads.registry.transport produce.producer rpc.caller.caller
        rpc.responder.responder rpc.topics runtime.failures.crashes runtime.jobs.own_thread
        runtime.jobs.scope runtime.process.connections runtime.process.lifecycle runtime.process.runner
        runtime.process.stopping
    """,
    "bounds of waits of a test": """
        testing.idle testing.memory.running testing.outputs testing.probe testing.recorder
    """,
    "times that are measured and shown": """
         cli.output cli.produce observe.broker_lines observe.loop_watch rpc.responder.endings
        runtime.jobs.executor runtime.watch.observed swarm.node_control
    """,
    "timers of an event loop, set by the clock": """
        rpc.responder.method_loop runtime.jobs.worker waiting.clock
    """,
    "the clock, where the native module is not loaded": """
        waiting.time
    """,
}
"""Modules that may read real time, by the reason. All others read `awoke.waiting.clock`, which a test may take."""

REAL_TIME_NAME = re.compile(
    r"time\.(?:monotonic|time|perf_counter)(?:_ns)?|asyncio\.(?:sleep|timeout|wait_for)|threading\.Timer"
    r"|.*\.call_(?:later|at)"
)
REAL_TIME_END = re.compile(r"monotonic|time|perf_counter|sleep|wait_for|Timer|call_")
"""The begin of the last part of such a name."""


def reads_real_time(tree: ast.Module) -> bool:
    """Tells whether a module names a function that reads real time, or waits by it."""
    nodes = list(ast.walk(tree))
    imports = any(isinstance(each, ast.ImportFrom) and each.module == "time" for each in nodes)
    names = (ast.unparse(each) for each in nodes if isinstance(each, ast.Attribute) and REAL_TIME_END.match(each.attr))
    return imports or any(REAL_TIME_NAME.fullmatch(name) for name in names)


REAL_TIME_IN_RUST = {
    "wake": {"clock", "clock_steps", "budget", "sequencer", "simulation", "models/loop_service"},
    "kafka": {"librdkafka"},
    "engine": {"consume/job", "consume/group_member", "produce", "lifeline", "transact/batcher", "rpc/caller/replies"},
    "bridge": {"consume/group_member", "sequencer", "produce", "admin"},
}
"""Files and folders of Rust that may: for bounds of waits for brokers and threads, and for measured times."""

REAL_TIME_CALL_IN_RUST = re.compile(r"\b(?:Instant|SystemTime)::now\b|\.elapsed\(|\breal_(?:now|since)\(")


def test_only_named_modules_read_real_time() -> None:
    found = {name.removeprefix("awoke.") for name, file in MODULES.items() if reads_real_time(tree_of(file))}
    assert found == set(" ".join(REAL_TIME.values()).split())


def test_only_named_files_of_rust_read_real_time() -> None:
    found = set[str]()
    for file in product_files():
        crate, _, *place = file.relative_to(REPOSITORY / "crates").with_suffix("").parts
        if crate != "embedded" and lines_with(REAL_TIME_CALL_IN_RUST, file.read_text()):
            found.add(f"{crate}:{'/'.join(place)}")
    named = [f"{crate}:{place}" for crate, places in REAL_TIME_IN_RUST.items() for place in places]
    assert {each for each in found if not each.startswith(tuple(named))} == set()
    assert [each for each in named if not any(place.startswith(each) for place in found)] == []


def test_the_product_does_not_sleep() -> None:
    """A thread waits for what it wants. On an event loop, `asyncio.sleep` is a timer: right for a back-off."""
    sleeps = [f"{file}:{line}" for file in MODULES.values() for line in sleeping_lines(tree_of(file))]
    sleeps += [f"{file}:{line}" for file in product_files() for line in lines_with(SLEEP, file.read_text())]
    assert sleeps == []


WAITS = REPOSITORY / "tests" / "support" / "waiting.py"


def test_tests_and_benches_wait_for_what_they_expect() -> None:
    """Only `waiting` waits for a time, under names that say why. `asyncio.sleep(0)` gives way, and is no wait."""
    found = []
    for file in sorted(file for folder in ("tests", "bench") for file in (REPOSITORY / folder).rglob("*.py")):
        lines = file.read_text().splitlines()
        tree = tree_of(file)
        waits = [*sleeping_lines(tree), *disguised_sleeps(tree)] if file != WAITS else []
        found += [f"{file}:{line}" for line in waits if "asyncio.sleep(0)" not in lines[line - 1]]
    assert found == []


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("import time\ntime.sleep(1)", [2]),
        ("from time import sleep", [1]),
        ("async def f():\n    await asyncio.sleep(0)", [2]),
        ("async def f(delay_s):\n    await asyncio.sleep(delay_s)", []),
        ("text = 'time.sleep(1)'", []),
    ],
)
def test_a_sleep_is_told_by_its_syntax(source: str, lines: list[int]) -> None:
    assert sleeping_lines(ast.parse(source)) == lines


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("threading.Event().wait(1)", [1]),
        ("asyncio.Event().wait()", [1]),
        ("def f():\n    never = threading.Event()\n    never.wait(1)", [3]),
        ("def f():\n    found, never = [], threading.Event()\n    never.wait(1)", [3]),
        ("def f():\n    go = threading.Event()\n    g(go)\n    go.wait(1)", []),
        ("def f():\n    go = threading.Event()\n    def g():\n        go.set()\n    go.wait(1)", []),
        ("def f(go):\n    go.wait(1)", []),
    ],
)
def test_a_wait_on_an_event_that_is_never_set_is_found(source: str, lines: list[int]) -> None:
    assert disguised_sleeps(ast.parse(source)) == lines


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("while True:\n    closed.wait(0.1)", [2]),
        ("while not closed.wait(AGAIN_S):\n    pass", [1]),
        ("while True:\n    changed.wait(left_s)", []),
        ("closed.wait(AGAIN_S)", []),
    ],
)
def test_a_poll_is_a_loop_with_a_fixed_wait(source: str, lines: list[int]) -> None:
    assert polling_lines(ast.parse(source)) == lines


LOGIC = "\n    ".join(["a = 1", "b = 2", "c = 3", "d = 4"])


@pytest.mark.parametrize(
    ("source", "found"),
    [
        (f"def get():\n    {LOGIC}\nasync def aget():\n    {LOGIC}", ["get"]),
        (f"def _get():\n    {LOGIC}\nasync def _get_async():\n    {LOGIC}", ["_get"]),
        (f"def get():\n    {LOGIC}\nasync def aget():\n    return 1", []),
        (f"def get():\n    {LOGIC}\ndef aget():\n    {LOGIC}", []),
    ],
)
def test_twins_are_pairs_with_logic_in_both(source: str, found: list[str]) -> None:
    assert twins(ast.parse(source)) == found


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("def f(other):\n    return other._hidden", ["2 other._hidden"]),
        ("class A:\n    def f(self):\n        return self._hidden", []),
        ("class A:\n    def f(self, other):\n        self._own = 1\n        return other._own", []),
    ],
)
def test_a_private_attribute_of_another_object_is_found(source: str, found: list[str]) -> None:
    assert foreign_privates(ast.parse(source)) == found


def test_the_exported_names_are_those_of_the_lists() -> None:
    tree = ast.parse("__all__ = ['App', \"Event\"]\nother = ['hidden']")
    assert exported_names([tree]) == {"App", "Event"}


@pytest.mark.parametrize(
    ("source", "sleeps"),
    [
        ("fn f() {\n    std::thread::sleep(x);\n}", [2]),
        ("fn f() { thread::yield_now(); }", [1]),
        ('// sleep(1)\n/* sleep(1)\n*/ const A: &str = "sleep(1)";', []),
        ("#[cfg(test)]\nmod tests {\n    fn f() { if a { sleep(1) } }\n}\nfn g() { sleep(1) }", [5]),
        ("fn asleep() {}\nfn f() { asleep(); }", []),
    ],
)
def test_sleeps_of_rust_are_told_from_comments_strings_and_tests(source: str, sleeps: list[int]) -> None:
    assert lines_with(SLEEP, source) == sleeps


@pytest.mark.parametrize(
    ("source", "is_named"),
    [
        ("use rdkafka_sys::types;", True),
        ("use crate::kafka::{Client, ffi};", True),
        ("kafka::ffi::something()", True),
        ("rd_kafka_poll(handle)", True),
        ("use std::ffi::c_void;\nuse pyo3::ffi;\nuse crate::kafka::Client;", False),
        ("// rd_kafka_poll wakes for each report", False),
    ],
)
def test_the_symbols_of_librdkafka_are_told_from_others(source: str, is_named: bool) -> None:
    assert bool(lines_with(FFI, source)) == is_named


def test_the_stub_matches_the_module() -> None:
    command = [sys.executable, "-m", "mypy.stubtest", "awoke._native", "--ignore-missing-stub", "--concise"]
    allowed = REPOSITORY / "tests" / "typing" / "stubtest_allowlist.txt"
    done = subprocess.run([*command, "--allowlist", str(allowed)], capture_output=True, text=True, cwd=REPOSITORY)
    assert done.returncode == 0, done.stdout + done.stderr


def test_help_shows_what_a_function_of_the_engine_does() -> None:
    classes = [each for each in vars(_native).values() if isinstance(each, type)]
    texts = [
        (f"{kind.__name__}.{name}", inspect.getdoc(member)) for kind in classes for name, member in vars(kind).items()
    ]
    assert [name for name, text in texts if "see the stub" in (text or "")] == []
