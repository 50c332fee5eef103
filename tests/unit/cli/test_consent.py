"""The rule of the commands that ask first, for all commands: `--yes`, `--dry-run`, and a refusal without a terminal."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any

import pytest
import typer

import awoke
from awoke.cli import commands, consent, letters
from awoke.cli.consent import ASKING, Consent
from awoke.errors import ConfigError
from tests.unit.cli.fakes import FakeAdmin, run, stored
from tests.unit.cli.test_dead_letter import FakeMemory, FakeProducer, FakeSender


def every_command() -> Mapping[str, Callable[..., Any]]:
    """Returns the functions of all commands, by the words that run them."""
    commands.load()

    def walk(app: typer.Typer, before: str) -> Iterator[tuple[str, Callable[..., Any]]]:
        for each in app.registered_commands:
            assert each.callback is not None
            yield before + (each.name or each.callback.__name__.replace("_", "-")), each.callback
        for group in app.registered_groups:
            assert group.typer_instance is not None
            yield from walk(group.typer_instance, f"{before}{group.name} ")

    return dict(walk(commands.app, ""))


EVERY = every_command()
COMMANDS = {
    "topics delete": ("orders",),
    "topics alter": ("orders", "--partitions", "4"),
    "topics apply": ("shop_of_consent:app",),
    "groups delete": ("idle",),
    "groups reset": ("idle", "--to-earliest"),
    "dead-letter purge": ("orders", "--all"),
    "dead-letter replay": ("orders", "--topic", "repaired"),
}
"""All commands that ask first, each with arguments with which it has something to do."""


def test_the_table_has_all_commands_that_ask() -> None:
    asking = {name for name, function in EVERY.items() if function in ASKING}
    assert asking == set(COMMANDS)
    with_yes = {name for name, function in EVERY.items() if "yes" in inspect.signature(function).parameters}
    assert with_yes == asking, "no command has a --yes of its own"
    assert all(ASKING[EVERY[name]] for name in asking)


CHANGES = ("delete_", "alter_", "reset_", "create_partitions")
"""The functions of administration that take something away, by their beginnings."""


@pytest.mark.parametrize("name", sorted(set(EVERY) - set(COMMANDS)))
def test_no_other_command_destroys(name: str) -> None:
    tree = ast.parse(textwrap.dedent(inspect.getsource(EVERY[name])))
    called = {each.func.attr for each in ast.walk(tree) if isinstance(each, ast.Call) and hasattr(each.func, "attr")}
    assert not {each for each in called if each.startswith(CHANGES)}


class Brokers(FakeAdmin):
    """Brokers with topics, a group with offsets, and what an app wants otherwise."""

    def __init__(self) -> None:
        super().__init__(orders={0: (3, 7)})
        self.groups = {"idle": awoke.GroupInfo("idle", "Empty", "consumer", "", None, [])}
        self.plan = [awoke.OffsetChange("idle", "orders", 0, 4, 7, 3, 7, is_clamped=False)]


def changes(admin: FakeAdmin) -> list[Any]:
    return [each for each in admin.asked if each[0] != "plan"]


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Brokers:
    """Brokers, a dead letter and an app for all of these commands."""
    brokers = Brokers()
    monkeypatch.setattr(awoke, "Admin", brokers)
    monkeypatch.setattr(letters, "messages", lambda *_: iter([stored(4)]))
    monkeypatch.setattr("awoke.cli.dead_letter.ReplayMemory", FakeMemory((9, 9)))
    monkeypatch.setattr("awoke.cli.dead_letter.Sender", FakeSender)
    monkeypatch.setattr(awoke, "Producer", FakeProducer)
    monkeypatch.setattr(FakeSender, "made", [])
    monkeypatch.setattr(FakeSender, "refused", ())
    module = ModuleType("shop_of_consent")
    module.app = awoke.App("shop")  # type: ignore[attr-defined]
    module.app.topic("audit", partitions=2)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return brokers


@pytest.mark.parametrize("name", COMMANDS)
def test_without_a_terminal_yes_must_be_said(name: str, brokers: Brokers) -> None:
    with pytest.raises(ConfigError, match=r"this would .*; pass --yes, or --dry-run to look first") as refused:
        run(*name.split(), *COMMANDS[name])
    assert refused.value.property == "--yes"
    assert (changes(brokers), FakeSender.made) == ([], [])


@pytest.mark.parametrize("name", COMMANDS)
def test_a_dry_run_changes_nothing_and_asks_nothing(name: str, brokers: Brokers) -> None:
    done = run(*name.split(), *COMMANDS[name], "--dry-run")
    assert done.exit_code == 0
    assert "dry run: would " in done.output
    assert (changes(brokers), FakeSender.made) == ([], [])


@pytest.mark.parametrize("name", COMMANDS)
def test_yes_answers(name: str, brokers: Brokers) -> None:
    assert run(*name.split(), *COMMANDS[name], "--yes").exit_code == 0
    assert changes(brokers) or FakeSender.made


@pytest.mark.parametrize("name", COMMANDS)
def test_no_leaves_all_as_it_is(name: str, brokers: Brokers, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def refuse(question: str) -> bool:
        asked.append(question)
        return False

    monkeypatch.setattr(consent, "ask", refuse)
    monkeypatch.setattr(consent, "is_asked_at_terminal", lambda: True)
    assert run(*name.split(), *COMMANDS[name]).exit_code == 1
    (question,) = asked
    assert question[0].isupper()
    assert question.endswith("?")
    assert (changes(brokers), FakeSender.made) == ([], [])


def test_yes_at_the_terminal_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consent, "ask", lambda question: True)
    monkeypatch.setattr(consent, "is_asked_at_terminal", lambda: True)
    assert Consent(is_given=False, is_dry_run=False).to("delete topic orders")


def test_a_dry_run_counts_more_than_yes(capsys: pytest.CaptureFixture[str]) -> None:
    assert not Consent(is_given=True, is_dry_run=True).to("delete topic orders")
    assert capsys.readouterr().out == "dry run: would delete topic orders\n"
