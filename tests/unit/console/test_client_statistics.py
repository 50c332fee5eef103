"""librdkafka's statistics: what waits, what is read, and a form that is not known."""

from __future__ import annotations

import msgspec
import pytest

from awoke.console.client_statistics import PartitionStatistics, client_of
from awoke.observe.events import ClientStatistics


def event(document: object) -> ClientStatistics:
    return ClientStatistics(client="shop", json=msgspec.json.encode(document).decode())


def test_a_producers_messages_are_unanswered_until_they_are_acknowledged() -> None:
    partition = {"msgs": 9, "msgq_cnt": 1, "xmit_msgq_cnt": 2, "msgs_inflight": 4, "added_later": [1]}
    document = {"type": "producer", "name": "shop#1", "topics": {"orders": {"partitions": {"0": partition}}}}
    client = client_of(event(document))
    assert client is not None
    found = client.topics["orders"].partitions["0"]
    assert (client.type, client.name, found.unanswered, found.msgs) == ("producer", "shop#1", 7, 9)


@pytest.mark.parametrize(("next_offset", "waiting", "expected"), [(5, 0, 5), (0, 0, 0), (5, 1, None), (-1001, 0, None)])
def test_a_partition_is_read_to_its_next_offset_once_nothing_waits(
    next_offset: int, waiting: int, expected: int | None
) -> None:
    assert PartitionStatistics(next_offset=next_offset, fetchq_cnt=waiting).read_offset == expected


@pytest.mark.parametrize("document", [{}, [], {"type": "producer", "topics": 3}])
def test_statistics_of_an_unknown_form_tell_nothing(document: object) -> None:
    assert client_of(event(document)) is None
