"""`awoke dead-letter purge`: which messages are deleted, after which question, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

import awoke
from awoke.cli.dead_letter_purge import places
from tests.unit.cli.fakes import FakeAdmin, run

ENDS = {0: 5, 1: 3}


@pytest.mark.parametrize(
    ("words", "found"),
    [([], {}), (["0:0"], {0: 1}), (["0:4", "1:2"], {0: 5, 1: 3}), (["0:3", "0:1"], {0: 4})],
)
def test_a_place_is_deleted_itself(words: list[str], found: dict[int, int]) -> None:
    assert places("dead", words, ENDS) == found


@pytest.mark.parametrize(
    ("word", "said"),
    [("7:0", "--until 7:0: dead has no partition 7"), ("1:3", r"dead\[1\] ends before offset 3"), ("1", "PARTITION")],
)
def test_a_place_that_does_not_exist_is_refused(word: str, said: str) -> None:
    with pytest.raises(awoke.ConfigError, match=said):
        places("dead", [word], ENDS)


@pytest.fixture
def admin(monkeypatch: pytest.MonkeyPatch) -> FakeAdmin:
    """A dead letter topic with 4 messages in partition 0, and 2 in partition 1."""
    admin = FakeAdmin(dead={0: (1, 5), 1: (1, 3)})
    monkeypatch.setattr(awoke, "Admin", admin)
    return admin


def test_all_messages_are_deleted_up_to_the_ends(admin: FakeAdmin) -> None:
    done = run("dead-letter", "purge", "dead", "--all", "--yes", "-b", "a:1", "--kafka", "acks=1")
    assert admin.made == [{"bootstrap_servers": "a:1", "kafka": {"acks": "1"}}]
    assert admin.asked == [("delete_records", "dead", {0: 5, 1: 3})]
    begins = "partition 0 begins at offset 5 and partition 1 begins at offset 3"
    assert done.output == f"deleted 6 messages of dead: {begins}\n"


def test_messages_are_deleted_up_to_a_place_of_their_partition(admin: FakeAdmin) -> None:
    assert "deleted 2 messages of dead" in run("dead-letter", "purge", "dead", "--until", "0:2", "--yes").output
    assert admin.asked == [("delete_records", "dead", {0: 3})]


def test_messages_are_deleted_that_were_written_before_a_time(admin: FakeAdmin) -> None:
    admin.at_time = {0: 1, 1: 2}
    assert "deleted 1 message " in run("dead-letter", "purge", "dead", "--before", "2026-01-31T00:00Z", "--yes").output
    moment_ms = int(datetime(2026, 1, 31, tzinfo=UTC).timestamp() * 1_000)
    assert admin.asked == [("offsets_at", "dead", moment_ms), ("delete_records", "dead", {1: 2})]


def test_nothing_is_deleted_or_asked_where_nothing_is_old_enough(admin: FakeAdmin) -> None:
    assert run("dead-letter", "purge", "dead", "--until", "0:0").output == "there is nothing to delete\n"
    assert admin.asked == []


def test_a_dry_run_tells_the_number_of_messages(admin: FakeAdmin) -> None:
    done = run("dead-letter", "purge", "dead", "--all", "--dry-run")
    assert done.output == "dry run: would delete 6 messages of dead for good\n"


@pytest.mark.parametrize("options", [[], ["--all", "--until", "0:0"], ["--all", "--before", "1h"]])
def test_one_way_to_name_the_messages_is_needed(options: list[str], admin: FakeAdmin) -> None:
    with pytest.raises(awoke.ConfigError, match="one of --before, --until and --all"):
        run("dead-letter", "purge", "dead", *options, "--yes")
    assert admin.asked == []


def test_a_time_that_is_none_is_refused_by_the_name_of_its_option(admin: FakeAdmin) -> None:
    with pytest.raises(awoke.ConfigError, match="--before takes a time") as refused:
        run("dead-letter", "purge", "dead", "--before", "soon", "--yes")
    assert refused.value.property == "--before"
