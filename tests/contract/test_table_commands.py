"""`awoke table`: lists tables, and prints their rows as the app's types show them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Annotated, Any

import msgspec
import pytest
from typer.testing import CliRunner

import awoke
from awoke.cli.main import command_line
from awoke.errors import ConfigError
from awoke.testing import running
from tests.support.clusters import MockCluster, unique
from tests.support.waiting import wait_until

WIDE = {"COLUMNS": "200"}


class Total(msgspec.Struct):
    """A row."""

    cents: int
    card: Annotated[str, awoke.Secret]


@pytest.fixture(scope="module")
def shop(mock_cluster: MockCluster) -> Iterator[awoke.App]:
    """An app with a table of two rows, that runs."""
    topic = unique("payments")
    mock_cluster.create_topic(topic, 3)
    app = awoke.App(
        unique("shop"), console=True, bootstrap_servers=mock_cluster.bootstrap_servers, kafka=mock_cluster.properties
    )
    totals, lasts = app.table("totals", key=int, value=Total), app.table("lasts")

    @app.on(topic, key=int, value=int, tables=[totals, lasts])
    def add(message: awoke.Message[int, int]) -> None:
        totals[message.key] = Total(message.value, "4111 1111")
        lasts[b"last"] = f"\x1b[2J{message.key}"

    with awoke.Producer(mock_cluster.bootstrap_servers, kafka=mock_cluster.properties) as producer:
        awoke.wait_all([producer.produce(topic, 5, key=b"7"), producer.produce(topic, 6, key=b"8")], 30)
    with pytest.MonkeyPatch.context() as patched, running(app):
        patched.setitem(sys.modules, "shop_with_totals", SimpleNamespace(app=app))
        patched.setenv("AWOKE_BOOTSTRAP_SERVERS", mock_cluster.bootstrap_servers)
        wait_until(lambda: len(totals.committed()) == 2, "both rows are committed")
        yield app


def says(*arguments: str, fails: bool = False) -> str:
    done = CliRunner().invoke(command_line(["table"]), ["table", *arguments], env=WIDE)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert (done.exit_code != 0) == fails, done.output
    return done.output


def test_rows_are_decoded_and_masked_by_the_types_of_the_app(shop: awoke.App) -> None:
    row = '{"cents":5,"card":"[secret]"}'
    assert says("get", "shop_with_totals:app", "totals", "7") == f"{row}\n"
    lines = says("scan", "shop_with_totals:app", "totals").splitlines()
    assert sorted(lines) == [f"7\t{row}", f"8\t{row.replace('5', '6', 1)}"]
    exported = [msgspec.json.decode(line) for line in says("export", "shop_with_totals:app", "totals").splitlines()]
    assert sorted(exported, key=lambda each: each["key"])[1] == {"key": 8, "value": {"cents": 6, "card": "[secret]"}}
    kept = says("get", "shop_with_totals:app", "totals", "7", "--keep-secrets")
    assert "4111 1111" in kept


def test_rows_of_an_app_that_is_only_named_are_text(shop: awoke.App) -> None:
    assert says("get", shop.name, "totals", "7") == '{"cents":5,"card":"4111 1111"}\n'
    of_last = [says("scan", shop.name, "lasts", "--partition", f"{number}") for number in range(3)]
    assert "\x1b" not in "".join(of_last)
    assert "".join(of_last).count("last\t") == len({each for each in of_last if each})


def test_a_key_without_a_row_fails(shop: awoke.App) -> None:
    with pytest.raises(awoke.rpc.NotFound, match=r"table 'totals' has no row '9' in partition \d, which"):
        says("get", "shop_with_totals:app", "totals", "9")
    with pytest.raises(ConfigError, match="'nine' is not one of this table"):
        says("get", "shop_with_totals:app", "totals", "nine")
    with pytest.raises(ConfigError, match="its tables are: totals, lasts"):
        says("get", "shop_with_totals:app", "nothing", "9")
    with pytest.raises(awoke.UnknownTopic, match="has no table 'nothing'"):
        says("get", shop.name, "nothing", "9")
    with pytest.raises(ConfigError, match="--keep-secrets"):
        says("get", shop.name, "totals", "7", "--keep-secrets")


def test_tables_are_listed_with_their_size_and_owner(shop: awoke.App) -> None:
    def listed() -> list[dict[str, Any]]:
        lines = says("list", shop.name, "--json").splitlines()
        return [msgspec.json.decode(line) for line in lines if line.startswith("{")]

    wait_until(lambda: sum(each["rows"] for each in listed() if each["table"] == "totals") == 2, "both are reported")
    found = [each for each in listed() if each["table"] == "totals"]
    assert [each["partition"] for each in found] == [0, 1, 2]
    assert all(each["is_restored"] and each["process"] for each in found)
    shown = says("list", "shop_with_totals:app")
    assert all(word in shown for word in ("totals", "lasts", "restored", found[0]["process"]))
