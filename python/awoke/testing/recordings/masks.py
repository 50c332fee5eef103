"""Replaces secrets in records before they are written: fields of JSON values, keys, and headers.

A replacement has the type of what it replaces, so that the record still decodes. Equal contents have equal
replacements: a keyed hash, whose key is random unless it is given. A record that can't be masked is refused. Of the
fields that the app marks as secret, a record that has not the form of its type is masked as a whole.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from awoke.declare.secret_topics import SecretPart
from awoke.errors import AwokeError, ConfigError
from awoke.payloads.secret_paths import shown
from awoke.testing.messages import MessageParts
from awoke.testing.recordings.recording import Recorded

Style = Literal["hash", "stars"]

PREFIX = "masked-"
DIGITS = 12
"""Hexadecimal digits of a hash in a text."""
NUMBER_MAX = 2**31 - 1


class MaskRefused(AwokeError):
    """A record can't be masked as it was asked: nothing was written."""


class Masks:
    """Masks the records of one recording. It notes which masks have found nothing."""

    def __init__(
        self,
        fields: Sequence[str] = (),
        headers: Sequence[str] = (),
        *,
        key: bool = False,
        style: Style = "hash",
        secrets_of_app: Sequence[SecretPart] = (),
        hash_key: bytes | None = None,
    ) -> None:
        if not all(name for field in fields for name in field.split(".")):
            raise ConfigError("--mask takes the path of a field, as in card.number", "--mask")
        self._paths = {field: field.split(".") for field in fields}
        self._headers, self._masks_key, self._style = list(headers), key, style
        self._hash_key = hash_key or secrets.token_bytes(32)
        self._of_app = secrets_of_app
        for each in secrets_of_app:
            if each.form != "json":
                text = f"the {each.part} has secret fields and is no JSON, so that they can't be masked"
                raise MaskRefused(f"{text}; --keep-secrets records them as they are")
        self.secrets: list[str] = []
        """The secret fields of the app that were found and masked, as in the recording's header."""
        self._unseen = {f"--mask {each}" for each in fields} | {f"--mask-header {each}" for each in headers}
        self._names = [*(f"value:{each}" for each in fields), *(f"header:{each}" for each in headers)]
        if key:
            self._names.append("key")

    @property
    def names(self) -> list[str]:
        """The parts that are masked, for the recording's header."""
        return [*self._names, *(each for each in self.secrets if each not in self._names)]

    def masked(self, record: Recorded) -> Recorded:
        """Returns a record without its secrets.

        Raises:
            MaskRefused: a field is to be masked, and the value is no JSON object.
        """
        parts = self._without_secrets(record.parts)
        key = self._text(parts.key) if self._masks_key and parts.key is not None else parts.key
        headers = [(name, self._header(name, value)) for name, value in parts.headers]
        value = self._value(record, parts) if self._paths and parts.value is not None else parts.value
        return Recorded(record.partition, parts._replace(key=key, headers=headers, value=value))

    def _without_secrets(self, parts: MessageParts) -> MessageParts:
        """Returns the parts of a record without the secrets of the app."""
        for each in self._of_app:
            if each.part == "key" and parts.key is not None:
                parts = parts._replace(key=self._without(each, parts.key))
            elif each.part == "value" and parts.value is not None:
                parts = parts._replace(value=self._without(each, parts.value))
        return parts

    def _without(self, secret: SecretPart, data: bytes) -> bytes:
        def replace(value: Any, path: str) -> Any:
            name = f"{secret.part}:{shown(path)}" if path else secret.part
            if name not in self.secrets:
                self.secrets.append(name)
            return self._replaced(value, hides_names=not path or path in secret.paths.keyed)

        try:
            document = msgspec.json.decode(data)
            fits = any(each.part == secret.part and each.paths.fits(document) for each in self._of_app)
            masked = secret.paths.masked(document, replace) if fits else replace(document, "")
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            replace(None, "")
            return self._text(data)
        return msgspec.json.encode(masked)

    def check_found(self) -> None:
        """Checks that each mask has found something to replace: a misspelt one would leave its secret.

        Raises:
            MaskRefused: one has not.
        """
        if self._unseen:
            names = ", ".join(sorted(self._unseen))
            raise MaskRefused(f"no record has what these mask: {names}; nothing was written")

    def _value(self, record: Recorded, parts: MessageParts) -> bytes:
        assert parts.value is not None
        try:
            document = msgspec.json.decode(parts.value)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            document = None
        if not isinstance(document, dict | list):
            at = f"partition {record.partition} offset {parts.offset}"
            text = f"{at}: the value is no JSON object, so that its fields can't be masked; nothing was written"
            raise MaskRefused(text)
        for field, path in self._paths.items():
            document = self._within(document, path, field)
        return msgspec.json.encode(document)

    def _within(self, document: Any, path: Sequence[str], field: str) -> Any:
        """Returns a document whose fields at this path are masked, in each element of a list."""
        if isinstance(document, list):
            return [self._within(each, path, field) for each in document]
        if not path:
            self._unseen.discard(f"--mask {field}")
            return self._replaced(document)
        if not isinstance(document, dict) or path[0] not in document:
            return document
        return {**document, path[0]: self._within(document[path[0]], path[1:], field)}

    def _replaced(self, value: Any, hides_names: bool = False) -> Any:
        if isinstance(value, dict):
            parts = {name: self._replaced(each, hides_names) for name, each in value.items()}
            return {self._text(name.encode()).decode(): each for name, each in parts.items()} if hides_names else parts
        if isinstance(value, list):
            return [self._replaced(each, hides_names) for each in value]
        if value is None or isinstance(value, bool):
            return None if value is None else False
        digest = self._digest(msgspec.json.encode(value))
        if isinstance(value, str):
            return self._word(digest)
        number = 0 if self._style == "stars" else int(digest, 16) % NUMBER_MAX
        return float(number) if isinstance(value, float) else number

    def _header(self, name: str, value: bytes | None) -> bytes | None:
        if name not in self._headers:
            return value
        self._unseen.discard(f"--mask-header {name}")
        return None if value is None else self._text(value)

    def _text(self, data: bytes) -> bytes:
        digest = self._digest(data)
        if data.isdigit():  # A key or header that is read as a number stays one.
            return b"0" if self._style == "stars" else str(int(digest, 16) % NUMBER_MAX).encode()
        return self._word(digest).encode()

    def _word(self, digest: str) -> str:
        return "***" if self._style == "stars" else PREFIX + digest[:DIGITS]

    def _digest(self, data: bytes) -> str:
        return hmac.digest(self._hash_key, data, hashlib.sha256).hex()
