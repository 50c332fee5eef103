"""The sequencer from Python: order, waiting, time-outs, and a sink that fails."""

from __future__ import annotations

import asyncio
import gc
import random
import threading
import weakref

import pytest

import awoke
from tests.support.waiting import wait_until


def collecting(capacity: int = 64) -> tuple[awoke.Sequencer[int], list[int]]:
    log: list[int] = []
    return awoke.Sequencer(log.extend, capacity), log


def test_entries_in_any_order_are_appended_in_order() -> None:
    sequencer, log = collecting()
    indexes = list(range(50))
    random.Random(7).shuffle(indexes)
    for index in indexes:
        sequencer.deposit(index, index)
    assert log == list(range(50))
    assert sequencer.appended == 50


@pytest.mark.parametrize("index", [2**60, 2**62, 2**63, 2**64 - 1])
def test_an_index_beyond_the_last_possible_one_is_refused(index: int) -> None:
    sequencer, log = collecting(capacity=4)
    with pytest.raises(ValueError, match=r"beyond the last possible one|has been there"):
        sequencer.deposit(index, 0, timeout_s=1)
    sequencer.append(0, 7)
    assert log == [7]


def test_the_entry_that_fills_a_gap_releases_the_run_in_one_call() -> None:
    runs: list[list[int]] = []
    sequencer: awoke.Sequencer[int] = awoke.Sequencer(runs.append)
    for index in (2, 1, 3):
        sequencer.deposit(index, index)
    assert runs == []
    sequencer.deposit(0, 0)
    assert runs == [[0, 1, 2, 3]]


def test_append_waits_for_the_one_before() -> None:
    sequencer, log = collecting()
    waiting = threading.Thread(target=sequencer.append, args=(1, 1))
    waiting.start()
    sequencer.append(0, 0)
    waiting.join()
    assert log == [0, 1]


def test_an_entry_whose_wait_times_out_is_left_out_and_the_error_names_the_missing_one() -> None:
    sequencer, log = collecting()
    with pytest.raises(awoke.OperationTimeout, match="entry 0 has been missing for"):
        sequencer.append(1, 1, timeout_s=0.01)
    sequencer.append(0, 0)
    assert log == [0]
    assert sequencer.appended == 2


def test_an_index_comes_once() -> None:
    sequencer, _ = collecting()
    sequencer.deposit(0, 0)
    with pytest.raises(ValueError, match="entry 0 has been there before"):
        sequencer.deposit(0, 0)


def test_a_full_ring_waits_for_the_missing_one() -> None:
    sequencer, log = collecting(capacity=2)
    sequencer.deposit(1, 1)
    with pytest.raises(awoke.OperationTimeout, match="full ring of 2"):
        sequencer.deposit(2, 2, timeout_s=0.01)
    sequencer.deposit(0, 0)
    sequencer.deposit(2, 2)
    assert log == [0, 1, 2]


def test_a_permit_that_is_not_used_leaves_no_gap() -> None:
    sequencer, log = collecting()
    with pytest.raises(RuntimeError, match="no entry"), sequencer.claim():
        raise RuntimeError("no entry")
    with sequencer.claim() as permit:
        permit.deposit(permit.index)
    dropped = sequencer.claim()
    with sequencer.claim() as last:
        last.deposit(3)
    assert log == [1]
    del dropped
    gc.collect()
    assert log == [1, 3]


def test_what_is_missing_is_named() -> None:
    sequencer, _ = collecting()
    assert sequencer.missing is None
    sequencer.deposit(2, 2)
    assert sequencer.missing is not None
    assert sequencer.missing[0] == 0
    sequencer.void(0)
    sequencer.void(1)
    assert sequencer.missing is None
    assert sequencer.appended == 3


def test_a_ticket_can_be_cancelled_until_its_entry_is_appended() -> None:
    sequencer, log = collecting()
    ticket = sequencer.deposit(1, 1)
    assert not ticket.done()
    assert ticket.cancel()
    sequencer.deposit(0, 0)
    assert log == [0]
    assert ticket.done()
    assert not ticket.cancel()


async def test_tickets_can_be_awaited() -> None:
    sequencer, log = collecting()
    tickets = [sequencer.deposit(index, index) for index in (3, 2, 1)]
    awaited = asyncio.gather(*tickets)
    await asyncio.to_thread(sequencer.deposit, 0, 0)
    await awaited
    assert log == [0, 1, 2, 3]


def test_closing_ends_waits() -> None:
    sequencer, _ = collecting()
    ended: list[BaseException] = []

    def wait() -> None:
        try:
            sequencer.append(1, 1)
        except awoke.ClosedError as error:
            ended.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    wait_until(lambda: sequencer.missing is not None, "the append waits", every_s=0.001)
    sequencer.close()
    waiting.join()
    assert len(ended) == 1
    with pytest.raises(awoke.ClosedError):
        sequencer.claim()


def test_a_sink_that_raises_breaks_the_sequencer_and_tells_its_caller() -> None:
    def refuse(run: list[int]) -> None:
        raise KeyError(run[0])

    sequencer: awoke.Sequencer[int] = awoke.Sequencer(refuse)
    ticket = sequencer.deposit(1, 1)
    with pytest.raises(KeyError):
        sequencer.deposit(0, 0)
    with pytest.raises(awoke.SequencerBroken):
        ticket.wait()
    with pytest.raises(awoke.SequencerBroken):
        sequencer.deposit(2, 2)


def test_a_sink_may_bring_entries() -> None:
    log: list[int] = []

    def sink(run: list[int]) -> None:
        log.extend(run)
        if run[-1] < 10:
            sequencer.deposit(run[-1] + 1, run[-1] + 1)

    sequencer: awoke.Sequencer[int] = awoke.Sequencer(sink)
    sequencer.deposit(0, 0)
    assert log == list(range(11))


def test_a_sequencer_that_its_own_sink_refers_to_is_collected() -> None:
    class Owner:
        def __init__(self) -> None:
            self.sequencer: awoke.Sequencer[int] = awoke.Sequencer(self.take)

        def take(self, run: list[int]) -> None: ...

    gone = weakref.ref(Owner())
    gc.collect()
    assert gone() is None


def test_many_threads_through_a_small_ring() -> None:
    sequencer, log = collecting(capacity=8)

    def produce() -> None:
        for number in range(200):
            with sequencer.claim() as permit:
                if number % 7 == 0:
                    continue
                if number % 2:
                    permit.append(permit.index)
                else:
                    permit.deposit(permit.index)

    threads = [threading.Thread(target=produce) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sequencer.appended == 1_600
    assert log == sorted(log)
    assert len(log) == 8 * (200 - 29)
