"""Keys of encryption from a function: asked for once, where it may block; unknown, wrong, or not to be had."""

from __future__ import annotations

from typing import Any

import pytest

import awoke
from awoke.payloads.formats.encryption import KeyRing
from awoke.payloads.registry import RegistryUnavailable
from awoke.payloads.registry.schemas import SchemaNeeded, loading

KEY = b"k" * 32


class Store:
    """A key store; notes what it is asked for."""

    def __init__(self, **keys: Any) -> None:
        self.keys, self.asked = keys, list[str]()
        self.is_away = False
        self.now_s = 100.0

    def find(self, name: str) -> bytes | None:
        self.asked.append(name)
        if self.is_away:
            raise ConnectionError("password=hunter2 is wrong")
        return self.keys.get(name)

    def ring(self) -> KeyRing:
        return KeyRing(self.find, lambda key: ("cipher", key), lambda: self.now_s)


def test_keys_that_are_given_are_there() -> None:
    ring = KeyRing({"a": KEY}, lambda key: ("cipher", key))
    assert (ring.cipher("a"), ring.cipher("b")) == (("cipher", KEY), None)


def test_a_key_is_asked_for_once_and_not_by_the_one_who_needs_it() -> None:
    store = Store(a=KEY)
    ring = store.ring()
    with pytest.raises(SchemaNeeded, match="the key 'a' is not loaded yet") as caught:
        ring.cipher("a")
    assert store.asked == []
    caught.value.load()
    assert [ring.cipher("a") for _ in range(3)] == [("cipher", KEY)] * 3
    assert store.asked == ["a"]


def test_an_id_without_a_key_is_asked_for_again_after_ten_seconds() -> None:
    store = Store()
    ring = store.ring()
    assert [loading(ring.cipher)("a") for _ in range(3)] == [None] * 3
    assert store.asked == ["a"]
    store.keys["a"] = KEY
    store.now_s += 10
    assert loading(ring.cipher)("a") == ("cipher", KEY)


def test_a_store_that_fails_makes_messages_wait_and_its_words_stay_its_own() -> None:
    store = Store(a=KEY)
    ring, store.is_away = store.ring(), True
    with pytest.raises(
        RegistryUnavailable, match="failed for the key 'a': ConnectionError; check the key store"
    ) as caught:
        loading(ring.cipher)("a")
    assert "hunter2" not in str(caught.value)
    store.is_away = False
    assert loading(ring.cipher)("a") == ("cipher", KEY)


@pytest.mark.parametrize("key", [b"short", "x" * 32, 7])
def test_a_key_of_another_size_is_refused_and_not_shown(key: Any) -> None:
    with pytest.raises(awoke.ConfigError, match="key 'a' must be 32 bytes") as caught:
        loading(Store(a=key).ring().cipher)("a")
    assert "short" not in str(caught.value)


def test_what_is_kept_has_a_bound() -> None:
    store = Store(**{f"k{number}": KEY for number in range(1_500)})
    ring = store.ring()
    for name in [*store.keys, *(f"no{number}" for number in range(1_500))]:
        loading(ring.cipher)(name)
    assert (len(ring._ciphers), len(ring._unknown)) == (1_000, 1_000)
