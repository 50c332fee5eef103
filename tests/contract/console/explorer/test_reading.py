"""Messages as the console reads them: by place, time and newest, with their neighbours."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import awoke
from awoke.console.access import Brokers
from awoke.console.explorer.parts import DecodedParts
from awoke.console.explorer.reading import read_one, read_page
from awoke.console.explorer.views import MessagesView, Where
from awoke.settings import load
from tests.support.clusters import Cluster, unique

FIRST_MS = 1_760_000_000_000


class Filled:
    """A topic whose partition 0 has the values 0 to 9, a second apart, and whose partition 1 has 10 and 11."""

    def __init__(self, cluster: Cluster) -> None:
        self.topic = unique("topic")
        cluster.create_topic(self.topic, 3)
        settings = load({"bootstrap_servers": cluster.bootstrap_servers}).values
        self.brokers = Brokers(settings)
        self.parts = DecodedParts(settings, reveals=True)
        with self.brokers.producer() as producer:
            awoke.wait_all(
                [
                    producer.produce(
                        self.topic, str(each), key=b"k", partition=each // 10, timestamp_ms=FIRST_MS + each * 1_000
                    )
                    for each in range(12)
                ],
                30,
            )

    def page(self, **where: object) -> MessagesView:
        return read_page(self.brokers, Where(topic=self.topic, **where), self.parts)  # type: ignore[arg-type]

    def values(self, **where: object) -> list[str | None]:
        return [each.value.text for each in self.page(**where).messages]


@pytest.fixture(scope="module")
def both(request: pytest.FixtureRequest) -> Iterator[list[Filled]]:
    """The topic on embedded brokers and on Kafka."""
    found = [Filled(request.getfixturevalue(name)) for name in ("mock_cluster", "real_cluster")]
    yield found
    for each in found:
        each.parts.close()


@pytest.fixture(params=[0, 1], ids=["mock", "real"])
def filled(request: pytest.FixtureRequest, both: list[Filled]) -> Filled:
    found: Filled = both[request.param]
    return found


def test_messages_are_read_by_place_and_time(filled: Filled) -> None:
    assert filled.values(limit=4) == ["11", "10", "9", "8"]
    assert filled.values(partition=0, limit=2) == ["9", "8"]
    assert filled.values(at="earliest", limit=3) == ["0", "1", "2"]
    assert filled.values(at="offset", partition=0, offset=8) == ["8", "9"]
    assert filled.values(at="around", partition=0, offset=5, limit=4) == ["3", "4", "5", "6"]
    assert filled.values(at="time", time_ms=FIRST_MS + 9_000) == ["9", "10", "11"]
    assert filled.values(at="offset", partition=0, offset=10) == []
    assert filled.values(partition=2) == []


def test_a_page_leads_to_the_pages_beside_it(filled: Filled) -> None:
    page = filled.page(at="offset", partition=0, offset=4, limit=3)
    assert page.earlier is not None
    assert page.later is not None
    before = read_page(filled.brokers, page.earlier, filled.parts)
    after = read_page(filled.brokers, page.later, filled.parts)
    assert [each.offset for each in before.messages] == [1, 2, 3]
    assert [each.offset for each in after.messages] == [7, 8, 9]
    assert after.later is None


def test_one_message_is_read_with_all_its_parts(filled: Filled) -> None:
    found = read_one(filled.brokers, filled.topic, 1, 1)
    assert (found.raw_value, found.raw_key, found.timestamp_ms) == (b"11", b"k", FIRST_MS + 11_000)
    with pytest.raises(awoke.AwokeError, match="has no message at offset 2"):
        read_one(filled.brokers, filled.topic, 1, 2)
    with pytest.raises(awoke.UnknownTopic):
        read_one(filled.brokers, filled.topic, 3, 0)
    with pytest.raises(awoke.UnknownTopic):
        filled.page(partition=3)
