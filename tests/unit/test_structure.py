"""The shape of the code: layers, exported names, the error tree, the stub."""

from __future__ import annotations

import ast
import inspect
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
    {"origins", "middleware"},
    {"consumer", "producer", "transaction", "admin", "concurrency"},
    {"annotations", "handlers", "dead_letter", "tracing"},
    {"routing"},
    {"reader", "metrics"},
    {"rpc"},
    {"lifecycle", "app", "application", "web"},
    {"runtime", "logs"},
    {"swarm"},
    {"testing"},
    {"cli"},
    {"__main__"},
]
"""From the ground up: a module imports from its own layer and from those before it."""


def layer_of(module: str) -> int:
    name = module.removeprefix("awoke.").split(".")[0]
    return next(number for number, names in enumerate(LAYERS) if name in names)


def imports_of(file: Path) -> list[str]:
    """awoke's modules that a file imports when it is imported itself."""
    found = []
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("awoke."):
            found.append(node.module)
    return found


@pytest.mark.parametrize("file", sorted(PACKAGE.rglob("*.py")), ids=lambda file: str(file.relative_to(PACKAGE)))
def test_imports_point_downward(file: Path) -> None:
    module = ".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
    if module == "awoke":
        return
    for imported in imports_of(file):
        assert layer_of(imported) <= layer_of(module), f"{module} imports {imported}"


def test_the_engine_knows_no_python() -> None:
    manifest = (REPOSITORY / "crates" / "engine" / "Cargo.toml").read_text()
    assert "pyo3" not in manifest


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
    sources = [*PACKAGE.rglob("*.py"), *(REPOSITORY / "crates").rglob("src/**/*.rs")]
    sleeps = [str(file) for file in sources for word in ("sleep(",) if word in file.read_text()]
    assert sleeps == []


def test_the_stub_matches_the_module() -> None:
    command = [sys.executable, "-m", "mypy.stubtest", "awoke._native", "--ignore-missing-stub", "--concise"]
    allowed = REPOSITORY / "tests" / "typing" / "stubtest_allowlist.txt"
    done = subprocess.run([*command, "--allowlist", str(allowed)], capture_output=True, text=True, cwd=REPOSITORY)
    assert done.returncode == 0, done.stdout + done.stderr
