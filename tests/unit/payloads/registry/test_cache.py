"""The cache: its bounds, the order of eviction, counts, and ids that the registry does not have."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from awoke.payloads.registry import RegisteredSchema, Schema, SchemaNotFound
from awoke.payloads.registry.cache import UNKNOWN_FOR_S, Key, SchemaCache

SCHEMA = Schema('"int"')
REGISTERED = RegisteredSchema(SCHEMA, 7)


class Clock:
    """A clock that the test moves."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.mark.parametrize("key", [7, "guid", (":.team:", 7), ("orders-value", SCHEMA)])
def test_a_schema_is_found_by_each_kind_of_key(key: Key) -> None:
    cache = SchemaCache()
    assert cache.get(key) is None
    cache.put(key, REGISTERED)
    assert cache.get(key) is REGISTERED


def test_a_table_is_bounded_and_the_least_recently_used_entry_goes_first() -> None:
    cache = SchemaCache(entries_max=3)
    for number in (1, 2, 3):
        cache.put(number, REGISTERED)
    cache.get(1)
    cache.put(4, REGISTERED)
    cache.put(5, REGISTERED)
    assert [number for number in range(6) if cache.get(number)] == [1, 4, 5]


def test_each_table_has_its_own_bound() -> None:
    cache = SchemaCache(entries_max=2)
    for number in range(10):
        for key in (number, str(number), ("orders-value", Schema(str(number)))):
            cache.put(key, REGISTERED)
    assert len(cache) == 6


def test_hits_and_misses_are_counted() -> None:
    cache = SchemaCache()
    assert cache.get_or_miss(1) is None
    cache.put(1, REGISTERED)
    assert cache.get(1) is cache.get(1) is cache.get_or_miss(1) is REGISTERED
    assert (cache.hits, cache.misses) == (2, 1)


def test_an_unknown_id_is_unknown_for_ten_seconds() -> None:
    clock = Clock()
    cache = SchemaCache(clock=clock)
    error = SchemaNotFound("gone", "http://host", 404, 40403)
    cache.put_unknown(7, error)
    clock.now_s += UNKNOWN_FOR_S - 0.001
    found = cache.why_unknown(7)
    assert found is not None
    assert found is not error, "each thread raises an error of its own"
    assert (str(found), found.url, found.status, found.code) == ("gone", "http://host", 404, 40403)
    clock.now_s += 0.001
    assert cache.why_unknown(7) is None
    assert cache.why_unknown(8) is None


def test_an_id_that_is_put_is_no_longer_unknown_even_after_it_was_evicted() -> None:
    cache = SchemaCache(entries_max=1)
    cache.put_unknown(7, SchemaNotFound("gone"))
    cache.put(7, REGISTERED)
    cache.put(8, REGISTERED)
    assert cache.get(7) is None
    assert cache.why_unknown(7) is None


def test_unknown_ids_are_bounded() -> None:
    cache = SchemaCache(entries_max=3)
    for number in (0, 1, 2, 0, 3, 4):  # A message may have any number in it.
        cache.put_unknown(number, SchemaNotFound("gone"))
    assert [number for number in range(6) if cache.why_unknown(number)] == [0, 3, 4]


def test_a_subject_is_forgotten_and_ids_are_not() -> None:
    cache = SchemaCache()
    for key in (7, ("orders-value", SCHEMA), ("orders-key", SCHEMA)):
        cache.put(key, REGISTERED)
    cache.forget_subject("orders-value")
    assert cache.get(("orders-value", SCHEMA)) is None
    assert cache.get(("orders-key", SCHEMA)) is cache.get(7) is REGISTERED


def test_threads_lose_no_count_and_exceed_no_bound() -> None:
    cache = SchemaCache(entries_max=8)
    start = threading.Barrier(4)

    def use(first: int) -> None:
        start.wait(30)
        for number in range(500):
            cache.put(first + number % 16, REGISTERED)
            cache.get_or_miss(-1)

    with ThreadPoolExecutor(4) as threads:
        for ended in [threads.submit(use, first) for first in range(4)]:
            ended.result(30)
    assert (len(cache), cache.misses) == (8, 2_000)


def test_an_entry_that_goes_for_another_is_counted() -> None:
    cache = SchemaCache(2)
    for number in range(5):
        cache.put(number, RegisteredSchema(Schema(str(number)), number))
    assert (len(cache), cache.evictions, cache.entries_max) == (2, 3, 2)
