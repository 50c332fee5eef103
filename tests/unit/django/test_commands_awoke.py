"""`manage.py awoke`: the app of the settings stands where a command takes one."""

from __future__ import annotations

import pytest

pytest.importorskip("django")

from awoke.django.management.commands.awoke import with_target

TARGET = "shop.kafka:app"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("run", "run shop.kafka:app"),
        ("run --nodes 4", "run shop.kafka:app --nodes 4"),
        ("run --watch", "run shop.kafka:app --watch"),
        ("run other:app --nodes 4", "run other:app --nodes 4"),
        ("run --bootstrap-servers kafka:9092", "run shop.kafka:app --bootstrap-servers kafka:9092"),
        ("resume orders 0", "resume shop.kafka:app orders 0"),
        ("topics plan", "topics plan shop.kafka:app"),
        ("topics list", "topics list"),
        ("tail orders", "tail orders"),
        ("run --help", "run --help"),
        ("--version", "--version"),
        ("missing", "missing"),
        ("", ""),
    ],
)
def test_the_app_is_added_where_a_command_takes_one(words: str, expected: str) -> None:
    assert with_target(words.split(), TARGET) == expected.split()


def test_nothing_is_added_where_the_settings_name_no_app() -> None:
    assert with_target(["run"], None) == ["run"]
