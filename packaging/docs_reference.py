"""Makes the reference pages of the documentation from the source: API, errors, command line, settings."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import typer

import awoke
import docs_settings
from awoke.cli import commands
from awoke.errors import AwokeError

MODULES = ("awoke", "awoke.formats", "awoke.events", "awoke.registry", "awoke.rpc", "awoke.testing")
"""The public modules with a page. Errors stand in `awoke`; the dead letter's headers in the guide of handlers."""
DIRECTIVE = re.compile(r"^::: (\S+)$", re.MULTILINE)
PLACE = re.compile(r"<(?:function |class ')?([\w.]+)(?:(?: object)? at 0x[0-9a-f]+|')>")
"""A default value as Python prints it, with its place in memory, which differs in each build."""
QUOTED = re.compile(r"(:|->) '([^']*)'")
"""An annotation."""


def pages() -> dict[str, str]:
    """Returns the pages by their file."""
    found = {f"docs/{name}.md": module_page(pkgutil.resolve_name(name), name) for name in MODULES}
    return {
        **found,
        "docs/cli.md": command_line_page(),
        "docs/errors/README.md": errors_page(),
        "docs/settings_reference.md": docs_settings.page(),
    }


def error_classes() -> list[type[AwokeError]]:
    """Returns the public classes of errors, each once: those of awoke, of calls, and of the registry."""
    modules = [awoke, awoke.rpc, awoke.registry]
    values = [getattr(module, name) for module in modules for name in public_names(module)]
    return [each for each in values if inspect.isclass(each) and issubclass(each, AwokeError)]


def errors_page() -> str:
    """Returns the page that lists the errors: the one that each derives from, what it says, and its own page."""
    rows = "".join(
        f"| [`{each.__name__}`]({each.__name__}.md) | `{each.__bases__[0].__name__}` "
        f"| {paragraph(inspect.getdoc(each) or '')} |\n"
        for each in error_classes()
    )
    about = "Each error has a page: what happened, why, and what to do. `awoke docs errors/NAME` prints it."
    return f"# Errors\n\n{about}\n\n| Error | A kind of | Meaning |\n|---|---|---|\n{rows}"


def public_names(module: ModuleType) -> list[str]:
    """Returns the names of `__all__` that a page shows: no other modules, and no name that `awoke` shows."""
    elsewhere = set() if module is awoke else {id(getattr(awoke, name)) for name in awoke.__all__}
    values = {name: getattr(module, name) for name in module.__all__ if not name.startswith("_")}
    return [name for name, value in values.items() if not inspect.ismodule(value) and id(value) not in elsewhere]


def module_page(module: ModuleType, public_name: str) -> str:
    """Returns the page of a public module by the name that users know: a table of names, then each with its members."""
    names = public_names(module)
    rows = "".join(f"| [`{name}`](#{path(module, name)}) | {first_sentence(module, name)} |\n" for name in names)
    details = "\n".join(f"::: {path(module, name)}\n" for name in names)
    about = paragraph(inspect.getdoc(module) or "")
    return f"# `{public_name}`\n\n{about}\n\n| Name | Content |\n|---|---|\n{rows}\n{details}"


def path(module: ModuleType, name: str) -> str:
    """Returns where a public name is defined, which is how it is found in the source."""
    value = getattr(module, name)
    home = getattr(value, "__module__", None)
    is_own = isinstance(home, str) and home.startswith("awoke") and hasattr(importlib.import_module(home), name)
    return f"{home}.{name}" if is_own else f"{module.__name__}.{name}"


def paragraph(text: str) -> str:
    """Returns the first paragraph of a docstring, on one line."""
    return " ".join(text.partition("\n\n")[0].split())


def first_sentence(module: ModuleType, name: str) -> str:
    """Returns the first paragraph of a name's docstring, for a row of a table."""
    value = getattr(module, name)
    if not (inspect.isclass(value) or inspect.isroutine(value)):
        return ""
    text = paragraph(inspect.getdoc(value) or "").replace("|", "\\|")
    return f"{text} [What to do](errors/{name}.md)." if value in error_classes() else text


def without_directives(page: str) -> str:
    """Returns a page with the signature and the docstring in place of each directive of mkdocstrings."""
    return DIRECTIVE.sub(lambda found: described(found[1]), page)


def described(place: str) -> str:
    """Returns a heading, the signature and the docstring of a class or function, with the members of a class."""
    home, _, name = place.rpartition(".")
    value = getattr(importlib.import_module(home), name)
    if not (inspect.isclass(value) or inspect.isroutine(value)):
        return f"### {name}\n"
    lines = [f"### {name}{signature(value)}", "", inspect.getdoc(value) or ""]
    is_error = inspect.isclass(value) and issubclass(value, BaseException)
    for member, each in inspect.getmembers(value, inspect.isroutine) if inspect.isclass(value) else ():
        if not member.startswith("_") and not is_error:
            lines += ["", f"#### {name}.{member}{signature(each)}", "", inspect.getdoc(each) or ""]
    return "\n".join(lines) + "\n"


def signature(value: Any) -> str:
    """Returns the signature of a class or function; empty if it has none that Python knows."""
    try:
        found = str(inspect.signature(value))
    except (TypeError, ValueError):
        return ""
    found = PLACE.sub(lambda each: each[1].rpartition(".")[2], found)
    return QUOTED.sub(r"\1 \2", found)


def command_line_page() -> str:
    """Returns the page of the command line: the help of each command, as the command prints it."""
    commands.load()
    root = typer.main.get_command(commands.app)
    texts = [f"## `{name}`\n\n```text\n{text}\n```\n" for name, text in helps(root, "awoke")]
    about = "The help of every command, as `--help` prints it. [Exit codes](swarm.md#exit-codes-and-http)."
    return f"# Command line\n\n{about}\n\n" + "\n".join(texts)


def helps(command: Any, name: str, parent: Any = None) -> Iterator[tuple[str, str]]:
    """Yields the name and the help of a command, and of the commands below it."""
    context = command.make_context(name, [], parent=parent, resilient_parsing=True, terminal_width=100)
    context.info_name = name.rpartition(" ")[2]
    yield name, command.get_help(context).strip()
    for below in command.list_commands(context) if hasattr(command, "list_commands") else ():
        yield from helps(command.get_command(context, below), f"{name} {below}", context)
