"""Dead letters that the console lists, sends again, and sends edited."""

from __future__ import annotations

import msgspec
import pytest

import awoke
from awoke.console.access import Brokers
from awoke.console.letters.listing import find, list_letters, read_letters
from awoke.console.letters.replaying import Edited, Replay, ReplayWanted, send_edited
from awoke.payloads import dead_letter
from awoke.settings import load
from tests.contract.test_dead_letter_commands import headers_of, put
from tests.support.clusters import Cluster, unique


class Dead:
    """A topic with dead letters of the values 0 to 4; the last one is of another error."""

    def __init__(self, cluster: Cluster) -> None:
        self.topic, self.dead = unique("topic"), unique("dead")
        cluster.create_topic(self.topic)
        cluster.create_topic(self.dead, 2)
        self.brokers = Brokers(load({"bootstrap_servers": cluster.bootstrap_servers}).values)
        texts = [*(f"no card {number}" for number in range(4)), "timed out"]
        put(
            cluster,
            self.dead,
            *((b"k", b"%d" % number, headers_of(self.topic, text)) for number, text in enumerate(texts)),
        )

    def is_read(self, topic: str) -> bool:
        return topic == self.topic

    def replay(self, **wanted: object) -> Replay:
        return Replay(self.brokers, ReplayWanted(topic=self.dead, **wanted), self.is_read)  # type: ignore[arg-type]

    def sent(self) -> list[bytes | None]:
        with self.brokers.reader(self.topic) as reader:
            return [each.raw_value for each in reader.read_until_end(30)]


def test_a_group_of_letters_is_planned_and_sent_once(cluster: Cluster) -> None:
    dead = Dead(cluster)
    view = list_letters(dead.dead, read_letters(dead.brokers, dead.dead))
    cards = view.groups[0]
    assert (len(view.letters), cards.count, view.is_partial) == (5, 4, False)
    with dead.replay(fingerprint=cards.fingerprint, count=2) as replay:
        plan = replay.plan()
        assert [(each.topic, each.count, each.is_foreign) for each in plan.targets] == [(dead.topic, 2, False)]
        assert dead.sent() == [], "a plan sends nothing"
        with pytest.raises(awoke.AwokeError, match="have changed since the plan"):
            replay.run("another")
        result = replay.run(plan.digest)
    assert (result.sent, result.left, result.refused) == (2, 0, [])
    with dead.replay(fingerprint=cards.fingerprint) as replay:
        rest = replay.plan()
        assert (rest.count, rest.sent_before) == (2, 2)
        replay.run(rest.digest)
    assert dead.sent() == [b"0", b"1", b"2", b"3"]


def test_a_replay_stops_at_the_first_letter_that_is_refused(mock_cluster: Cluster) -> None:
    dead = Dead(mock_cluster)
    small = unique("small")
    mock_cluster.admin.create_topic(small, partitions=1, config={"max.message.bytes": "1000"})
    put(mock_cluster, dead.dead, (b"k", b"x" * 5_000, headers_of(dead.topic)), (b"k", b"6", headers_of(dead.topic)))
    with dead.replay(places=[(0, 4), (0, 5), (0, 6)], to=small) as replay:
        result = replay.run(replay.plan().digest)
    assert (result.sent, [each.offset for each in result.refused], result.left) == (1, [5], 1)


def test_a_topic_that_only_letters_name_has_to_be_named(mock_cluster: Cluster) -> None:
    dead = Dead(mock_cluster)
    forged = [each for each in headers_of(unique("forged")) if each[0] != dead_letter.HANDLER]
    put(mock_cluster, dead.dead, (b"k", b"5", forged))
    with dead.replay(places=[(0, 5)]) as replay:
        plan = replay.plan()
        assert [each.is_foreign for each in plan.targets] == [True]
        with pytest.raises(awoke.ConfigError, match="name them, too"):
            replay.run(plan.digest)


def test_a_letter_is_sent_as_it_was_edited(mock_cluster: Cluster) -> None:
    dead = Dead(mock_cluster)
    letter = find(read_letters(dead.brokers, dead.dead).letters, (0, 4))
    assert letter is not None
    with pytest.raises(awoke.ConfigError, match="can't be read by the route"):
        send_edited(dead.brokers, letter, Edited(value="no json"), dead.topic, msgspec.json.decode)
    place = send_edited(dead.brokers, letter, Edited(value='{"a":1}', headers={"by": "ops"}), dead.topic)
    assert place == (0, 0)
    with dead.brokers.reader(dead.topic) as reader:
        (sent,) = reader.read_until_end(30)
    assert (sent.raw_value, sent.raw_key, sent.headers) == (b'{"a":1}', b"k", [("by", b"ops")])
