"""The state of an app from its topics: last reports, tombstones, newer nodes, hostile records, failures by kind."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from awoke.console import state as state_module
from awoke.console.open_transactions import SeenTransactions
from awoke.console.state import KINDS_MAX, MINUTE_MS, MINUTES, ErrorKinds, State, group_of, read_view
from awoke.console.views import ErrorRecord, Report
from awoke.errors import UnknownGroup, UnknownTopic
from awoke.operate.commands.views import MAJOR, Audit
from awoke.runtime.process.embedded import EmbeddedCluster
from awoke.settings import load
from awoke.text.records import decode
from awoke.waiting.clock import wall_ms


def report(node: str = "host.1", sequence: int = 1, at_ms: int | None = None) -> Report:
    return Report(
        major=MAJOR,
        minor=0,
        node=node,
        app="shop",
        host="host",
        pid=1,
        started_at_ms=1,
        at_ms=wall_ms() if at_ms is None else at_ms,
        sequence=sequence,
        state="running",
        groups=["shop", "audit"],
    )


def record(fingerprint: str, at_ms: int) -> ErrorRecord:
    return ErrorRecord(
        major=MAJOR,
        minor=0,
        at_ms=at_ms,
        node="host.1",
        app="shop",
        event="job.failed",
        fingerprint=fingerprint,
        error_type="ValueError",
        error_text="no good",
        traceback="",
    )


def message(value: Any, key: bytes = b"host.1") -> Any:
    encoded = value if value is None or isinstance(value, bytes) else msgspec.json.encode(value)
    return SimpleNamespace(key=key, value=encoded)


def state_of(*messages: Any) -> State:
    state = State("shop")
    for each in messages:
        state.on_report(each)
    return state


def test_the_last_report_of_each_process_counts() -> None:
    state = state_of(message(report(sequence=1)), message(report("host.2"), b"host.2"), message(report(sequence=2)))
    assert [(node, each.sequence) for node, each in state.reports().items()] == [("host.1", 2), ("host.2", 1)]


def test_a_process_that_has_stopped_in_order_is_gone() -> None:
    assert state_of(message(report()), message(None)).nodes(wall_ms()) == []


def test_a_process_that_sends_nothing_is_silent() -> None:
    state = state_of(message(report(at_ms=wall_ms() - 60_000)), message(report(), b"host.2"))
    assert [each.is_silent for each in state.nodes(wall_ms())] == [True, False]


def test_a_report_is_overdue_two_seconds_after_the_time_that_the_process_has_named() -> None:
    state = State("shop")
    now_ms = wall_ms()
    state.on_report(message({**msgspec.to_builtins(report("host.1")), "at_ms": now_ms - 5_000}))
    # Its clock is wrong: the time at which it came counts.
    late = {**msgspec.to_builtins(report("host.2")), "at_ms": now_ms - 3_600_000, "interval_ms": 1_000}
    state.on_report(message(late, b"host.2"), now_ms)
    assert state.next_overdue(now_ms) == (0, now_ms + 3_000)
    assert state.next_overdue(now_ms + 3_001) == (1, now_ms + 7_000)
    assert state.next_overdue(now_ms + 7_001) == (2, None)

    def told(at_ms: int, *, is_current: bool = True) -> list[tuple[bool, bool]]:
        return [(each.is_overdue, each.is_silent) for each in state.nodes(at_ms, is_current=is_current)]

    assert told(now_ms + 3_000) == [(False, False), (False, False)]
    assert told(now_ms + 3_001) == [(False, False), (True, True)]
    assert told(now_ms + 7_001) == [(True, False), (True, True)]
    assert told(now_ms + 7_001, is_current=False) == [(False, False), (False, True)]


def test_a_newer_node_is_shown_as_one() -> None:
    (node,) = state_of(message({"major": MAJOR + 1, "partitions": "in another form"})).nodes(wall_ms())
    assert (node.is_newer, node.report()) == (True, None)


def test_a_newer_process_that_stops_leaves_no_names_that_are_not_understood() -> None:
    told = {**msgspec.to_builtins(report()), "secrets": []}
    assert state_of(message({**told, "major": MAJOR + 1}), message(None)).gone is None
    assert state_of(message(told), message(None)).gone == []


@pytest.mark.parametrize("value", [b"", b"{", b"[]", b"\xff\xfe", b'{"major": 1}', b'{"major": "9"}', b"null"])
def test_a_record_that_is_no_report_is_counted(value: bytes) -> None:
    state = state_of(message(report()), message(value))
    state.on_error(message(value))
    assert state.unreadable == 2
    assert [each.node for each in state.nodes(wall_ms())] == ["host.1"], "the earlier report stays"


def test_a_report_in_another_form_is_counted_and_the_one_before_stays() -> None:
    state = state_of(message(report()))
    assert [each.is_newer for each in state.nodes(wall_ms())] == [False]
    state.on_report(message({**msgspec.to_builtins(report(sequence=2)), "partitions": "in another form"}))
    assert (state.view([]).unreadable, state.reports()["host.1"].sequence) == (1, 1)


def test_a_report_is_decoded_once_and_only_the_last_of_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded = list[int]()

    def counted(value: bytes, kind: type[Any]) -> Any:
        found = decode(value, kind)
        if isinstance(found, Report):
            decoded.append(found.sequence)
        return found

    monkeypatch.setattr(state_module, "decode", counted)
    state = state_of(*(message(report(sequence=each)) for each in range(5)))
    for _ in range(3):
        state.view([])
        assert state.groups() == ["audit", "shop"]
    assert decoded == [4]


def test_a_report_with_text_that_is_no_utf_8_in_an_unknown_field_is_counted() -> None:
    sent = msgspec.json.encode(report())[:-1] + b',"colour":"\xff"}'
    state = state_of(message(report(sequence=5)))
    assert list(state.reports()) == ["host.1"]
    state.on_report(message(sent))
    assert (state.view([]).unreadable, state.reports()["host.1"].sequence) == (1, 5)


def test_groups_are_those_of_the_reports_or_named_as_the_app() -> None:
    assert state_of(message(report())).groups() == ["audit", "shop"]
    assert state_of().groups() == ["shop"]


def test_failures_are_counted_by_fingerprint_the_last_one_first() -> None:
    state = State("shop")
    for fingerprint, at_ms in (("aa", 1), ("bb", 2), ("aa", 3)):
        state.on_error(message(record(fingerprint, at_ms)))
    found = [(each.fingerprint, each.count, each.first_ms, each.last.at_ms) for each in state.errors()]
    assert found == [("aa", 2, 1, 3), ("bb", 1, 2, 2)]


def test_the_view_of_all_can_be_written_as_json() -> None:
    state = state_of(message({**msgspec.to_builtins(report()), "colour": "blue"}))
    document = msgspec.json.decode(msgspec.json.encode(state.view([])))
    assert document["nodes"][0]["document"]["colour"] == "blue"


class FakeAdmin:
    """The admin client of a cluster with one group, of which one partition was never committed."""

    def describe_group(self, group: str, timeout_s: float) -> Any:
        if group != "shop":
            raise UnknownGroup("there is none", 69, "GROUP_ID_NOT_FOUND")
        return SimpleNamespace(state="Stable", members=[SimpleNamespace(partitions=[("orders", 0), ("orders", 1)])])

    def group_offsets(self, group: str, timeout_s: float) -> Any:
        return {("orders", 0): 4, ("gone", 0): 4}

    def end_offsets(self, topic: str, timeout_s: float) -> Any:
        if topic == "gone":
            raise UnknownTopic("there is none", 3, "UNKNOWN_TOPIC_OR_PART")
        return {0: 10, 1: 3}

    def stable_offsets(self, topic: str, timeout_s: float, *, partitions: list[int]) -> Any:
        assert (topic, partitions) == ("orders", [0])  # All others have nothing that waits.
        return {0: self.stable}

    stable = 10


def test_a_group_tells_the_lag_of_committed_partitions_and_none_of_others() -> None:
    admin: Any = FakeAdmin()
    view = group_of(admin, "shop", 1.0)
    assert (view.state, view.members) == ("Stable", 1)
    found = [(each.topic, each.partition, each.committed, each.end_offset, each.lag) for each in view.partitions]
    assert found == [("gone", 0, 4, None, None), ("orders", 0, 4, 10, 6), ("orders", 1, None, 3, None)]


def test_a_group_tells_since_when_a_transaction_keeps_its_messages() -> None:
    fake, seen = FakeAdmin(), SeenTransactions()
    admin: Any = fake

    def found() -> tuple[int | None, int | None]:
        at = group_of(admin, "shop", 1.0, seen).partitions[1]
        return at.last_stable_offset, at.transaction_open_since_ms

    assert found() == (10, None)
    fake.stable = 4
    first = found()
    assert first[0] == 4
    assert first[1] is not None
    assert found() == first


def test_a_group_that_the_brokers_do_not_know_has_no_members() -> None:
    admin: Any = FakeAdmin()
    view = group_of(admin, "other", 1.0)
    assert (view.state, view.members, view.partitions) == ("unknown", 0, [])


def test_an_app_that_never_reported_is_an_error_that_says_what_to_do() -> None:
    with EmbeddedCluster() as cluster:
        settings = load({"bootstrap_servers": cluster.bootstrap_servers}).values
        with pytest.raises(UnknownTopic, match=r"shop.*console=True"):
            read_view("shop", settings)


def test_the_last_commands_come_first() -> None:
    state = State("shop")
    for verb in ("pause", "resume"):
        audit = Audit(
            at_ms=1,
            node="host.1",
            app="shop",
            who="ann",
            via="test",
            verb=verb,
            arguments={},
            reason="a test",
            result="done",
            text="",
            took_ms=1,
        )
        state.on_audit(message(msgspec.json.encode(audit)))
    state.on_audit(message(b"{"))
    view = state.view([])
    assert [each.verb for each in view.audit] == ["resume", "pause"]
    assert view.unreadable == 1


def failure(fingerprint: str, at_ms: int) -> ErrorRecord:
    texts: Any = dict.fromkeys(("node", "app", "event", "error_type", "error_text", "traceback"), "x")
    return ErrorRecord(major=MAJOR, minor=0, at_ms=at_ms, fingerprint=fingerprint, **texts)


def kinds_of(*records: tuple[str, int]) -> ErrorKinds:
    kinds = ErrorKinds()
    for each in records:
        kinds.add(failure(*each))
    return kinds


def test_records_that_come_late_change_neither_the_last_nor_the_count() -> None:
    (view,) = kinds_of(("a", 5), ("a", 9), ("a", 2)).views()
    assert (view.count, view.first_ms, view.last.at_ms) == (3, 2, 9)


def test_the_kind_that_has_not_happened_for_the_longest_time_makes_place() -> None:
    kinds = kinds_of(*((str(each), each) for each in range(KINDS_MAX)), ("0", KINDS_MAX), ("new", KINDS_MAX + 1))
    found = [each.fingerprint for each in kinds.views()]
    assert len(found) == KINDS_MAX
    assert found[:2] == ["new", "0"]
    assert "1" not in found
    assert kinds.count == KINDS_MAX + 2


def test_failures_are_counted_by_minute_for_at_least_an_hour() -> None:
    kinds = kinds_of(*(("a", each * MINUTE_MS) for each in range(1_000)), ("a", 999 * MINUTE_MS))
    minutes = kinds.trends()["a"]
    assert MINUTES <= len(minutes) <= 2 * MINUTES
    assert [minutes[each] for each in range(1_000 - MINUTES, 1_000)] == [1] * (MINUTES - 1) + [2]


def test_nothing_is_left_when_the_topic_is_read_again() -> None:
    kinds = kinds_of(("a", 1))
    kinds.clear()
    assert (kinds.views(), kinds.trends(), kinds.count) == ([], {}, 0)


def test_names_that_a_writer_makes_up_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_module, "NODES_MAX", 10)
    state = state_of(*(message(report(f"n{each}"), b"n%d" % each) for each in range(50)))
    assert [each.node for each in state.nodes(wall_ms())] == sorted(f"n{each}" for each in range(40, 50))
    monkeypatch.setattr(state_module, "GROUPS_MAX", 1)
    assert state.groups() == ["audit"]
    state.on_report(message(report(), b"x" * 10_000))
    assert len(state.nodes(wall_ms())) == 10
