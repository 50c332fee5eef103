"""The flows about topics, without brokers."""

from __future__ import annotations

import pytest

import awoke
from awoke.admin.topics import EARLIEST, LATEST, AdminTopics
from awoke.waiting.drive import drive
from tests.unit.admin.fakes import METADATA, FakeConnection

WITHIN_S = 600.0


def grown(partitions: int) -> list[tuple[str, int, list[tuple[int, int, list[int], list[int]]]]]:
    return [("orders", 0, [(number, 1, [1], [1]) for number in range(partitions)])]


class Growing(FakeConnection):
    """Shows the new partitions of a topic after some questions."""

    async def again(self) -> bool:
        self._metadata = (self._metadata[0], grown(self.waits))
        return await super().again()


def test_new_partitions_are_awaited() -> None:
    connection = Growing((METADATA[0], grown(2)), create_partitions=[[("orders", None)]])
    drive(AdminTopics(connection).create_partitions("orders", 4, WITHIN_S))
    assert connection.asked == [("create_partitions", [("orders", 4)])]
    assert connection.waits == 5


def test_as_many_partitions_as_there_are_need_no_request() -> None:
    connection = FakeConnection()
    drive(AdminTopics(connection).create_partitions("orders", 2, WITHIN_S))
    assert connection.asked == []


def test_fewer_partitions_are_refused_before_anything_is_sent() -> None:
    connection = FakeConnection()
    with pytest.raises(awoke.ConfigError, match="'orders' has 2 partitions: Kafka adds partitions and removes none"):
        drive(AdminTopics(connection).create_partitions("orders", 1, WITHIN_S))
    assert connection.asked == []


def test_a_closed_client_ends_the_wait_for_a_topic() -> None:
    connection = FakeConnection()
    connection.waits_max = 3
    with pytest.raises(awoke.UnknownTopic, match="'refunds'"):
        drive(AdminTopics(connection).wait_for("refunds", WITHIN_S))
    assert connection.waits == 3


def test_a_time_after_the_last_message_is_the_end() -> None:
    ends = [("orders", 0, 7, None), ("orders", 1, 9, None)]
    at_time = [("orders", 0, 3, None), ("orders", 1, -1, None)]
    connection = FakeConnection(list_offsets=[ends, at_time])
    assert drive(AdminTopics(connection).offsets_at("orders", 1_000, WITHIN_S)) == {0: 3, 1: 9}
    places = [[("orders", 0, at), ("orders", 1, at)] for at in (LATEST, 1_000)]
    assert [arguments for _, arguments in connection.asked] == places


def test_ends_of_several_topics_are_one_request() -> None:
    topics = [(name, 0, [(0, 1, [1], [1])]) for name in ("orders", "other", "receipts")]
    connection = FakeConnection(([], topics), list_offsets=[[("orders", 0, 3, None), ("receipts", 0, 0, None)]])
    names = ["orders", "receipts", "none"]
    assert drive(AdminTopics(connection).ends(names, WITHIN_S)) == {("orders", 0): 3, ("receipts", 0): 0}
    assert connection.asked == [("list_offsets", [("orders", 0, LATEST), ("receipts", 0, LATEST)])]
    assert drive(AdminTopics(connection).ends(["none"], WITHIN_S)) == {}
    assert len(connection.asked) == 1


def test_a_needless_election_is_no_error() -> None:
    needless = (84, "ELECTION_NOT_NEEDED", "Leader election not needed")
    answer = [("orders", 0, -1, needless), ("orders", 1, -1, None)]
    connection = FakeConnection(elect_leaders=[answer])
    elected = drive(AdminTopics(connection).elect_leaders([("orders", 0), ("orders", 1)], "unclean", WITHIN_S))
    assert elected == {("orders", 0): False, ("orders", 1): True}
    assert connection.asked == [("elect_leaders", (True, [("orders", 0), ("orders", 1)]))]


@pytest.mark.parametrize(("at", "offset"), [(EARLIEST, -1001), (LATEST, -1), (1_000, -1001)])
def test_a_leader_that_did_not_answer_is_an_error_and_no_end(at: int, offset: int) -> None:
    """librdkafka drops its error: taken for "nothing later", it would delete, or skip, all messages."""
    connection = FakeConnection(list_offsets=[[("orders", 0, offset, None)]])
    with pytest.raises(awoke.BrokerUnreachable, match=r"the leader of orders\[0\] did not answer"):
        drive(AdminTopics(connection).offsets("orders", at, WITHIN_S))


def test_a_partition_that_was_added_between_two_requests_is_left_out() -> None:
    both = [("orders", 0, 3, None), ("orders", 1, -1, None)]
    connection = FakeConnection(list_offsets=[[("orders", 0, 9, None)], both])
    assert drive(AdminTopics(connection).offsets_at("orders", 1_000, WITHIN_S)) == {0: 3}


def test_records_before_a_negative_offset_are_not_deleted() -> None:
    """For Kafka, -1 means all of them."""
    connection = FakeConnection()
    with pytest.raises(awoke.ConfigError, match=r"offset -1 of orders\[0\] must not be negative"):
        drive(AdminTopics(connection).delete_records("orders", {0: -1}, WITHIN_S))
    assert connection.asked == []


NOT_LEADER = (6, "NOT_LEADER_FOR_PARTITION", "Broker: Not leader for partition")


def test_a_leader_that_does_not_know_it_yet_is_asked_again() -> None:
    refused = [("orders", 0, -1, NOT_LEADER), ("orders", 1, 9, None)]
    connection = FakeConnection(list_offsets=[refused, [("orders", 0, 7, None), ("orders", 1, 9, None)]])
    assert drive(AdminTopics(connection).offsets("orders", LATEST, WITHIN_S)) == {0: 7, 1: 9}
    assert connection.waits == 1


def test_a_leader_that_stays_away_is_an_error_that_may_be_tried_again() -> None:
    connection = FakeConnection(list_offsets=[[("orders", 0, -1, NOT_LEADER), ("orders", 1, 9, None)]])
    connection.waits_max = 0
    with pytest.raises(awoke.KafkaError, match=r"orders\[0\]: Broker: Not leader") as refused:
        drive(AdminTopics(connection).offsets("orders", LATEST, WITHIN_S))
    assert refused.value.is_retriable
