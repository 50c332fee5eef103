"""Makes the reference page of the settings from the classes that hold them."""

from __future__ import annotations

import ast
import inspect
import textwrap
from typing import Any

import msgspec

from awoke.settings.fields import ALL_NAMES, RunSettings, Settings

CLASSES: dict[str, type[msgspec.Struct]] = {"Of an app": Settings, "Of `awoke run`": RunSettings}
"""The classes, by the heading of their table."""


def page() -> str:
    """Returns the page: a table for each class, with type, default, variable and meaning of each setting."""
    about = (
        "Every setting, made from the source. [Settings](settings.md) says where they are looked up, and which "
        "defaults depend on the machine."
    )
    tables = "\n".join(f"## {heading}\n\n{table(each)}" for heading, each in CLASSES.items())
    return f"# All settings\n\n{about}\n\n{tables}"


def table(settings: type[msgspec.Struct]) -> str:
    """Returns the table of one class."""
    texts = meanings(settings)
    rows = "".join(row(each, texts[each.name]) for each in msgspec.structs.fields(settings))
    return f"| Setting | Type | Default | Variable | Meaning |\n|---|---|---|---|---|\n{rows}"


def row(field: Any, text: str) -> str:
    """Returns the row of one setting."""
    variable = f"`AWOKE_{field.name.upper()}`" if field.name in ALL_NAMES else "-"
    cells = (f"`{field.name}`", f"`{type_of(field.type)}`", f"`{default_of(field)!r}`", variable, text)
    return "| " + " | ".join(each.replace("|", "\\|") for each in cells) + " |\n"


def type_of(annotation: Any) -> str:
    """Returns a type as Python spells it, without the module of `Literal`."""
    shown = annotation.__name__ if isinstance(annotation, type) and not hasattr(annotation, "__args__") else None
    return shown or str(annotation).replace("typing.", "")


def default_of(field: Any) -> Any:
    """Returns the default of a setting; each has one."""
    return field.default_factory() if field.default is msgspec.NODEFAULT else field.default


def meanings(settings: type[msgspec.Struct]) -> dict[str, str]:
    """Returns the text below each setting in the source, on one line."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(settings))).body
    assert isinstance(definition, ast.ClassDef)
    found: dict[str, str] = {}
    for above, below in zip(definition.body, definition.body[1:], strict=False):
        if isinstance(above, ast.AnnAssign) and isinstance(above.target, ast.Name) and isinstance(below, ast.Expr):
            assert isinstance(below.value, ast.Constant)
            found[above.target.id] = " ".join(str(below.value.value).split())
    return found
