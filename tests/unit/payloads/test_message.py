"""Messages to be sent: records and their options, added headers, messages of produce_many."""

from __future__ import annotations

from typing import Any

import pytest

from awoke.payloads.message import Outgoing, Record, record_of


def test_the_options_of_a_record_are_all_of_its_parts_but_the_value() -> None:
    record = Record(b"v", "k", {"h": "1"}, 2, 3)
    assert record.options == {"key": "k", "headers": {"h": "1"}, "partition": 2, "timestamp_ms": 3}
    assert Record(b"v", **record.options) == record
    assert Outgoing("orders", *record).options == record.options


@pytest.mark.parametrize("headers", [None, {"a": b"1"}, [("a", b"1")]])
def test_a_header_is_added_behind_the_others(headers: Any) -> None:
    message = Outgoing("orders", b"v", headers=headers).with_header("b", None)
    assert message.headers is not None
    assert list(message.headers)[-1] == ("b", None)
    assert len(message.headers) == (1 if headers is None else 2)


@pytest.mark.parametrize(
    ("message", "record"),
    [
        (b"v", Record(b"v")),
        ((b"v", "k"), Record(b"v", "k")),
        (Record(b"v", partition=1), Record(b"v", partition=1)),
        ([1, 2], Record([1, 2])),
    ],
)
def test_a_message_of_produce_many_is_a_value_a_pair_or_a_record(message: Any, record: Record) -> None:
    assert record_of(message) == record
