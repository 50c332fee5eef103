"""The stub of the extension and what `help()` shows say the same.

The rule: every public class, method, property and function of `awoke._native` has a text, in the stub and in Rust. A
constructor and the methods of protocols have none of their own: the text of the class says what making one does.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator

from awoke import _native
from tests.support.python_syntax import PACKAGE

STUB = PACKAGE / "_native.pyi"


def normalised(text: str | None) -> str:
    """Returns a text in one line and without backticks, which help() does not render."""
    return " ".join((text or "").replace("`", "").split())


def in_stub(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yields the names of the stub with their texts."""
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
            yield node.name, normalised(ast.get_docstring(node))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            members = [each for each in node.body if isinstance(each, ast.FunctionDef)]
            public = [each for each in members if not each.name.startswith("_") and not is_setter(each)]
            yield from ((f"{node.name}.{each.name}", normalised(ast.get_docstring(each))) for each in public)


def is_setter(node: ast.FunctionDef) -> bool:
    return any(isinstance(each, ast.Attribute) and each.attr == "setter" for each in node.decorator_list)


def in_extension() -> Iterator[tuple[str, str]]:
    """Yields the names of the extension with their texts."""
    for name, value in vars(_native).items():
        if not name.startswith("_"):
            yield name, normalised(value.__doc__)
            members = [each for each in vars(value) if not each.startswith("_")] if inspect.isclass(value) else []
            yield from ((f"{name}.{each}", normalised(getattr(value, each).__doc__)) for each in members)


def test_the_stub_and_help_say_the_same() -> None:
    stub, extension = dict(in_stub(ast.parse(STUB.read_text()))), dict(in_extension())
    differing = {name: (text, extension[name]) for name, text in stub.items() if extension.get(name, text) != text}
    assert differing == {}, "the stub first, then crates/bridge"
    assert sorted(stub) == sorted(extension)


def test_everything_public_has_a_text() -> None:
    assert [name for name, text in in_extension() if not text] == []


def test_a_text_is_compared_without_its_layout() -> None:
    stub = (
        'class Job:\n    """A `batch`.\n\n    Raises:\n        Error: no.\n    """\n    def done(self) -> None: ...\n'
    )
    assert dict(in_stub(ast.parse(stub))) == {"Job": "A batch. Raises: Error: no.", "Job.done": ""}
