"""The parts of librdkafka's statistics that reports need. The settings turn them on where the console is."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from awoke.observe.events import ClientStatistics, Event


class PartitionStatistics(msgspec.Struct, frozen=True):
    """A partition in librdkafka's JSON."""

    hi_offset: int = -1
    ls_offset: int = -1
    next_offset: int = -1
    fetchq_cnt: int = 0
    msgs: int = 0
    """Of a producer: the messages that it was given."""
    msgq_cnt: int = 0
    xmit_msgq_cnt: int = 0
    msgs_inflight: int = 0

    @property
    def read_offset(self) -> int | None:
        """One past what was fetched, markers of transactions included; None while fetched messages wait."""
        return self.next_offset if self.next_offset >= 0 and self.fetchq_cnt == 0 else None

    @property
    def unanswered(self) -> int:
        """The messages of a producer that wait, or are on their way."""
        return self.msgq_cnt + self.xmit_msgq_cnt + self.msgs_inflight


class TopicStatistics(msgspec.Struct, frozen=True):
    """A topic in librdkafka's JSON."""

    partitions: Mapping[str, PartitionStatistics] = {}


class OneClient(msgspec.Struct, frozen=True):
    """A client in librdkafka's JSON."""

    type: str
    name: str = ""
    """Of one connection."""
    topics: Mapping[str, TopicStatistics] = {}


_decoder = msgspec.json.Decoder(OneClient)


def client_of(event: Event) -> OneClient | None:
    """Returns the statistics of an event; None where librdkafka has changed their form: nothing is known then."""
    assert isinstance(event, ClientStatistics)
    try:
        return _decoder.decode(event.json)
    except msgspec.MsgspecError:
        return None
