"""An unclean election removes 100 messages of a log: each message that is written after it is processed.

Once while members read, and once while no member is there: those that come later begin at the committed offset.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from tests.support import judge
from tests.support.clusters import unique
from tests.support.kafka_cluster import ThreeBrokers
from tests.support.subjects import KINDS, Subject, new_subject, reading
from tests.support.waiting import became

KEPT = [b"kept-%d" % number for number in range(100)]
"""On both replicas."""
LOST = [b"lost-%d" % number for number in range(100)]
"""On the leader alone, which is killed."""
NEW = [b"new-%d" % number for number in range(150)]
"""Written to the replica that is elected without having been in sync."""
CONFIG = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}
WITHIN_S = 60.0


class Election:
    """One unclean election on brokers of its own, under the eyes of each kind of subject, which all read one topic."""

    def __init__(self, *, away: bool) -> None:
        self.away = away
        """Tells whether the members are gone while the log goes back."""
        self.brokers = ThreeBrokers()
        self.topic = unique("unclean")
        self.subjects: dict[str, Subject] = {}
        self.log: list[bytes] = []
        """The messages of the topic in the end, as the judge reads them."""
        self.output: list[bytes] = []
        """The committed messages of the exactly-once route."""
        self.lags: dict[str, int] = {}

    @property
    def servers(self) -> str:
        return self.brokers.bootstrap_servers

    def run(self) -> None:
        """Write, lose, write again, and wait until all subjects are done or the time is up."""
        output = unique("unclean-output")
        self.brokers.create_topic(self.topic, [[2, 3]], CONFIG)
        self.brokers.create_topic(output, [[1]], {})
        self.subjects = {kind: new_subject(kind, self.topic, output) for kind in KINDS if kind in kinds(self.away)}
        with self._reading():
            self._write_what_is_lost()
            if not self.away:
                self._elect()
                self._wait_for_the_end()
        if self.away:
            self._elect()
            with self._reading():
                self._wait_for_the_end()
        self._look(output)

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            for subject in self.subjects.values():
                stack.enter_context(reading(subject, self.servers))
            yield

    def _write_what_is_lost(self) -> None:
        """Have 200 messages processed and committed, of which one replica lacks the last 100."""
        judge.feed(self.servers, self.topic, KEPT)
        self.brokers.wait_in_sync(self.topic, 0, 2)
        self.brokers.stop_broker(3)
        self.brokers.wait_in_sync(self.topic, 0, 1)
        judge.feed(self.servers, self.topic, LOST)
        assert became(lambda: self._are_done({*KEPT, *LOST}), WITHIN_S), "not all was processed before the fault"

    def _elect(self) -> None:
        """Have that replica elected, and write to it."""
        self.brokers.kill_broker(2)
        self.brokers.start_broker(3)
        self.brokers.wait_for_leader(self.topic, 0, 3)
        judge.feed(self.servers, self.topic, NEW)

    def _wait_for_the_end(self) -> None:
        became(lambda: self._are_done(set(NEW)), WITHIN_S, every_s=0.5)

    def _are_done(self, values: set[bytes]) -> bool:
        return all(subject.is_done(self.servers, values) for subject in self.subjects.values())

    def _look(self, output: str) -> None:
        self.log = judge.values_of(self.servers, self.topic)
        self.output = judge.values_of(self.servers, output, "read_committed")
        for kind, subject in self.subjects.items():
            if subject.group:
                self.lags[kind] = judge.progress(self.servers, subject.group, self.topic)[0].lag


def kinds(away: bool) -> tuple[str, ...]:
    """The kinds of readers: one that comes later has no position to go on from."""
    return tuple(kind for kind in KINDS if kind != "reader") if away else KINDS


@pytest.fixture(scope="module", params=[False, True], ids=["members read on", "members were away"])
def election(request: pytest.FixtureRequest) -> Iterator[Election]:
    """The election, over; its brokers are gone with the last test."""
    found = Election(away=request.param)
    with found.brokers:
        found.run()
        yield found


@pytest.mark.timeout(400)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_after_the_election_is_processed(election: Election, kind: str) -> None:
    if kind not in kinds(election.away):
        pytest.skip("a reader has no committed offset")
    assert election.log == [*KEPT, *NEW], "the election lost what it was to lose, and nothing else"
    missing = set(NEW) - set(election.subjects[kind].handled.items)
    assert not missing, f"{len(missing)} of {len(NEW)} new messages were not processed"
    assert election.lags.get(kind, 0) == 0


@pytest.mark.timeout(400)
def test_exactly_once_the_copy_has_each_message_once(election: Election) -> None:
    assert sorted(election.output) == sorted([*KEPT, *LOST, *NEW])


@pytest.mark.timeout(400)
@pytest.mark.parametrize("kind", ["plain", "lanes", "exactly_once"])
def test_an_event_tells_of_the_rewind(election: Election, kind: str) -> None:
    rewinds = [event.fields for event in election.subjects[kind].rewinds.items]
    assert rewinds, "no event partition.rewound"
    assert (rewinds[0]["topic"], rewinds[0]["partition"]) == (election.topic, 0)
    assert rewinds[0]["from_offset"] == len(KEPT) + len(LOST)
    assert rewinds[0]["to_offset"] <= len(KEPT)
    assert rewinds[0]["reason"]
