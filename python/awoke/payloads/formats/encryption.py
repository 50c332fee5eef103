"""Encrypted values, by any format: AES-256-GCM, with the id of the key in a header, so that keys can be replaced.

Source: NIST SP 800-38D. The nonce is random, so that one key is good for some four thousand million messages.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from typing import Any

from awoke.errors import ConfigError, EncodeError
from awoke.payloads.formats.by_type import BY_TYPE
from awoke.payloads.formats.format import (
    Decode,
    Description,
    Encode,
    Format,
    Headers,
    Payload,
    format_of,
    reader_of,
    type_of,
    writer_of,
)
from awoke.payloads.registry.cache import UNKNOWN_FOR_S, BoundedDict, Counts
from awoke.payloads.registry.errors import RegistryUnavailable
from awoke.payloads.registry.schema import Part
from awoke.payloads.registry.schemas import SchemaNeeded, Schemas
from awoke.preconditions.extras import needs
from awoke.waiting.clock import monotonic_s

HEADER = "awoke-encryption-key"
KEY_ID_MAX = 256
"""The most bytes of a key's id."""
NONCE_BYTES = 12
TAG_BYTES = 16

KEY_BYTES = 32

KeyFunction = Callable[[str], bytes | None]
"""Returns the key of an id; None: there is no such key. It may block, and any thread calls it."""
Keys = Mapping[str, bytes] | KeyFunction
Current = str | Callable[[], str]
"""The id of the key for what is sent, or a function that returns it."""


class EncryptedFormat(Format):
    """Another format, or a type, whose bytes are encrypted; made by `awoke.encrypted`."""

    reads_headers = True

    def __init__(self, inside: Any, keys: Keys, current: Current, *, accepts_plain: bool) -> None:
        self._inside, self._accepts_plain = inside, accepts_plain
        """The type or the format of the values, and whether some may be not encrypted."""
        self.value_type = type_of(inside)
        self.needs_registry = isinstance(inside, Format) and inside.needs_registry
        cipher = needs("cryptography.hazmat.primitives.ciphers.aead", "encryption").AESGCM
        self._keys = KeyRing(keys, cipher)
        self._invalid = needs("cryptography.exceptions", "encryption").InvalidTag
        self._current = current
        self._default: Format = BY_TYPE

    def within(self, default: Format) -> EncryptedFormat:
        """Returns the same format for an app with this default, which is that of values of a plain type."""
        return self._with(_default=default)

    def description(self) -> Description:
        """Returns that the bytes are encrypted."""
        inside = format_of(self._inside, self._default).description().content_type
        return Description(
            "application/octet-stream", {"description": f"{inside}, encrypted by AES-256-GCM".lstrip(", ")}
        )

    def check_loaded(self, topic: str, part: Part, schemas: Schemas) -> None:
        """As the format inside does it; checks that the current key is there, too."""
        self._current_cipher()
        format_of(self._inside, self._default).check_loaded(topic, part, schemas)

    def decoder(self, topic: str, part: Part, schemas: Schemas) -> Decode:
        """Returns the function that decrypts a value, and decodes it then."""
        _check_part(topic, part)
        decode = reader_of(format_of(self._inside, self._default), topic, part, schemas)

        def decrypt(data: bytes, headers: Headers) -> Any:
            name = key_id(headers)
            if name is not None:
                return decode(self._decrypted(name, data), headers)
            if self._accepts_plain:
                return decode(data, headers)
            raise ValueError(f"the value is not encrypted: there is no header {HEADER!r}")

        return decrypt

    def encoder(self, topic: str, part: Part, schemas: Schemas) -> Encode:
        """Returns the function that encodes a value, and encrypts it with the current key."""
        _check_part(topic, part)
        encode = writer_of(self._inside, topic, part, self._default, schemas)

        def encrypt(value: Any) -> Payload:
            cipher, name = self._current_cipher()
            data, headers = encode(value)
            nonce = os.urandom(NONCE_BYTES)
            return nonce + cipher.encrypt(nonce, data, name), (*headers, (HEADER, name))

        return encrypt

    def is_encoded(self, value: Any, headers: Headers) -> bool:
        """Tells whether a value is encrypted already, as that of a dead letter: its header says so."""
        return isinstance(value, bytes) and key_id(headers) is not None

    def _current_cipher(self) -> tuple[Any, bytes]:
        """Returns the cipher for what is sent, and the id of its key."""
        name = self._current if isinstance(self._current, str) else self._current()
        cipher = self._keys.cipher(name)
        if cipher is None:
            raise EncodeError(f"the current key {name!r} is not there; check keys= and current=")
        return cipher, name.encode()

    def _decrypted(self, name: str, data: bytes) -> bytes:
        cipher = self._keys.cipher(name)
        if cipher is None:
            raise ValueError(f"the value is encrypted with the key {name!r}, which is not given; say it in keys=")
        if len(data) < NONCE_BYTES + TAG_BYTES:
            raise ValueError("the bytes end within the encrypted value")
        try:
            decrypted: bytes = cipher.decrypt(data[:NONCE_BYTES], data[NONCE_BYTES:], name.encode())
        except self._invalid:
            raise ValueError(f"the value was changed, or encrypted with another key than {name!r}") from None
        return decrypted


def _check_part(topic: str, part: Part) -> None:
    if part == "key":
        text = f"topic {topic!r}: keys can't be encrypted: equal keys would go to different partitions"
        raise ConfigError(text, "key")


def encrypted(inside: Any = bytes, *, keys: Keys, current: Current, accepts_plain: bool = False) -> EncryptedFormat:
    """Returns the format of values that are encrypted with AES-256-GCM.

    `inside` is the type or the format of the values. `keys` has the keys by their ids, each of 32 bytes: what is sent
    is encrypted with the `current` one, and all of them decrypt. To replace a key, give the new one to all readers
    first, and then make it the current one. A function may stand for the keys: it gets an id, and returns its key, or
    None. It may block; what it returned is kept. While it raises, messages wait, as for a schema registry. `current`
    may be a function, too: it is called for each value that is sent, and must not block. `accepts_plain` also reads
    values that are not encrypted, for a topic that is to become so. Keys, headers, topics and times of messages are
    not encrypted. Dead letters stay encrypted.

    Raises:
        ConfigError: A key does not have 32 bytes; the current one is not among the keys; cryptography is not installed.
    """
    if isinstance(keys, Mapping) and isinstance(current, str) and current not in keys:
        raise ConfigError(f"awoke.encrypted: the current key {current!r} is not in keys=", "current")
    return EncryptedFormat(inside, keys, current, accepts_plain=accepts_plain)


def key_id(headers: Headers) -> str | None:
    """Returns the id of the key that a value is encrypted with; None if it is not.

    Raises:
        ValueError: It is longer than `KEY_ID_MAX`: it is kept, and given to user code.
    """
    for name, value in reversed(headers):
        if name == HEADER and value is not None:
            if len(value) > KEY_ID_MAX:
                raise ValueError(f"the id of the key has {len(value)} bytes, and {KEY_ID_MAX} at most are read")
            return value.decode(errors="replace")
    return None


class KeysUnavailable(RegistryUnavailable):
    """The function in `keys=` has failed for a key; of the registry this says nothing."""


class KeyRing:
    """The ciphers of keys, by the ids of the keys. Any thread; does not block.

    A function of the user's is asked as a schema registry is: `SchemaNeeded` is raised for a key that is not there yet,
    and the function runs where it may block. Its keys are kept for as long as the program runs, at most 1,000 of them.
    """

    def __init__(self, keys: Keys, cipher: Callable[[bytes], Any], clock: Callable[[], float] = monotonic_s) -> None:
        self._cipher_of, self._clock = cipher, clock
        self._find = None if isinstance(keys, Mapping) else keys
        self._ciphers: dict[str, Any] = BoundedDict(Counts())
        self._unknown: dict[str, float] = BoundedDict(Counts())
        """Until when the function is not asked again for an id without a key."""
        if isinstance(keys, Mapping):
            self._ciphers = {name: cipher(checked_key(name, key)) for name, key in keys.items()}

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
            self._ciphers[name] = self._cipher_of(checked_key(name, key))


def checked_key(name: str, key: object) -> bytes:
    """Returns a key of the right size.

    Raises:
        ConfigError: It has another size, or is no bytes; does not quote it.
    """
    if not isinstance(key, bytes) or len(key) != KEY_BYTES:
        raise ConfigError(f"awoke.encrypted: key {name!r} must be {KEY_BYTES} bytes", "keys")
    return key
