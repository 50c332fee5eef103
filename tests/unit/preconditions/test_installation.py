"""An installation that cannot work says so when it is imported, in one error that says what to do."""

from __future__ import annotations

import importlib.machinery
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from awoke import _native

REPOSITORY = Path(__file__).resolve().parents[3]
PACKAGE = REPOSITORY / "python" / "awoke"
SUFFIX = importlib.machinery.EXTENSION_SUFFIXES[0]
AGAIN = f"install it again with this Python: {sys.executable} -m pip install"


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """Returns a copy of the package without its native module, as in a folder of installed packages."""
    return Path(shutil.copytree(PACKAGE, tmp_path / "awoke", ignore=shutil.ignore_patterns("*.so", "__pycache__")))


def error_of(package: Path, program: str = "import awoke") -> str:
    """Returns the last line of what a program writes to standard error in a fresh process with this package."""
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(package.parent)!r}); {program}"]
    done = subprocess.run(command, capture_output=True, text=True, env={}, cwd=package.parent)
    assert done.returncode == 1
    return done.stderr.splitlines()[-1]


def test_without_a_native_module_the_import_advises_to_install_again(installed: Path) -> None:
    said = error_of(installed)
    assert said.startswith(f"ImportError: awoke has no native module in {installed}; {AGAIN}")


def test_a_source_tree_that_was_not_built_advises_to_build_it(installed: Path) -> None:
    (installed.parent / "checkout" / "python").mkdir(parents=True)
    (installed.parent / "checkout" / "Cargo.toml").touch()
    moved = installed.rename(installed.parent / "checkout" / "python" / "awoke")

    checkout = installed.parent / "checkout"
    assert error_of(moved) == (
        f"ImportError: awoke has no native module in {moved}; "
        f"build it: make build in {checkout}, or pip install {checkout}"
    )


def test_a_native_module_of_another_python_is_named(installed: Path) -> None:
    (installed / "_native.cpython-399-x86_64-linux-gnu.so").touch()

    said = error_of(installed)
    assert "is for another Python or processor" in said
    assert "has _native.cpython-399-x86_64-linux-gnu.so, " in said
    assert f"needs _native{SUFFIX}; {AGAIN}" in said


def test_a_native_module_that_the_system_refuses_is_explained_at_its_first_use(installed: Path) -> None:
    (installed / f"_native{SUFFIX}").write_bytes(b"\x7fELF of another processor")

    said = error_of(installed, "import awoke; awoke.Producer")
    assert said.startswith("ImportError: awoke's native module cannot be used: ")
    assert str(installed / f"_native{SUFFIX}") in said
    assert AGAIN in said


def test_a_package_without_its_stub_is_incomplete(installed: Path) -> None:
    (installed / f"_native{SUFFIX}").touch()
    (installed / "__init__.pyi").unlink()
    assert error_of(installed).startswith(f"ImportError: awoke is incomplete: {installed} has no __init__.pyi; {AGAIN}")


def test_an_old_python_is_told_which_one_is_needed(installed: Path) -> None:
    said = error_of(installed, "sys.version_info = (3, 10, 4, 'final', 0); import awoke")
    assert (
        said == f"ImportError: awoke needs Python 3.11 or later, and this is 3.10.4 ({sys.executable}): use a newer one"
    )


def test_a_system_without_builds_is_told_where_awoke_runs(installed: Path) -> None:
    said = error_of(installed, "sys.platform = 'sunos5'; import awoke")
    assert said == "ImportError: awoke has no native module for sunos5: it runs on Linux"


def test_a_native_module_of_another_version_is_explained(installed: Path) -> None:
    native = Path(str(_native.__file__))
    (installed / native.name).symlink_to(native)
    with (installed / "errors.py").open("a") as file:
        file.write("from awoke._native import of_the_next_version\n")

    said = error_of(installed, "import awoke; awoke.errors")
    assert "cannot be used: cannot import name 'of_the_next_version'" in said
    assert AGAIN in said


def test_another_import_error_stays_as_it_is(installed: Path) -> None:
    (installed / f"_native{SUFFIX}").touch()
    (installed / "errors.py").write_text("import no_such_module")
    assert error_of(installed, "import awoke; awoke.errors") == "ModuleNotFoundError: No module named 'no_such_module'"
