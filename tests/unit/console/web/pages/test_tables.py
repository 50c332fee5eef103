"""Tables: a partition is one row, of the process that reported last, and names are harmless."""

from __future__ import annotations

from awoke.console.views import TablePartition
from awoke.console.web.pages.tables import rows_of
from tests.unit.console.web.fakes import HOSTILE, FakeLive, console, report


def part(partition: int, rows: int, table: str = "totals", *, is_restored: bool = True) -> TablePartition:
    return TablePartition(
        table=table,
        topic=f"shop.table.{table}",
        partition=partition,
        rows=rows,
        size_bytes=rows * 10,
        memory_bytes=4_096,
        is_restored=is_restored,
    )


def test_a_partition_that_two_processes_report_is_that_of_the_younger_report() -> None:
    before, now = report("a", tables=[part(0, 5), part(1, 6)]), report("b", tables=[part(1, 7, is_restored=False)])
    before.at_ms = now.at_ms - 5
    for reports in ([before, now], [now, before]):
        found = sorted((each.partition, each.rows, each.state, each.node) for each in rows_of(reports))
        assert found == [(0, 5, "restored", "a"), (1, 7, "restoring", "b")]


def test_the_page_shows_sizes_owners_and_the_changelog_and_is_harmless() -> None:
    with console(FakeLive([report("a", tables=[part(0, 5), part(1, 6, HOSTILE, is_restored=False)])])) as client:
        page = client.get("/tables").text
        found = client.get("/tables?sort=rows&order=desc&format=json").json()
    assert "shop.table.totals/messages" in page
    assert "restoring" in page
    assert "<script>alert" not in page
    assert [each["rows"] for each in found["partitions"]["rows"]] == [6, 5]
    assert (found["rows"], found["size_bytes"], found["states"]) == (11, 110, {"restored": 1, "restoring": 1})


def test_an_app_without_tables_has_none() -> None:
    with console(FakeLive([report("a")])) as client:
        assert "No process has reported a table." in client.get("/tables").text
