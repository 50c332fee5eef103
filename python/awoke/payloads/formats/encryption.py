"""Encrypted values, by any format: AES-256-GCM, with the id of the key in a header, so that keys can be replaced.

Source: NIST SP 800-38D. The nonce is random, so that one key is good for some four thousand million messages.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Mapping
from typing import Any

from awoke.errors import ConfigError, EncodeError
from awoke.payloads.formats.codec import BY_TYPE, Codec
from awoke.payloads.formats.encryption_keys import KeyRing, Keys
from awoke.payloads.formats.format import (
    Coding,
    Description,
    Encoded,
    Encoder,
    Format,
    HeaderDecoder,
    Headers,
    Place,
    check_loaded,
    decoder_of,
    description_of,
    writer_of,
)
from awoke.payloads.registry.schemas import Schemas
from awoke.preconditions.extras import needs

HEADER = "awoke-encryption-key"
KEY_ID_MAX = 256
"""The most bytes of a key's id."""
NONCE_BYTES = 12
TAG_BYTES = 16

Current = str | Callable[[], str]
"""The id of the key for what is sent, or a function that returns it."""


class EncryptedFormat(Format):
    """Another format, or a type, whose bytes are encrypted; made by `awoke.encrypted`."""

    reads_headers = True

    def __init__(self, form: Any, keys: Keys, current: Current, *, accepts_plain: bool) -> None:
        self._form, self._accepts_plain = form, accepts_plain
        self.value_type = form.value_type if isinstance(form, Format) else form
        self.needs_registry = isinstance(form, Format) and form.needs_registry
        cipher = needs("cryptography.hazmat.primitives.ciphers.aead", "encryption").AESGCM
        self._keys = KeyRing(keys, cipher)
        self._invalid = needs("cryptography.exceptions", "encryption").InvalidTag
        self._current = current
        self._codec: Codec = BY_TYPE

    def with_codec(self, codec: Codec) -> EncryptedFormat:
        """Returns the same format for an app with this codec, which encodes values of a plain type."""
        found = copy.copy(self)
        found._codec = codec
        return found

    def description(self) -> Description:
        """Returns that the bytes are encrypted."""
        inside = description_of(self._form, self._codec).content_type
        return Description(
            "application/octet-stream", {"description": f"{inside}, encrypted by AES-256-GCM".lstrip(", ")}
        )

    def check_loaded(self, place: Place, schemas: Schemas) -> None:
        """As the format inside does it; checks that the current key is there, too."""
        self._current_cipher()
        check_loaded(self._form, place, schemas)

    def decoder(self, place: Place, schemas: Schemas) -> HeaderDecoder:
        """Returns the function that decrypts a value, and decodes it then."""
        self._check(place)
        decode = decoder_of(self._form, place, Coding(self._codec, schemas))

        def decrypt(data: bytes, headers: Headers) -> Any:
            name = key_id(headers)
            if name is not None:
                return decode(self._decrypted(name, data), headers)
            if self._accepts_plain:
                return decode(data, headers)
            raise ValueError(f"the value is not encrypted: there is no header {HEADER!r}")

        return decrypt

    def encoder(self, place: Place, schemas: Schemas) -> Encoder:
        """Returns the function that encodes a value, and encrypts it with the current key."""
        self._check(place)
        encode: Callable[[Any], Encoded] = writer_of(self._form, place, Coding(self._codec, schemas))

        def encrypt(value: Any) -> Encoded:
            cipher, name = self._current_cipher()
            data, headers = encode(value)
            nonce = os.urandom(NONCE_BYTES)
            return Encoded(nonce + cipher.encrypt(nonce, data, name), (*headers, (HEADER, name)))

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

    def _check(self, place: Place) -> None:
        if place.part == "key":
            text = f"topic {place.topic!r}: keys can't be encrypted: equal keys would go to different partitions"
            raise ConfigError(text, "key")


def encrypted(form: Any = bytes, *, keys: Keys, current: Current, accepts_plain: bool = False) -> EncryptedFormat:
    """Returns the format of values that are encrypted with AES-256-GCM.

    `form` is the type or the format of the values. `keys` has the keys by their ids, each of 32 bytes; what is sent is
    encrypted with the `current` one, and all of them decrypt. To replace a key, give the new one to all readers
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
    return EncryptedFormat(form, keys, current, accepts_plain=accepts_plain)


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
