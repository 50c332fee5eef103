"""Encrypted values, by any format: AES-256-GCM, with the id of the key in a header, so that keys can be replaced.

Source: NIST SP 800-38D. The nonce is random, so that one key is good for some four thousand million messages.

A value is bound to its place, as additional data of GCM: a ciphertext that is copied to another topic, or beside
the id of another schema, does not decrypt. The version in a header says what it is bound to. The header itself needs no
protection: without it the additional data differs. Values without a version are bound to the key's id only.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from os import urandom
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
    decoder_of,
    format_of,
    type_of,
    writer_of,
)
from awoke.payloads.registry.cache import UNKNOWN_FOR_S, BoundedDict, Counts
from awoke.payloads.registry.errors import RegistryUnavailable
from awoke.payloads.registry.schema import Part
from awoke.payloads.registry.schemas import SchemaNeeded, Schemas
from awoke.payloads.registry.wire_format import HEADERS
from awoke.preconditions.extras import needs
from awoke.waiting.clock import monotonic_s

HEADER = "awoke-encryption-key"
VERSION_HEADER = "awoke-encryption-version"
VERSION = b"2"
SCHEMA_HEADER = HEADERS["value"]
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


class Encrypted(bytes):
    """Bytes that are encrypted, as this process knows by itself: they are those of a message that it has read as such.

    A header can't say so: the sender of a message chooses its headers, and headers are carried on to other messages.
    """

    __slots__ = ()


class EncryptedFormat(Format):
    """Another format, or a type, whose bytes are encrypted; made by `awoke.encrypted`."""

    reads_headers = True
    is_encrypted = True

    def __init__(
        self,
        inside: Any,
        keys: Keys,
        current: Current,
        *,
        accepts_plain: bool,
        accepts_unbound: bool,
        binds_key: bool,
        topic: str | None,
    ) -> None:
        self._inside, self._accepts_plain, self._accepts_unbound = inside, accepts_plain, accepts_unbound
        """The type or the format of the values, whether some may be not encrypted, and whether some may be of before
        values were bound to their topic."""
        self.binds_key, self._topic = binds_key, topic
        """Whether values are bound to their message's key, and the topic that they are bound to (None: their own)."""
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
        self._current_cipher(self._current if isinstance(self._current, str) else self._current())
        format_of(self._inside, self._default).check_loaded(topic, part, schemas)

    def decoder(self, topic: str, part: Part, schemas: Schemas) -> Decode:
        """Returns the function that decrypts a value, and decodes it then."""
        _check_part(topic, part)
        inner = format_of(self._inside, self._default)
        decode = decoder_of(inner, topic, part, schemas)
        reads_headers = inner.reads_headers
        bind = Binding(self._topic or topic, binds_key=self.binds_key)
        ready: dict[bytes | None, tuple[Any, bytes]] = BoundedDict(Counts())
        """The ciphers, and what they are bound to, of values that are bound to their topic only; by the header."""

        def decrypt(data: bytes, headers: Headers, key: bytes | None = None) -> Any:
            said = dict(headers)  # The last header of a name counts, as for the format inside.
            found = ready.get(said.get(HEADER))
            if found is not None and said.get(VERSION_HEADER) == VERSION and said.get(SCHEMA_HEADER) is None:
                try:
                    data = found[0].decrypt(data[:NONCE_BYTES], data[NONCE_BYTES:], found[1])
                except Exception:  # `opened` says what is wrong.
                    data = opened(data, said, key)
            else:
                data = opened(data, said, key)
            if decode is None:
                return data
            return decode(data, headers) if reads_headers else decode(data)

        def opened(data: bytes, said: Mapping[str, bytes | None], key: bytes | None) -> bytes:
            name = said.get(HEADER)
            if name is None:
                if self._accepts_plain:
                    return data
                raise ValueError(f"the value is not encrypted: there is no header {HEADER!r}")
            version, schema = said.get(VERSION_HEADER), said.get(SCHEMA_HEADER)
            self._check_version(version)
            cipher = self._cipher_of(name)
            bound = name if version is None else bind(name, schema, key)
            decrypted = self._decrypted(cipher, name, data, bound)
            if version is not None and schema is None and not self.binds_key:
                ready[name] = cipher, bound
            return decrypted

        return decrypt

    def encoder(self, topic: str, part: Part, schemas: Schemas) -> Encode:
        """Returns the function that encodes a value, and encrypts it with the current key."""
        _check_part(topic, part)
        encode = writer_of(self._inside, topic, part, self._default, schemas)
        current, binds_key = self._current, self.binds_key
        bind = Binding(self._topic or topic, binds_key=binds_key)
        ready: dict[str, tuple[Any, bytes, bytes, Any]] = BoundedDict(Counts())
        """The ciphers of keys, the ids in headers, what values are bound to if only to their topic, and the headers."""

        def prepared(name: str) -> tuple[Any, bytes, bytes, Any]:
            cipher, said = self._current_cipher(name), name.encode()
            found = ready[name] = (cipher, said, bind(said, None, None), ((HEADER, said), (VERSION_HEADER, VERSION)))
            return found

        def encrypt(value: Any, key: bytes | str | None = None) -> Payload:
            name = current if isinstance(current, str) else current()
            cipher, said, bound, marks = ready.get(name) or prepared(name)
            data, headers = encode(value)
            if headers or binds_key:
                bound = bind(said, dict(headers).get(SCHEMA_HEADER), key.encode() if isinstance(key, str) else key)
                marks = (*headers, *marks)
            nonce = urandom(NONCE_BYTES)
            return nonce + cipher.encrypt(nonce, data, bound), marks

        return encrypt

    def is_encoded(self, value: Any, headers: Headers) -> bool:
        """Tells whether a value is encrypted already, as that of a dead letter."""
        return isinstance(value, Encrypted)

    def _check_version(self, version: bytes | None) -> None:
        """Refuses a version that is not known, or is not accepted.

        Raises:
            ValueError: It is so.
        """
        if version is None:
            if not self._accepts_unbound:
                raise ValueError("the value is not bound to its topic, and accepts_unbound is false")
        elif version != VERSION:
            raise ValueError("the value is encrypted in a way that this version of awoke does not know")

    def _current_cipher(self, name: str) -> Any:
        """Returns the cipher for what is sent, by the id of its key."""
        cipher = self._keys.cipher(name)
        if cipher is None:
            raise EncodeError(f"the current key {name!r} is not there; check keys= and current=")
        return cipher

    def _cipher_of(self, key_name: bytes) -> Any:
        """Returns the cipher of a key by its header."""
        name = name_of(key_name)
        cipher = self._keys.cipher(name)
        if cipher is None:
            raise ValueError(f"the value is encrypted with the key {name!r}, which is not given; say it in keys=")
        return cipher

    def _decrypted(self, cipher: Any, key_name: bytes, data: bytes, bound: bytes) -> bytes:
        if len(data) < NONCE_BYTES + TAG_BYTES:
            raise ValueError("the bytes end within the encrypted value")
        try:
            decrypted: bytes = cipher.decrypt(data[:NONCE_BYTES], data[NONCE_BYTES:], bound)
        except self._invalid:
            name = name_of(key_name)
            text = f"the value was changed, or encrypted for another topic, or with another key than {name!r}"
            raise ValueError(text) from None
        return decrypted


def _check_part(topic: str, part: Part) -> None:
    if part == "key":
        text = f"topic {topic!r}: keys can't be encrypted: equal keys would go to different partitions"
        raise ConfigError(text, "key")


def encrypted(
    inside: Any = bytes,
    *,
    keys: Keys,
    current: Current,
    accepts_plain: bool = False,
    accepts_unbound: bool = True,
    binds_key: bool = False,
    topic: str | None = None,
) -> EncryptedFormat:
    """Returns the format of values that are encrypted with AES-256-GCM.

    `inside` is the type or the format of the values. `keys` has the keys by their ids, each of 32 bytes: what is sent
    is encrypted with the `current` one, and all of them decrypt. To replace a key, give the new one to all readers
    first, and then make it the current one. A function may stand for the keys: it gets an id, and returns its key, or
    None. It may block; what it returned is kept. While it raises, messages wait, as for a schema registry. `current`
    may be a function, too: it is called for each value that is sent, and must not block. `accepts_plain` also reads
    values that are not encrypted, for a topic that is to become so. Keys, headers, topics and times of messages are
    not encrypted. Dead letters stay encrypted.

    A value is bound to its topic, to the header that names its schema and, with `binds_key`, to its message's key: the
    same bytes elsewhere do not decrypt. `topic` is the topic that values are bound to, if it is not the one that they
    are sent to or read from: for a route that reads dead letters, or a copy of a topic under another name.
    `accepts_unbound` also reads values of versions of awoke that did not bind them.

    Raises:
        ConfigError: A key does not have 32 bytes; the current one is not among the keys; cryptography is not installed.
    """
    if isinstance(keys, Mapping) and isinstance(current, str) and current not in keys:
        raise ConfigError(f"awoke.encrypted: the current key {current!r} is not in keys=", "current")
    return EncryptedFormat(
        inside,
        keys,
        current,
        accepts_plain=accepts_plain,
        accepts_unbound=accepts_unbound,
        binds_key=binds_key,
        topic=None if topic is None else str(topic),
    )


def name_of(value: bytes) -> str:
    """Returns the id of a key, by its header.

    Raises:
        ValueError: It is longer than `KEY_ID_MAX`: it is kept, and given to user code.
    """
    if len(value) > KEY_ID_MAX:
        raise ValueError(f"the id of the key has {len(value)} bytes, and {KEY_ID_MAX} at most are read")
    return value.decode(errors="replace")


class Binding:
    """Makes the additional data of values of one topic: what they are bound to."""

    def __init__(self, topic: str, *, binds_key: bool) -> None:
        self._topic, self._binds_key = topic.encode(), binds_key

    def __call__(self, name: bytes, schema: bytes | None, key: bytes | None) -> bytes:
        """Returns it for the id of a key, the header that names a schema, and the message's key."""
        keys = [] if key is None or not self._binds_key else [key]
        schemas = [] if schema is None else [schema]
        counts = bytes((self._binds_key, len(keys), len(schemas)))
        return b"".join(len(each).to_bytes(4) + each for each in (VERSION, name, self._topic, counts, *keys, *schemas))


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
