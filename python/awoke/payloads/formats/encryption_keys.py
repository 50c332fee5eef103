"""Keys of encryption: given all at once, or asked of a function by their ids, and kept."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from awoke.errors import ConfigError
from awoke.payloads.registry.cache import UNKNOWN_FOR_S
from awoke.payloads.registry.errors import RegistryUnavailable
from awoke.payloads.registry.kept import Counts, Kept
from awoke.payloads.registry.schemas import SchemaNeeded
from awoke.waiting.clock import monotonic_s

KEY_BYTES = 32


class KeysUnavailable(RegistryUnavailable):
    """The function in `keys=` has failed for a key; of the registry this says nothing."""


KeyFunction = Callable[[str], bytes | None]
"""Returns the key of an id; None: there is no such key. It may block, and any thread calls it."""
Keys = Mapping[str, bytes] | KeyFunction


class KeyRing:
    """The ciphers of keys, by the ids of the keys. Any thread; does not block.

    A function of the user's is asked as a schema registry is: `SchemaNeeded` is raised for a key that is not there yet,
    and the function runs where it may block. Its keys are kept for as long as the program runs, at most 1,000 of them.
    """

    def __init__(self, keys: Keys, cipher: Callable[[bytes], Any], clock: Callable[[], float] = monotonic_s) -> None:
        self._cipher_of, self._clock = cipher, clock
        self._find = None if isinstance(keys, Mapping) else keys
        self._ciphers: dict[str, Any] = Kept(Counts())
        self._unknown: dict[str, float] = Kept(Counts())
        """Until when the function is not asked again for an id without a key."""
        if isinstance(keys, Mapping):
            self._ciphers = {name: cipher(checked(name, key)) for name, key in keys.items()}

    def cipher(self, name: str) -> Any:
        """Returns the cipher of a key; None where there is no such key.

        Raises:
            SchemaNeeded: The key was not asked for yet.
        """
        found = self._ciphers.get(name)
        if found is not None or self._find is None or self._clock() < self._unknown.get(name, 0.0):
            return found
        raise SchemaNeeded(f"the key {name!r} is not loaded yet", functools.partial(self._load, name, self._find))

    def _load(self, name: str, find: KeyFunction) -> None:
        """Asks for a key. Blocks as the function does.

        Raises:
            KeysUnavailable: The function failed: what needs the key waits. ConfigError: It returned no key.
        """
        try:
            key = find(name)
        except Exception as error:  # User code ends here.
            text = f"the function in keys= failed for the key {name!r}: {type(error).__name__}; check the key store"
            raise KeysUnavailable(text) from error
        if key is None:
            self._unknown[name] = self._clock() + UNKNOWN_FOR_S
        else:
            self._ciphers[name] = self._cipher_of(checked(name, key))


def checked(name: str, key: object) -> bytes:
    """Returns a key of the right size.

    Raises:
        ConfigError: It has another size, or is no bytes; does not quote it.
    """
    if not isinstance(key, bytes) or len(key) != KEY_BYTES:
        raise ConfigError(f"awoke.encrypted: key {name!r} must be {KEY_BYTES} bytes", "keys")
    return key
