"""The shape of the code: layers, exported names, the error tree, the stub."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import awoke
from awoke import errors

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGE = REPOSITORY / "python" / "awoke"

LAYERS = [
    {"errors", "printable", "secrets"},
    {"_native", "_waiting", "drive"},
    {"checks", "environment", "exit_codes", "memory_limit", "backoff"},
    {"broker_lines", "oauth", "pydantic_models", "value_types", "events", "settings", "serde"},
    {"codec", "message"},
    {"origins", "middleware", "lifecycle", "embedded"},
    {"transaction", "producer", "consumer", "admin", "concurrency"},
    {"annotations", "handlers", "dead_letter", "tracing"},
    {"routing"},
    {"reader", "metrics"},
    {"rpc"},
    {"web"},
    {"runtime", "logs"},
    {"app", "application"},
    {"swarm"},
    {"testing"},
    {"cli"},
    {"__main__"},
]
"""From the ground up: a module imports from its own layer and from those before it."""


def module_of(file: Path) -> str:
    parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(file): file for file in sorted(PACKAGE.rglob("*.py"))}


def layer_of(module: str) -> int:
    name = module.removeprefix("awoke.").split(".")[0]
    return next(number for number, names in enumerate(LAYERS) if name in names)


def imports_of(module: str) -> set[str]:
    """Returns awoke's modules that one imports: anywhere in its file, also in functions and for types only."""
    file = MODULES[module]
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    found = {name for node in ast.walk(ast.parse(file.read_text())) for name in names_in(node, package)}
    return {name for name in found if name in MODULES and name not in (module, "awoke")}


def names_in(node: ast.AST, package: str) -> list[str]:
    """Returns the modules that a statement may name, in each of the forms of import."""
    if isinstance(node, ast.Import):
        return [each.name for each in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    parents = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
    base = ".".join([*parents, *([node.module] if node.module else [])])
    deeper = [f"{base}.{each.name}" for each in node.names]
    return [name if name in MODULES else base for name in deeper]


def circles() -> set[frozenset[str]]:
    """Returns the groups of modules that reach one another by imports."""
    graph = {module: imports_of(module) for module in MODULES}
    reached = {module: reachable(graph, module) for module in graph}
    groups = {frozenset(other for other in reached[each] if each in reached[other]) for each in graph}
    return {group for group in groups if group}


def reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    found: set[str] = set()
    ahead = set(graph[start])
    while ahead:
        module = ahead.pop()
        found.add(module)
        ahead |= graph[module] - found
    return found


@pytest.mark.parametrize("module", [module for module in MODULES if module != "awoke"])
def test_imports_point_downward(module: str) -> None:
    for imported in imports_of(module):
        assert layer_of(imported) <= layer_of(module), f"{module} imports {imported}"


def test_no_modules_import_one_another() -> None:
    assert [sorted(each) for each in circles()] == []


@pytest.mark.parametrize(
    ("statement", "imported"),
    [
        ("import awoke.events", "awoke.events"),
        ("from awoke import events", "awoke.events"),
        ("from awoke.events import Events", "awoke.events"),
        ("from . import failures", "awoke.runtime.failures"),
        ("from .failures import Failures", "awoke.runtime.failures"),
        ("from ..events import Events", "awoke.events"),
        ("def late():\n    from awoke.events import Events", "awoke.events"),
        ("if TYPE_CHECKING:\n    from awoke.events import Events", "awoke.events"),
    ],
)
def test_every_form_of_import_is_seen(statement: str, imported: str) -> None:
    found = [name for node in ast.walk(ast.parse(statement)) for name in names_in(node, "awoke.runtime")]
    assert found == [imported]


def test_the_engine_knows_no_python() -> None:
    manifest = (REPOSITORY / "crates" / "engine" / "Cargo.toml").read_text()
    assert "pyo3" not in manifest


def test_only_the_kafka_crate_calls_librdkafka() -> None:
    """The bridge's `decompressors` and `groupless` stand before functions of librdkafka's, and name no binding."""
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


def test_the_product_does_not_sleep() -> None:
    """A thread waits for what it wants. On an event loop, `asyncio.sleep` is a timer: right for a back-off."""
    sleeps = [f"{file}:{line}" for file in MODULES.values() for line in sleeping_lines(ast.parse(file.read_text()))]
    rust = [str(file) for file in (REPOSITORY / "crates").rglob("src/**/*.rs") if "sleep(" in file.read_text()]
    assert sleeps + rust == []


def sleeping_lines(tree: ast.Module) -> list[int]:
    """Returns the lines that use `time.sleep`, or `asyncio.sleep` with a fixed time, as a poll does."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in ("time", "asyncio"):
            found += [node.lineno for each in node.names if each.name == "sleep"]
        if isinstance(node, ast.Attribute) and ast.unparse(node) == "time.sleep":
            found.append(node.lineno)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "asyncio.sleep":
            is_timer = bool(node.args) and not isinstance(node.args[0], ast.Constant)
            found += [] if is_timer else [node.lineno]
    return found


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


def test_the_stub_matches_the_module() -> None:
    command = [sys.executable, "-m", "mypy.stubtest", "awoke._native", "--ignore-missing-stub", "--concise"]
    allowed = REPOSITORY / "tests" / "typing" / "stubtest_allowlist.txt"
    done = subprocess.run([*command, "--allowlist", str(allowed)], capture_output=True, text=True, cwd=REPOSITORY)
    assert done.returncode == 0, done.stdout + done.stderr
