"""Commands register themselves: no list names them."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from awoke.cli import commands
from awoke.cli.main import command_line

PACKAGE = Path(commands.__file__).parent


def help_of(*words: str) -> str:
    done = CliRunner().invoke(command_line(words), [*words, "--help"], env={"COLUMNS": "200", "TERMINAL_WIDTH": "200"})
    assert done.exit_code == 0
    return done.output


def names_in(text: str) -> list[str]:
    return re.findall(r"^  ([a-z-]+)  ", text.partition("Commands:")[2], re.MULTILINE)


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
        "record",
        "replay",
        "report",
        "rpc",
        "run",
        "table",
        "threads",
        "top",
    ]
    assert names_in(help_of()) == sorted(of_swarm + others)
    assert set(names_in(help_of("dead-letter"))) == {"list", "summary", "show", "replay", "purge", "try"}
    assert set(names_in(help_of("topics"))) == {"create", "list", "describe", "alter", "delete", "plan", "apply"}


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
    registering = {file.stem for file in PACKAGE.glob("*.py") if "import command\n" in file.read_text()}
    assert {"run", "produce", "doctor"} <= registering
    for file in (PACKAGE / "main.py", PACKAGE / "commands.py", PACKAGE / "__init__.py"):
        names = {node.id for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Name)}
        assert not names & registering, file.name
