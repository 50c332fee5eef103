"""Compares what old and new code make of a recording: which record differs, in which field, and how."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from awoke.declare.secret_topics import NO_SECRETS, SecretPart, SecretTopics, fits
from awoke.text.secrets import HIDDEN

Document = Mapping[str, Any]

MISSING = "(nothing)"
"""Stands for what one side does not have."""

SHOWN_MAX = 200
"""The most characters of a value that are shown."""


class Difference(NamedTuple):
    """A field that differs."""

    partition: int | None
    offset: int | None
    """None for what was sent behind the last record."""
    path: str
    """The field, as in `receipts 1 value.total`: the first record that was sent to the topic receipts."""
    before: str
    after: str


def differences(
    before: Sequence[Document],
    after: Sequence[Document],
    ignored: Sequence[str] = (),
    secrets: SecretTopics = NO_SECRETS,
) -> list[Difference]:
    """Returns all fields that differ, by record. Secrets are compared, and not shown.

    `ignored` are fields that may differ: `state`, `error`, `key`, `value`, `value.total`, `headers.trace`.
    """
    old, new = ({(each["partition"], each["offset"]): each for each in documents} for documents in (before, after))
    return [
        Difference(*place, path, _shown(was), _shown(now))
        for place in {**old, **new}
        for path, was, now in _of_record(old.get(place, {}), new.get(place, {}), secrets)
        if not is_ignored(path, ignored)
    ]


def is_ignored(path: str, ignored: Sequence[str]) -> bool:
    """Returns whether a field, or one that it is in, may differ. Places in lists do not count."""
    field = path.rpartition(" ")[2]
    plain = "".join(part.partition("[")[0] + "." for part in field.split("."))
    return any(plain.startswith(f"{each}.") for each in ignored)


def report(topic: str, found: Sequence[Difference]) -> Iterator[str]:
    """Yields lines that show differences, by record."""
    place: tuple[int | None, int | None] | None = None
    for each in found:
        if (each.partition, each.offset) != place:
            place = (each.partition, each.offset)
            yield "behind the last record" if each.offset is None else f"{topic}[{each.partition}] offset {each.offset}"
        yield f"  {each.path}: {each.before} → {each.after}"


Field = tuple[str, Any, Any]
"""A path, and what is there before and after."""


class Nothing:
    """Stands for a value that is missing on one side."""


class Masked:
    """A secret: it equals one with the same content, and is shown as a secret and nothing more."""

    __slots__ = ("_content",)

    def __init__(self, value: Any) -> None:
        self._content = msgspec.json.encode(value, enc_hook=lambda inner: inner._content.decode(), order="sorted")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Masked) and self._content == other._content

    def __hash__(self) -> int:
        return hash(self._content)


def _of_record(before: Document, after: Document, secrets: SecretTopics) -> Iterator[Field]:
    for name in ("state", "error"):
        if before.get(name) != after.get(name):
            yield name, before.get(name, Nothing), after.get(name, Nothing)
    old, new = _by_topic(before), _by_topic(after)
    for topic in {**old, **new}:
        was, now = old.get(topic, []), new.get(topic, [])
        for place in range(max(len(was), len(now))):
            both_sides = (_masked(_at(each, place), secrets) for each in (was, now))
            for path, *both in _of_output(*both_sides):
                yield f"{topic} {place + 1}{path}", *both


def _of_output(before: Any, after: Any) -> Iterator[Field]:
    if before is Nothing or after is Nothing:
        was, now = (each if each is Nothing else each["value"] for each in (before, after))
        yield "", was, now
        return
    if before["key"] != after["key"]:
        yield " key", before["key"], after["key"]
    yield from _walk(" headers", _named(before["headers"]), _named(after["headers"]))
    yield from _walk(" value", before["value"], after["value"])


def _masked(output: Any, secrets: SecretTopics) -> Any:
    """Returns an output with its value parsed, and with its secrets masked. A key is parsed where it may have some."""
    if output is Nothing:
        return output
    of_key, of_value = secrets.of(output["topic"], "key"), secrets.of(output["topic"], "value")
    key = _without(output["key"], of_key) if of_key else output["key"]
    return {**output, "key": key, "value": _without(output["value"], of_value)}


def _without(content: Any, secrets: Collection[SecretPart]) -> Any:
    """Returns a key or a value as the JSON that it holds, masked; all of it where it lacks the form of its type."""
    document = _parsed(content)
    if content is None or not secrets:
        return document
    is_json = isinstance(content, str) and all(each.form == "json" for each in secrets)  # Else it is base64 of bytes.
    if not is_json or not fits(document, secrets):
        return Masked(document)
    for each in secrets:
        document = each.paths.masked(document, lambda value, path: Masked(value))
    return document


def _walk(path: str, before: Any, after: Any) -> Iterator[Field]:
    """Yields the innermost fields in which two values differ."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in {**before, **after}:
            yield from _walk(f"{path}.{name}", before.get(name, Nothing), after.get(name, Nothing))
    elif isinstance(before, list) and isinstance(after, list):
        for place in range(max(len(before), len(after))):
            yield from _walk(f"{path}[{place}]", _at(before, place), _at(after, place))
    elif type(before) is not type(after) or before != after:
        yield path, before, after


def _by_topic(document: Document) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for each in document.get("outputs", ()):
        found.setdefault(each["topic"], []).append(each)
    return found


def _at(items: Sequence[Any], place: int) -> Any:
    return items[place] if place < len(items) else Nothing


def _named(headers: Sequence[Any]) -> dict[str, Any]:
    """Returns headers by name; all values of a name that comes several times."""
    found: dict[str, list[Any]] = {}
    for name, value in headers:
        found.setdefault(name, []).append(value)
    return {name: each[0] if len(each) == 1 else each for name, each in found.items()}


def _parsed(value: Any) -> Any:
    """Returns a value as the JSON that it holds; as it is if it holds none."""
    if not isinstance(value, str):
        return value
    try:
        return msgspec.json.decode(value)
    except msgspec.MsgspecError:
        return value


def _shown(value: Any) -> str:
    if value is Nothing:
        return MISSING
    text = msgspec.json.encode(value, enc_hook=lambda masked: HIDDEN).decode()
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}…"
