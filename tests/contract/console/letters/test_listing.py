"""Dead letters of a topic with more messages than are read."""

from __future__ import annotations

from awoke.console.letters.listing import read_letters
from tests.contract.console.letters.test_replaying import Dead
from tests.support.clusters import Cluster


def test_the_last_letters_of_a_long_topic_are_read(mock_cluster: Cluster) -> None:
    dead = Dead(mock_cluster)
    read = read_letters(dead.brokers, dead.dead, 2)
    assert ([each.message.raw_value for each in read.letters], read.is_partial) == ([b"3", b"4"], True)
    assert read_letters(dead.brokers, dead.topic) == ([], 0, False)
