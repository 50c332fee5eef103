"""Commands register themselves: no list names them."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from awoke.cli import commands
from awoke.cli.main import command_line

PACKAGE = Path(commands.__file__).parent
WIDE = {"COLUMNS": "200", "TERMINAL_WIDTH": "200"}


def help_of(*words: str) -> str:
    done = CliRunner().invoke(command_line(words), [*words, "--help"], env=WIDE, prog_name="awoke")
    assert done.exit_code == 0
    return done.output


def names_in(text: str) -> list[str]:
    return re.findall(r"^  ([a-z-]+) {2,}", text.partition("-h, --help")[2], re.MULTILINE)


def test_all_commands_are_there_in_the_order_of_their_names() -> None:
    of_swarm = ["dump", "quiet", "reload", "resume", "scale", "skip", "status", "stop"]
    of_topics = ["produce", "tail", "topics", "dead-letter", "schema", "groups"]
    others = [
        *of_topics,
        "act",
        "asyncapi",
        "broker",
        "console",
        "deploy",
        "docs",
        "doctor",
        "help",
        "record",
        "replay",
        "report",
        "rpc",
        "run",
        "table",
        "threads",
        "top",
    ]
    assert sorted(names_in(help_of())) == sorted(of_swarm + others)
    assert set(names_in(help_of("dead-letter"))) == {"list", "summary", "show", "replay", "purge", "try"}
    assert set(names_in(help_of("topics"))) == {"create", "list", "describe", "alter", "delete", "plan", "apply"}


def test_help_is_where_hands_look_for_it() -> None:
    long = help_of("topics", "delete")
    for words in (["topics", "delete", "-h"], ["help", "topics", "delete"]):
        assert CliRunner().invoke(command_line(words), words, env=WIDE).output == long
    assert CliRunner().invoke(command_line(["help"]), ["help"], env=WIDE).output == help_of()
    done = CliRunner().invoke(command_line(["help", "tial"]), ["help", "tial"])
    assert (done.exit_code, "Did you mean 'tail'" in done.output) == (2, True)


def every_command() -> dict[str, Any]:
    """Returns all commands by the words that run them, as Typer makes them."""
    commands.load()

    def walk(found: Any, before: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
        for name, each in found.commands.items():
            words = (*before, name)
            yield from walk(each, words) if hasattr(each, "commands") else [(" ".join(words), each)]

    return dict(walk(typer.main.get_command(commands.app), ()))


EVERY = every_command()


@pytest.mark.parametrize("name", EVERY)
def test_help_has_standard_words_for_values(name: str) -> None:
    text = help_of(*name.split())
    usage = text.partition("\n\n")[0]
    assert re.fullmatch(rf"Usage: awoke {name} \[OPTIONS\]( \[?[A-Z:|=]+\]?(\.\.\.)?)*", usage), usage
    for given in ("<", "{", "list[", "range", "[default", "[required"):
        assert given not in text.replace("<title>", "")
    assert "None" not in text


SAME = (
    "--json",
    "--yes",
    "--dry-run",
    "--quiet",
    "--bootstrap-servers",
    "--kafka",
    "--socket",
    "--last",
    "--registry-url",
)


def test_an_option_of_one_name_means_one_thing() -> None:
    texts: dict[str, set[str]] = {name: set() for name in SAME}
    for command in EVERY.values():
        for parameter in command.params:
            for option in set(parameter.opts) & set(SAME):
                texts[option].add(" ".join(parameter.help.split()))
    own = {
        "--socket": "The path of the UNIX socket",
        "--dry-run": "Check only, and register nothing.",
    }  # Of `run`, of a registry.
    for option, found in texts.items():
        assert len([each for each in found if not each.startswith(own.get(option, "\0"))]) == 1, (option, found)


def test_whatever_lists_can_print_json() -> None:
    """A command that writes a table has --json, in its own function or in one that it calls with `as_json`."""
    shows = re.compile(r"\b(show_list|show_table|aligned|show_letter|describe_one|show)\(")
    for name, command in EVERY.items():
        source = inspect.getsource(inspect.unwrap(command.callback))
        if shows.search(source) and name not in ("run", "console", "top"):
            assert "--json" in {option for each in command.params for option in each.opts}, name


LOADED = "print(*(name for name in sys.modules if name.startswith('awoke.cli.')))"


@pytest.mark.parametrize(
    ("words", "loaded", "left_out"),
    [
        (["topics", "list"], {"topics"}, {"run", "produce", "dead_letter"}),
        (["--traceback", "dead-letter", "purge"], {"dead_letter", "dead_letter_purge"}, {"run", "produce"}),
        (["status", "shop:app"], {"swarm"}, set[str]()),
        (["--help"], {"run", "topics", "swarm", "dead_letter_purge"}, set[str]()),
        (["no-such-command"], {"run", "topics", "swarm"}, set[str]()),
    ],
)
def test_a_command_loads_the_modules_that_are_named_after_it(
    words: list[str], loaded: set[str], left_out: set[str]
) -> None:
    program = f"import sys; from awoke.cli.main import command_line; command_line({words}); {LOADED}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    found = {name.removeprefix("awoke.cli.") for name in done.stdout.split()}
    assert found >= loaded
    assert found & left_out == set()


def test_no_module_lists_the_modules_with_commands() -> None:
    """A new command touches one file: its own."""
    registering = {file.stem for file in PACKAGE.glob("*.py") if "import Section, command\n" in file.read_text()}
    assert {"run", "produce", "doctor"} <= registering
    for file in (PACKAGE / "main.py", PACKAGE / "commands.py", PACKAGE / "__init__.py"):
        names = {node.id for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Name)}
        assert not names & registering, file.name
