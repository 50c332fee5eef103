"""The errors of a schema registry's client.

RegistryError
├── RegistryUnavailable   no connection, no answer in time, or the answer 429 or 5xx; a later attempt may succeed
├── RegistryUnauthorized  401 or 403, or no token could be had
├── SchemaNotFound        the registry has no such subject (40401), version (40402) or schema (40403)
├── SchemaIncompatible    409: the subject's compatibility level refuses the schema
├── InvalidSchema         422: the registry can't use the schema, or another value of the request
└── RegistryRefused       any other answer, also one that is no JSON or not the registry's
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, ClassVar

import msgspec

from awoke.errors import AwokeError
from awoke.text.printable import harmless
from awoke.text.secrets import HIDDEN, without_userinfo

CODE_NOT_FOUND = 404
"""Codes of the registry about something that it does not have are 404, and two digits."""
SUBJECT_NOT_FOUND = 40401
VERSION_NOT_FOUND = 40402
QUOTED_MAX = 1_000
"""An error's text quotes as much of the registry's message, in characters."""


class RegistryError(AwokeError):
    """A request to a schema registry failed."""

    what: ClassVar[str] = "the request to the schema registry failed"
    """The first words of the text of an error that an answer caused."""
    advice: ClassVar[str] = "see the registry's log"

    def __init__(self, text: str, url: str = "", status: int | None = None, code: int | None = None) -> None:
        super().__init__(text)
        self.url = without_userinfo(url)
        """The address of the request, without user and password."""
        self.status = status
        """The HTTP status; None when there was no answer."""
        self.code = code
        """The registry's own code (`error_code`); None when it gave none."""


class RegistryUnavailable(RegistryError):
    """No connection, no answer in time, or the answer that the registry can't serve now: try again later."""

    what = "the schema registry is not available"
    advice = "it may be available again in a moment"


class RegistryUnauthorized(RegistryError):
    """The registry does not let the client in or does not allow the request, or a token could not be had."""

    what = "the schema registry does not allow the request"
    advice = "check the option 'auth', and the rights of its user"


class SchemaNotFound(RegistryError):
    """The registry has no such subject, version or schema; `code` tells which."""

    what = "the schema registry does not have it"
    advice = "check the id or the subject, and that this is the right registry"


class SchemaIncompatible(RegistryError):
    """The subject's compatibility level refuses the schema."""

    what = "the schema is not compatible with its subject"
    advice = "change the schema, or the subject's compatibility level"

    def __init__(
        self,
        text: str,
        url: str = "",
        status: int | None = None,
        code: int | None = None,
        messages: Collection[str] = (),
    ) -> None:
        super().__init__(text, url, status, code)
        self.messages = list(messages)
        """The registry's reasons, in its order."""


class InvalidSchema(RegistryError):
    """The registry can't use the schema, or another value of the request."""

    what = "the schema registry finds the schema or the request invalid"
    advice = "correct it"


class RegistryRefused(RegistryError):
    """Any other answer: a request that the registry does not know, or an answer that is not a schema registry's."""

    what = "this is not the answer of a schema registry"
    advice = "check its address, as in http://host:8081 or http://host:8080/apis/ccompat/v7"


def parsed(content: bytes) -> Any:
    """Returns a JSON document.

    Raises:
        ValueError: It is none.
    """
    try:
        return msgspec.json.decode(content)
    except (ValueError, RecursionError):  # msgspec's own error and that of wrong UTF-8 are ValueErrors.
        raise ValueError("the answer is no JSON") from None


def error_of_answer(method: str, url: str, status: int, content: bytes, secrets: Collection[str] = ()) -> RegistryError:
    """Returns the error for an answer. Its text and its messages show none of the `secrets`, if the answer has them."""
    document = _object(content)
    code = document.get("error_code")
    code = code if isinstance(code, int) else None
    messages = [clean(each, secrets) for each in _messages(document)]
    kind = _kind(status, code)
    said = f" ({code})" if code is not None else ""
    quoted = f": {' '.join(messages)[:QUOTED_MAX]}" if messages else ""
    what, advice = kind.what, kind.advice
    if kind is RegistryRefused and code not in (None, CODE_NOT_FOUND):
        what, advice = "the schema registry refuses the request", "see its message, and its log"
    text = f"{what}: {method} {url} answered {status}{said}{quoted}; {advice}"
    if issubclass(kind, SchemaIncompatible):
        return kind(text, url, status, code, messages)
    return kind(text, url, status, code)


def clean(text: str, secrets: Collection[str]) -> str:
    """Returns foreign text without control characters and without these secrets."""
    for secret in filter(None, secrets):
        text = text.replace(secret, HIDDEN)
    return harmless(text)


def _kind(status: int, code: int | None) -> type[RegistryError]:
    if status == 429 or status >= 500:
        return RegistryUnavailable
    if status in (401, 403):
        return RegistryUnauthorized
    if code is None:  # Of a proxy or of another server, which knows nothing of schemas.
        return RegistryRefused
    # The code 404 itself means that the address is wrong: no message may be given up because of that.
    if status == 404 and code // 100 == CODE_NOT_FOUND:
        return SchemaNotFound
    return {409: SchemaIncompatible, 422: InvalidSchema}.get(status, RegistryRefused)


def _object(content: bytes) -> dict[str, Any]:
    try:
        document = parsed(content)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _messages(document: dict[str, Any]) -> Iterator[str]:
    """Yields the reasons: `messages` of newer registries, `message` of all, `error` of token endpoints and proxies."""
    several = document.get("messages")
    if isinstance(several, list) and several:
        yield from map(str, several)
        return
    for name in ("message", "error", "error_description"):
        if isinstance(document.get(name), str):
            yield document[name]
