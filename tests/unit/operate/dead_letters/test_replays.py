"""A replay: the letters that it sends, and the stored state, an offset and ranges, of which were sent."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import awoke
from awoke.operate.dead_letters import replays
from awoke.operate.dead_letters.letters import Letter
from awoke.operate.dead_letters.replays import (
    METADATA_BYTES_MAX,
    ReplayCancelled,
    ReplayMemory,
    Sender,
    chunks,
    decode,
    encode,
)
from awoke.operate.dead_letters.targets import ReplayTargets
from tests.unit.cli.fakes import letter


@pytest.mark.parametrize(
    ("sent", "found"),
    [
        (set(), (3, "")),
        ({3}, (5, "")),
        ({3, 5, 9}, (10, "")),
        ({5, 9}, (3, "5-9")),
        ({9, 12}, (3, "9,12")),
        ({3, 9, 10, 12}, (5, "9-12")),
        ({3, 5, 9, 10, 12}, (13, "")),
    ],
)
def test_what_was_sent_is_an_offset_and_ranges(sent: set[int], found: tuple[int, str]) -> None:
    offsets = [3, 5, 9, 10, 12]
    offset, ranges = encode(offsets, sent) or (0, "")
    if sent == {9, 12}:
        assert (offset, ranges) == found
    assert decode(offsets, offset, ranges) == sent


def test_every_set_is_remembered_as_it_is() -> None:
    chance = random.Random(1)
    for _ in range(500):
        offsets = sorted(chance.sample(range(100), chance.randint(1, 40)))
        sent = set(chance.sample(offsets, chance.randint(0, len(offsets))))
        remembered = encode(offsets, sent)
        assert remembered is not None
        assert decode(offsets, *remembered) == sent
    assert encode([], set()) is None


def test_metadata_of_another_program_is_no_memory() -> None:
    assert decode([1, 2, 3], 2, "hello, 5-x, -,,") == {1}


class FakeBookmark:
    """The consumer of a partition of the dead letter topic, with what the brokers hold for it."""

    def __init__(self, committed: tuple[int, str | None] | None = None, error: BaseException | None = None) -> None:
        self._committed, self._error = committed, error
        self.annotated: list[tuple[int, str]] = []
        self.commits = 0

    def committed(self) -> tuple[int, str | None] | None:
        return self._committed

    def _assigned(self) -> FakeBookmark:
        return self

    def annotate(self, offset: int, metadata: str) -> None:
        self.annotated.append((offset, metadata))

    def commit(self, timeout_s: float) -> None:
        self.commits += 1
        if self._error is not None:
            raise self._error


def memory_of(letters: list[Letter], **bookmarks: FakeBookmark) -> ReplayMemory:
    """Returns the memory of a replay of `dead`, which has these partitions: `p0`, `p1`."""
    memory = ReplayMemory("dead", "replay", "127.0.0.1:1", {})
    found: Any = {int(name[1:]): each for name, each in bookmarks.items()}
    memory._assigned.update(found)
    memory.load(letters, found)
    return memory


def letters_at(*offsets: int, partition: int = 0) -> list[Letter]:
    return [letter(offset, partition=partition) for offset in offsets]


def test_a_memory_knows_what_was_sent_from_what_the_brokers_hold() -> None:
    all_letters = [*letters_at(3, 5, 9, 12), *letters_at(0, partition=1)]
    memory = memory_of(all_letters, p0=FakeBookmark((5, "9-10")), p1=FakeBookmark())
    assert [each.place for each in all_letters if memory.has_sent(each)] == [(0, 3), (0, 9)]


def test_what_was_sent_is_committed_once_for_all_partitions() -> None:
    first, second = FakeBookmark((3, None)), FakeBookmark()
    all_letters = [*letters_at(3, 5, 9), *letters_at(0, partition=1)]
    memory = memory_of(all_letters, p0=first, p1=second)
    memory.remember([all_letters[2], all_letters[3]])
    assert (first.annotated, second.annotated) == ([(3, "9")], [(1, "")])
    assert first.commits + second.commits == 1
    assert memory.has_sent(all_letters[2])
    memory.remember([all_letters[2]])
    assert first.commits + second.commits == 1, "nothing has changed"


def test_another_replay_of_the_group_is_told_from_other_errors() -> None:
    chosen = letters_at(0)
    with pytest.raises(awoke.AwokeError, match="another replay of dead has begun"):
        memory_of(chosen, p0=FakeBookmark(error=awoke.FencedError("taken away"))).remember(chosen)
    with pytest.raises(awoke.OperationTimeout):
        memory_of(chosen, p0=FakeBookmark(error=awoke.OperationTimeout("late", "commit", 30.0))).remember(chosen)


def test_letters_that_would_make_too_many_ranges_are_refused_before_they_are_sent() -> None:
    all_letters = letters_at(*range(METADATA_BYTES_MAX))
    memory = memory_of(all_letters, p0=FakeBookmark())
    memory.check_room(all_letters)
    with pytest.raises(awoke.AwokeError, match=r"dead\[0\] make too many ranges to be remembered"):
        memory.check_room(all_letters[1::2])
    assert not memory.has_sent(all_letters[1])


def test_partitions_that_the_group_does_not_give_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replays, "JOINED_WITHIN_S", 0.0)
    memory = ReplayMemory("dead", "replay", "127.0.0.1:1", {})
    with pytest.raises(awoke.AwokeError, match="the group replay did not give all partitions of dead"):
        memory.load([], [0])


def test_a_replay_that_waits_says_for_what(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replays, "TOLD_AFTER_S", 0.0)
    memory, told = ReplayMemory("dead", "replay", "127.0.0.1:1", {}), list[str]()

    def tell(text: str) -> None:
        told.append(text)
        memory._assigned[0] = FakeBookmark()  # type: ignore[assignment]

    memory.load([], [0], tell)
    assert told == [
        "waiting up to 60 s for the partitions of dead: another replay of it runs, or one was killed, "
        "whose session ends after 45 s"
    ]


def test_a_cancelled_replay_does_not_wait_for_partitions() -> None:
    memory = ReplayMemory("dead", "replay", "127.0.0.1:1", {})
    memory.cancel()
    with pytest.raises(ReplayCancelled, match="before it sent a letter"):
        memory.load([], [0])


def test_cancelling_ends_a_wait_for_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replays, "JOINED_WITHIN_S", 3_600.0)
    memory = ReplayMemory("dead", "replay", "127.0.0.1:1", {})
    canceller = threading.Thread(target=memory.cancel)

    class Waited(threading.Condition):
        def wait(self, timeout: float | None = None) -> bool:
            canceller.start()  # It blocks until this wait has released the lock.
            return super().wait(timeout)

    memory._changed = Waited()
    with pytest.raises(ReplayCancelled):
        memory.load([], [0])
    canceller.join()


class FakeHandle:
    """The brokers' answer to a message."""

    def __init__(self, error: BaseException | None) -> None:
        self._error = error

    def wait(self) -> None:
        if self._error is not None:
            raise self._error


class FakeProducer:
    """A producer whose answers a function of the message's headers chooses."""

    def __init__(self, answer: Callable[[int, list[int]], BaseException | None]) -> None:
        self.sent: list[tuple[str, int]] = []
        self._answer = answer

    def produce(self, topic: str, value: bytes, *, key: bytes, headers: Any) -> FakeHandle:
        number = int(value)
        self.sent.append((topic, number))
        return FakeHandle(self._answer(number, [each for _, each in self.sent]))


class FakeMemory:
    """Notes what it is to remember."""

    def __init__(self) -> None:
        self.remembered: list[list[int]] = []

    def remember(self, letters: list[Letter]) -> None:
        self.remembered.append([each.message.offset for each in letters])


def numbered(count: int) -> list[Letter]:
    return [letter(number, value=b"%d" % number) for number in range(count)]


def sender_of(
    answer: Callable[[int, list[int]], BaseException | None] = lambda number, before: None,
    rate_per_s: float | None = None,
) -> tuple[Sender, FakeProducer, FakeMemory]:
    producer: Any = FakeProducer(answer)
    memory: Any = FakeMemory()
    return Sender(producer, memory, ReplayTargets("repaired", lambda topic: False), rate_per_s), producer, memory


TOO_LARGE = awoke.MessageTooLarge("too large", "orders", 5_000)
AWAY = awoke.DeliveryFailed("gone", -192, "_MSG_TIMED_OUT")


def test_letters_are_sent_in_order_and_remembered_when_they_are_acknowledged() -> None:
    sender, producer, memory = sender_of()
    sender.send(numbered(3), stops_at_failure=False)
    assert producer.sent == [("repaired", 0), ("repaired", 1), ("repaired", 2)]
    assert (sender.sent, sender.failures, memory.remembered) == (3, [], [[0, 1, 2]])


def test_a_batch_that_was_refused_as_too_large_is_sent_again_one_by_one() -> None:
    sender, producer, memory = sender_of(lambda number, before: TOO_LARGE if len(before) <= 3 or number == 1 else None)
    sender.send(numbered(3), stops_at_failure=False)
    assert [number for _, number in producer.sent] == [0, 1, 2, 0, 1, 2]
    assert memory.remembered == [[0, 2]]
    assert [(each.message.offset, error) for each, error in sender.failures] == [(1, TOO_LARGE)]


def test_a_letter_that_may_have_arrived_is_not_sent_twice() -> None:
    sender, producer, memory = sender_of(lambda number, before: AWAY if number == 1 else None)
    sender.send(numbered(3), stops_at_failure=False)
    assert [number for _, number in producer.sent] == [0, 1, 2]
    assert (memory.remembered, sender.sent) == ([[0, 2]], 2)


def test_a_letter_that_can_not_be_sent_keeps_no_other_back() -> None:
    sender, producer, _ = sender_of()
    chosen = numbered(3)
    chosen[1] = chosen[1]._replace(origin=chosen[1].origin._replace(value_bytes=5_000))
    sender.send(chosen, stops_at_failure=False)
    assert [number for _, number in producer.sent] == [0, 2]
    assert "has no value" in str(sender.failures[0][1])


def test_a_replay_may_stop_at_its_first_failure() -> None:
    sender, producer, memory = sender_of(lambda number, before: TOO_LARGE if number == 1 else None)
    sender.send(numbered(4), stops_at_failure=True)
    assert [number for _, number in producer.sent] == [0, 1]
    assert (memory.remembered, len(sender.failures)) == ([[0], []], 1)


@pytest.mark.parametrize(
    ("rate_per_s", "sizes", "waits_s"),
    [(2.5, [2, 2, 1], [0.0, 0.8, 1.6]), (0.5, [1, 1, 1, 1, 1], [0.0, 2.0, 4.0, 6.0, 8.0]), (None, [5], [])],
)
def test_a_rate_is_kept_from_the_first_letter_on(
    rate_per_s: float | None, sizes: list[int], waits_s: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    waited_s: list[float] = []
    monkeypatch.setattr(replays, "monotonic", lambda: 100.0)
    monkeypatch.setattr(replays, "threading", SimpleNamespace(Event=lambda: SimpleNamespace(wait=waited_s.append)))
    sender, _, memory = sender_of(rate_per_s=rate_per_s)
    sender.send(numbered(5), stops_at_failure=False)
    assert list(map(len, memory.remembered)) == sizes
    assert waited_s == pytest.approx(waits_s)


def test_each_sent_letter_is_told_and_cancelling_ends_after_it() -> None:
    sender, producer, memory = sender_of()
    told: list[int] = []

    def tell(sent: int) -> None:
        told.append(sent)
        if sent == 2:
            sender.cancel()

    sender.send(numbered(4), True, tell)
    assert (told, sender.sent, sender.is_cancelled) == ([1, 2], 2, True)
    assert ([number for _, number in producer.sent], memory.remembered) == ([0, 1], [[0], [1]])


def test_chunks_have_all_letters_in_order() -> None:
    all_letters = numbered(5)
    assert [[each.message.offset for each in chunk] for chunk in chunks(all_letters, 2)] == [[0, 1], [2, 3], [4]]
    assert list(chunks([], 2)) == []
