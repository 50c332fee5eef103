"""`module:attribute` finds the app, or says what is wrong."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import awoke
from awoke.app.application import find_app

Write = Callable[[str, str], None]

SHOP = """
import awoke
app = awoke.App("shop")
second = awoke.App("second")
number = 7
"""


@pytest.fixture(autouse=True)
def _fresh_imports(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Modules and paths of one test are gone in the next."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes a file into a directory that is on Python's path."""
    monkeypatch.syspath_prepend(tmp_path)

    def file(name: str, text: str) -> None:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    return file


def test_app_is_found_by_module_and_attribute(write: Write) -> None:
    write("shop_found.py", SHOP)
    found = find_app("shop_found:app")
    assert isinstance(found, awoke.App)
    assert found is sys.modules["shop_found"].app


def test_app_is_found_in_a_package(write: Write) -> None:
    write("shop_package/__init__.py", "")
    write("shop_package/orders.py", SHOP)
    assert find_app("shop_package.orders:second") is sys.modules["shop_package.orders"].second


def test_app_is_found_behind_a_dotted_attribute(write: Write) -> None:
    write("shop_dotted.py", SHOP + "class Holder:\n    held = app\n")
    assert find_app("shop_dotted:Holder.held") is sys.modules["shop_dotted"].app


def test_app_is_found_from_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shop_here.py").write_text(SHOP)
    monkeypatch.chdir(tmp_path)
    assert str(tmp_path) not in sys.path
    assert isinstance(find_app("shop_here:app"), awoke.App)


def test_working_directory_is_put_on_the_path_once(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("shop_once.py", SHOP)
    monkeypatch.chdir(tmp_path)
    find_app("shop_once:app")
    find_app("shop_once:second")
    assert sys.path.count(str(tmp_path)) == 1


@pytest.mark.parametrize("target", ["", "shop", "shop:", ":app", ".shop:app", "shop..orders:app", "shop.:app"])
def test_target_that_is_not_module_and_attribute_is_refused(target: str) -> None:
    with pytest.raises(awoke.AppNotFound, match="write module:app"):
        find_app(target)


@pytest.mark.parametrize("module", ["shop_nowhere", "shop_nowhere.orders"])
def test_missing_module_is_named(module: str) -> None:
    with pytest.raises(awoke.AppNotFound, match=f"there is no module '{module}'"):
        find_app(f"{module}:app")


def test_module_missing_in_a_package_is_named(write: Write) -> None:
    write("shop_partial/__init__.py", "")
    with pytest.raises(awoke.AppNotFound, match=r"there is no module 'shop_partial\.orders'"):
        find_app("shop_partial.orders:app")


def test_module_that_imports_a_missing_one_is_told_from_a_missing_module(write: Write) -> None:
    write("shop_broken.py", "\nimport shop_dependency\n")
    with pytest.raises(awoke.AppNotFound) as caught:
        find_app("shop_broken:app")
    text = str(caught.value)
    assert text.startswith("module 'shop_broken' can't be imported: shop_broken.py, line 2: ModuleNotFoundError")
    assert "shop_dependency" in text
    assert isinstance(caught.value.__cause__, ModuleNotFoundError)


def test_module_that_imports_a_missing_name_says_where(write: Write) -> None:
    write("shop_name.py", "from json import shop_absent\n")
    with pytest.raises(awoke.AppNotFound, match=r"shop_name\.py, line 1: ImportError: .*shop_absent") as caught:
        find_app("shop_name:app")
    assert isinstance(caught.value.__cause__, ImportError)


def test_syntax_error_says_where(write: Write) -> None:
    write("shop_syntax.py", "import awoke\napp = awoke.App(\n")
    with pytest.raises(awoke.AppNotFound) as caught:
        find_app("shop_syntax:app")
    assert str(caught.value) == (
        "module 'shop_syntax' can't be imported: shop_syntax.py, line 2: SyntaxError: '(' was never closed"
    )
    assert isinstance(caught.value.__cause__, SyntaxError)


def test_error_of_the_module_itself_is_passed_on(write: Write) -> None:
    write("shop_raises.py", "raise ZeroDivisionError('mine')\n")
    with pytest.raises(ZeroDivisionError, match="mine"):
        find_app("shop_raises:app")


def test_missing_attribute_lists_the_apps_of_the_module(write: Write) -> None:
    write("shop_attribute.py", SHOP)
    with pytest.raises(awoke.AppNotFound, match="has no 'ap'; its apps are: app, second"):
        find_app("shop_attribute:ap")


def test_missing_attribute_of_a_module_without_apps_says_so(write: Write) -> None:
    write("shop_empty.py", "")
    with pytest.raises(awoke.AppNotFound, match="has no 'app'; it has no app"):
        find_app("shop_empty:app")


def test_attribute_that_is_no_app_names_its_type_and_the_apps(write: Write) -> None:
    write("shop_number.py", SHOP)
    with pytest.raises(awoke.AppNotFound, match=r"is a int and no awoke\.App; its apps are: app, second"):
        find_app("shop_number:number")
