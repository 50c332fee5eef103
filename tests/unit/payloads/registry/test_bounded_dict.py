"""Formats keep what they make of schemas: bounded, counted, and gone when it is no longer used."""

from __future__ import annotations

import gc
import threading
from typing import Any

from awoke.payloads.registry.cache import BoundedDict, Counts


def test_the_oldest_entry_goes_first_and_is_counted() -> None:
    counts = Counts()
    kept = BoundedDict(counts, 2)
    for number in range(4):
        kept[number] = str(number)
    assert dict(kept) == {2: "2", 3: "3"}
    assert counts.evictions == 2
    kept[3] = "again"
    assert (dict(kept), counts.evictions) == ({2: "2", 3: "again"}, 2)


def test_a_smaller_bound_holds_from_the_next_entry_on() -> None:
    kept = BoundedDict(Counts(), 10)
    for number in range(5):
        kept[number] = number
    kept.entries_max = 2
    kept[5] = 5
    assert list(kept) == [4, 5]


def test_threads_that_add_at_once_keep_the_bound() -> None:
    kept, begin = BoundedDict(Counts(), 5), threading.Barrier(4)

    def add(first: int) -> None:
        begin.wait(30)
        for number in range(first, 4_000, 4):
            kept[number] = number

    threads = [threading.Thread(target=add, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(kept) == 5


def test_it_ends_with_its_last_user() -> None:
    import weakref

    kept: Any = BoundedDict(Counts())
    alive = weakref.ref(kept)
    del kept
    gc.collect()
    assert alive() is None
