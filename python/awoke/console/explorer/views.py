"""The view models of messages."""

from __future__ import annotations

from typing import Literal

import msgspec

Form = Literal["none", "hidden", "json", "text", "bytes"]
"""The form in which content is shown: `none` is a tombstone, or a message without a key."""


class Content(msgspec.Struct, kw_only=True):
    """A key, a value or the value of a header, as it is shown. Its text is foreign: it has no control characters."""

    form: Form
    size_bytes: int
    text: str | None = None
    """None for content that is hidden, or not there."""
    schema: int | str | None = None
    """The id or the GUID of the schema that decoded it."""
    decoder: str | None = None
    """The name of the type, or `registry`, that decoded it."""
    note: str | None = None
    """The reason why it is not decoded."""
    is_cut: bool = False
    """True if the text is only the beginning; a download has all."""


class ShownHeader(msgspec.Struct, kw_only=True):
    """A header of a message."""

    name: str
    value: Content


class MessageView(msgspec.Struct, kw_only=True):
    """A message."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int | None
    key_hash: str | None
    """The same for all messages of a key; shown also while contents are hidden."""
    key: Content
    value: Content
    headers: list[ShownHeader]


class PartitionRange(msgspec.Struct, kw_only=True):
    """The offsets that a partition has now."""

    partition: int
    start: int
    end: int


At = Literal["newest", "earliest", "offset", "time", "around"]


class Where(msgspec.Struct, kw_only=True, frozen=True):
    """The messages of a topic that are asked for."""

    topic: str
    partition: int | None = None
    """None for all partitions; `offset` and `around` need one."""
    at: At = "newest"
    offset: int | None = None
    """For `offset` the first message, for `around` the one whose neighbours are read."""
    time_ms: int | None = None
    """For `time`: milliseconds since 1970."""
    limit: int = 50


class MessagesView(msgspec.Struct, kw_only=True):
    """A page of messages."""

    where: Where
    messages: list[MessageView]
    """For `newest` the last one first, else in the order of each partition."""
    ranges: list[PartitionRange]
    earlier: Where | None = None
    """The page before this one, of one partition; None where there is none."""
    later: Where | None = None
    notes: list[str] = []


class Download(msgspec.Struct, kw_only=True):
    """A file with a message or a part of it."""

    name: str
    media_type: str
    content: bytes


class SearchQuery(msgspec.Struct, kw_only=True, frozen=True):
    """A search in a topic."""

    topic: str
    text: str
    """Contained in what is searched; upper and lower case are the same."""
    place: Literal["any", "key", "value", "header"] = "any"
    field: str | None = None
    """The path of a field of a decoded JSON value, as in `card.number`: its value is searched then."""
    partition: int | None = None
    since_ms: int | None = None
    """Begins with the first message at or after this time; None begins with the first message."""
    hits_max: int = 100
    scanned_max: int = 1_000_000


class SearchStep(msgspec.Struct, kw_only=True):
    """A step of a search: its new hits, and the progress until now."""

    hits: list[MessageView]
    scanned: int
    total: int
    """The offsets that the topic had when the search began: at least as many as its messages."""
    found: int
    over_because: Literal["end", "hits", "limit", "cancelled", "time"] | None = None
    """The reason why this is the last step; None if it is not."""
