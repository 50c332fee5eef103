"""The reference made from the source: every public name and every command has its place."""

from __future__ import annotations

import importlib
import pkgutil
import re

import pytest

import awoke
import docs_reference
import docs_site
from awoke.cli import commands
from awoke.payloads.registry import RegistryError


@pytest.mark.parametrize("name", docs_reference.MODULES)
def test_every_public_name_has_its_place(name: str) -> None:
    module = pkgutil.resolve_name(name)
    page = docs_reference.module_page(module, name)
    shown = re.findall(r"^::: .*\.(\w+)$", page, re.MULTILINE)
    assert shown == docs_reference.public_names(module)
    assert all(f"[`{each}`](#" in page for each in shown)


def test_a_name_that_awoke_has_is_shown_there_only() -> None:
    names = docs_reference.public_names(importlib.import_module("awoke.rpc"))
    assert "RpcError" not in names
    assert "Caller" in names
    assert "RpcError" in docs_reference.public_names(awoke)


def test_every_error_has_a_page_that_says_what_to_do() -> None:
    folder = docs_site.REPOSITORY / "docs" / "errors"
    names = sorted(each.__name__ for each in docs_reference.error_classes())
    assert {"AwokeError", "NobodyThere", "SchemaNotFound"} < set(names)
    assert sorted(page.stem for page in folder.glob("*.md")) == names
    for name in names:
        assert re.fullmatch(rf"# {name}\n\n.+\n\n## Why\n\n.+\n\n## What to do\n\n.+", page_of(name), re.DOTALL)


def page_of(name: str) -> str:
    """Returns the page of an error."""
    return (docs_site.REPOSITORY / "docs" / "errors" / f"{name}.md").read_text()


def test_a_directive_becomes_signature_and_docstring() -> None:
    text = docs_reference.without_directives("# Page\n\n::: awoke.payloads.registry.errors.RegistryError\n")
    assert text.startswith("# Page\n\n### RegistryError(")
    assert (RegistryError.__doc__ or "?").splitlines()[0] in text


def test_every_command_is_shown_with_its_help() -> None:
    page = docs_reference.command_line_page()
    commands.load()
    names = [each.name or each.callback.__name__ for each in commands.app.registered_commands if each.callback]
    assert len(names) > 10
    assert [name for name in names if f"## `awoke {name}`" not in page] == []
    assert "## `awoke topics apply`" in page
    assert "Usage: awoke topics apply" in page
