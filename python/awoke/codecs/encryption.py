"""Encrypted values, by any format: AES-256-GCM, with the id of the key in a header, so that keys can be replaced.

Source: NIST SP 800-38D. The nonce is random, so that one key is good for some four thousand million messages.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from awoke.codecs.extras import needs
from awoke.codecs.formats import Coding, Encoded, Encoder, Format, HeaderDecoder, Headers, Place, decoder_of, writer_of
from awoke.errors import ConfigError
from awoke.registry.schemas import Schemas

HEADER = "awoke-encryption-key"
KEY_BYTES = 32
NONCE_BYTES = 12
TAG_BYTES = 16

Keys = Mapping[str, bytes]


class EncryptedFormat(Format):
    """Another format, or a type, whose bytes are encrypted; made by `awoke.encrypted`."""

    reads_headers = True

    def __init__(self, form: Any, keys: Keys, current: str, *, accepts_plain: bool) -> None:
        self._form, self._accepts_plain = form, accepts_plain
        self.value_type = form.value_type if isinstance(form, Format) else form
        self.needs_registry = isinstance(form, Format) and form.needs_registry
        cipher = needs("cryptography.hazmat.primitives.ciphers.aead", "encryption").AESGCM
        self._ciphers = {name: cipher(key) for name, key in keys.items()}
        self._invalid = needs("cryptography.exceptions", "encryption").InvalidTag
        self._current = current

    def decoder(self, place: Place, schemas: Schemas) -> HeaderDecoder:
        """Returns the function that decrypts a value, and decodes it then."""
        self._check(place)
        decode = decoder_of(self._form, place, Coding(schemas=schemas))

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
        encode: Callable[[Any], Encoded] = writer_of(self._form, place, Coding(schemas=schemas))
        cipher, name = self._ciphers[self._current], self._current.encode()

        def encrypt(value: Any) -> Encoded:
            data, headers = encode(value)
            nonce = os.urandom(NONCE_BYTES)
            return Encoded(nonce + cipher.encrypt(nonce, data, name), (*headers, (HEADER, name)))

        return encrypt

    def is_encoded(self, value: Any, headers: Headers) -> bool:
        """Tells whether a value is encrypted already, as that of a dead letter: its header says so."""
        return isinstance(value, bytes) and key_id(headers) is not None

    def _decrypted(self, name: str, data: bytes) -> bytes:
        cipher = self._ciphers.get(name)
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


def encrypted(form: Any = bytes, *, keys: Keys, current: str, accepts_plain: bool = False) -> EncryptedFormat:
    """Returns the format of values that are encrypted with AES-256-GCM.

    `form` is the type or the format of the values. `keys` has the keys by their ids, each of 32 bytes; what is sent is
    encrypted with the `current` one, and all of them decrypt. To replace a key, give the new one to all readers
    first, and then make it the current one. `accepts_plain` also reads values that are not encrypted, for a topic that
    is to become so. Keys, headers, topics and times of messages are not encrypted. Dead letters stay encrypted.

    Raises:
        ConfigError: A key does not have 32 bytes; the current one is not among the keys; cryptography is not installed.
    """
    for name, key in keys.items():
        if not isinstance(key, bytes) or len(key) != KEY_BYTES:
            raise ConfigError(f"awoke.encrypted: key {name!r} must be {KEY_BYTES} bytes", "keys")
    if current not in keys:
        raise ConfigError(f"awoke.encrypted: the current key {current!r} is not in keys=", "current")
    return EncryptedFormat(form, keys, current, accepts_plain=accepts_plain)


def key_id(headers: Headers) -> str | None:
    """Returns the id of the key that a value is encrypted with; None if it is not."""
    for name, value in reversed(headers):
        if name == HEADER and value is not None:
            return value.decode(errors="replace")
    return None
