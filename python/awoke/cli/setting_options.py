"""The options of `awoke run` that are settings: names, types, help texts and defaults come from the settings."""

from __future__ import annotations

import ast
import functools
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import typer

from awoke.settings import RunSettings, Settings
from awoke.settings.fields import PORT_MAX

Function = TypeVar("Function", bound=Callable[..., Any])


@functools.cache
def texts_of(kind: type[Settings] | type[RunSettings]) -> dict[str, str]:
    """Returns the text below each field of a class of settings, on one line."""
    source = Path(sys.modules[kind.__module__].__file__ or "").read_text()
    tables = (each for each in ast.parse(source).body if isinstance(each, ast.ClassDef))
    table = next(each for each in tables if each.name == kind.__name__)
    found = {}
    for field, text in zip(table.body, table.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Expr):
            found[field.target.id] = " ".join(str(ast.literal_eval(text.value)).split())
    return found


def option(kind: type[Settings] | type[RunSettings], name: str) -> Any:
    """Returns the option for a setting, with the setting's text and default."""
    default = getattr(kind(), name)
    is_number = isinstance(default, int | float) and not isinstance(default, bool)
    shown = f"{default:g}" if is_number else str(default).lower()
    text = texts_of(kind)[name].replace("`", "").replace("None", "unset")
    ports: dict[str, Any] = {"min": 0, "max": PORT_MAX} if name.endswith("_port") else {}
    return typer.Option(help=text, show_default=False if default is None else shown, **ports)


def type_of(annotation: Any) -> Any:
    """Returns the type that an option takes for a setting; the settings themselves check which words a text may be."""
    if get_origin(annotation) is Literal:
        return str
    given = [each for each in get_args(annotation) if each is not type(None)]
    return given[0] if given else annotation


def takes_run_settings(function: Function) -> Function:
    """Gives a command an option for each setting of `awoke run`, in place of its parameter `**settings`.

    An option that is not given is `None`: the environment, the file or the default decides.
    """
    signature = inspect.signature(function)
    own = [each for each in signature.parameters.values() if each.kind is not inspect.Parameter.VAR_KEYWORD]
    types = {name: type_of(each) for name, each in get_type_hints(RunSettings).items()}
    settings = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[types[name] | None, option(RunSettings, name)],
        )
        for name in RunSettings.__struct_fields__
    ]
    hints = get_type_hints(function, include_extras=True)
    own = [each.replace(annotation=hints[each.name]) for each in own]
    function.__signature__ = signature.replace(parameters=[*own, *settings])  # type: ignore[attr-defined]
    function.__annotations__ = {each.name: each.annotation for each in (*own, *settings)}
    return function
