"""`awoke topics plan` and `apply`: what is shown, asked and changed, and the exit codes."""

from __future__ import annotations

import json
import sys
from types import ModuleType
from typing import Any

import pytest
from typer.testing import CliRunner

import awoke
from awoke.cli.main import command_line
from tests.support.fake_topics import FakeTopics
from tests.unit.cli.fakes import Done, run

PLAN, APPLY = ("topics", "plan", "shop_of_a_test:app"), ("topics", "apply", "shop_of_a_test:app")


class Brokers(FakeTopics):
    """Topics of the cluster, in the place of `awoke.Admin`."""

    def __call__(self, settings: Any) -> Brokers:
        self.settings = settings
        return self

    def __enter__(self) -> Brokers:
        return self

    def __exit__(self, *_: object) -> None: ...

    def topics(self) -> list[Any]:
        return [self.describe_topic(name) for name in self.replicas]


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> awoke.App:
    """An app that `shop_of_a_test:app` names."""
    module = ModuleType("shop_of_a_test")
    app = module.app = awoke.App("shop")  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    app.topic("orders", partitions=3, replication=1, config={"cleanup.policy": "compact", "retention.ms": 5})
    app.topic("audit", partitions=2)
    return app


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch, app: awoke.App) -> Brokers:
    """Brokers that lack a topic, and two partitions of another one."""
    found = Brokers(orders=[1])
    monkeypatch.setattr(awoke, "Admin", found)
    return found


def streams(*words: str) -> tuple[str, str, int]:
    """Runs a command; returns its standard output, standard error and exit code."""
    done = CliRunner().invoke(command_line(words), words, env={"COLUMNS": "200"})
    return done.stdout, done.stderr, done.exit_code


def test_a_plan_is_a_table_with_notes_and_its_own_exit_code(brokers: Brokers) -> None:
    shown, notes, code = streams(*PLAN)
    lines = shown.splitlines()
    assert [line.split() for line in lines[:5]] == [
        ["topic", "option", "found", "declared", "change"],
        ["audit", "topic", "missing", "2", "partitions", "create", "it"],
        ["orders", "partitions", "1", "3", "add", "2"],
        ["orders", "cleanup.policy", "delete", "compact", "set", "it"],
        ["orders", "retention.ms", "604800000", "5", "set", "it"],
    ]
    assert lines[5:] == ["awoke topics apply makes 3 changes"]
    assert notes.startswith("note: orders: with more partitions, later messages of a key may go to another one")
    assert (code, brokers.made) == (1, [])


def test_a_plan_is_json_for_programs(brokers: Brokers) -> None:
    shown, _, code = streams(*PLAN, "--json")
    assert [json.loads(line) for line in shown.splitlines()][:2] == [
        {
            "topic": "audit",
            "option": "topic",
            "found": "missing",
            "declared": "2 partitions",
            "change": "create it",
            "is_made": True,
        },
        {
            "topic": "orders",
            "option": "partitions",
            "found": "1",
            "declared": "3",
            "change": "add 2",
            "is_made": True,
        },
    ]
    assert code == 1


def test_a_value_of_the_cluster_moves_no_cursor(brokers: Brokers) -> None:
    brokers.configs["orders"]["cleanup.policy"] = "\x1b[31m\ndelete"
    assert r"\x1b[31m\ndelete" in run(*PLAN).output


def test_topics_that_are_as_declared_are_told_so(brokers: Brokers) -> None:
    run(*APPLY, "--yes")
    assert run(*PLAN) == Done("all topics are there, as declared\n", 0)
    assert streams(*PLAN, "--json") == ("", "", 0)
    made = len(brokers.made)
    assert run(*APPLY) == Done("all topics are there, as declared\n", 0), "it asks nothing where there is nothing to do"
    assert len(brokers.made) == made


def test_applying_shows_the_plan_and_each_change(brokers: Brokers) -> None:
    shown, _, code = streams(*APPLY, "--yes")
    assert shown.splitlines()[5:] == [
        "awoke topics apply makes 3 changes",
        "topic audit created: 2 partitions",
        "topic orders: 3 partitions instead of 1",
        "topic orders: set cleanup.policy=compact, retention.ms=5",
    ]
    assert (code, len(brokers.made)) == (0, 3)


def test_without_a_terminal_applying_needs_yes(brokers: Brokers) -> None:
    with pytest.raises(
        awoke.ConfigError, match="this would make 3 changes, and there is no terminal to ask at; pass --yes"
    ):
        run(*APPLY)
    assert brokers.made == []


def test_a_refusal_ends_it_after_the_changes_that_were_made(brokers: Brokers) -> None:
    brokers.refused["create_partitions"] = awoke.KafkaError("too many", 44, "POLICY_VIOLATION")
    with pytest.raises(awoke.AwokeError, match="too many; 1 of 3 changes were made before"):
        run(*APPLY, "--yes")
    assert brokers.made == [("create", "audit", 2, -1, {})]


def test_what_can_not_be_changed_is_left_alone(brokers: Brokers, app: awoke.App) -> None:
    brokers.replicas.update(audit=[1, 1, 1], orders=[2, 2, 2])
    brokers.configs["audit"] = {}
    shown, notes, code = streams(*APPLY, "--yes")
    assert "awoke topics apply makes 1 change, and leaves 2 differences alone" in shown
    assert "audit: Kafka removes no partitions: declare 3" in notes
    assert "orders: a change of the replication moves data between brokers" in notes
    assert code == 0
    assert streams(*PLAN)[2] == 1


def test_the_options_name_the_cluster(brokers: Brokers) -> None:
    run(*PLAN, "-b", "kafka:1", "--kafka", "client.id=me")
    assert brokers.settings.bootstrap_servers == "kafka:1"
    assert brokers.settings.kafka == {"client.id": "me"}


def test_an_app_without_declared_topics_is_told_so(brokers: Brokers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["shop_of_a_test"], "app", awoke.App("plain"))
    shown, notes, code = streams(*PLAN)
    assert (shown, code) == ("all topics are there, as declared\n", 0)
    assert "shop_of_a_test:app has no topics" in notes


def test_topics_that_routes_only_name_are_looked_for_and_made(brokers: Brokers, app: awoke.App) -> None:
    @app.on("orders", output="receipts", dead_letter="orders.dead")
    def handle(message: awoke.Message[bytes]) -> bytes:
        return message.value

    shown, _, code = streams(*PLAN)
    missing = [line.split()[0] for line in shown.splitlines() if " missing " in line]
    assert (missing, code) == (["audit", "orders.dead", "receipts"], 1)
    run(*APPLY, "--yes")
    assert ("create", "receipts", -1, -1, {}) in brokers.made
    assert streams(*PLAN)[2] == 0


def test_a_pattern_that_matches_nothing_is_told(brokers: Brokers, app: awoke.App) -> None:
    @app.on(awoke.Pattern("clicks-.*"))
    def handle(message: awoke.Message[bytes]) -> None: ...

    run(*APPLY, "--yes")
    _, notes, code = streams(*PLAN)
    assert code == 1
    assert "'clicks-.*'" in notes
    assert "matches no topic: the app does not start; create one" in notes
    brokers.create_topic("clicks-1")
    assert streams(*PLAN)[2] == 0
