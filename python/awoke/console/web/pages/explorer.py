"""Messages of topics: pages by place and time, one message with its neighbours, downloads, and searches."""

from __future__ import annotations

import asyncio
import base64
import datetime
import re
import threading
from collections.abc import AsyncGenerator
from typing import Any, Literal

import msgspec
from starlette.responses import Response, StreamingResponse

from awoke._native import Message
from awoke.console.explorer import reading
from awoke.console.explorer.parts import DecodedParts
from awoke.console.explorer.searching import Search
from awoke.console.explorer.views import Download, MessagesView, MessageView, SearchQuery, SearchStep, Where
from awoke.console.web.page import ActionRefused, Asked, NoSuchPage, Page, Wrong
from awoke.errors import AwokeError, ConfigError, UnknownTopic
from awoke.text.printable import harmless_json

KINDS = ("newest", "earliest", "offset", "time", "around")
LIMIT = 50
SEARCHES_MAX = 4
"""The most searches that run at once."""
SCANNED_WAITED = 100_000
"""The messages of a search that a page waits for, for browsers without scripts."""
Kind = Literal["key", "value", "message"]
UNSAFE = re.compile(r"[^A-Za-z0-9._-]")
BYTES = "application/octet-stream"
"""No browser shows it: content of a topic may be a page with scripts."""


class MessagesPage(msgspec.Struct, kw_only=True):
    """A page of messages."""

    topic: str
    view: MessagesView
    is_hidden: bool
    """True if this request may not see contents."""


class MessagePage(msgspec.Struct, kw_only=True):
    """One message."""

    topic: str
    message: MessageView
    is_hidden: bool
    has_secrets: bool
    """True if it has secret fields, or may have some: then there is no download."""


class SearchPage(msgspec.Struct, kw_only=True):
    """A search."""

    topic: str
    query: SearchQuery | None
    hits: list[MessageView] = []
    last: SearchStep | None = None
    """The end of a search that the page has waited for."""
    is_hidden: bool


def messages(asked: Asked) -> MessagesPage:
    """Returns a page of messages."""
    where = where_of(asked)
    with asked.parts() as parts:
        try:
            view = reading.read_page(asked.brokers, where, parts)
        except ConfigError as error:
            raise Wrong(str(error)) from None
        except UnknownTopic as error:
            raise NoSuchPage(str(error)) from None
    return MessagesPage(topic=where.topic, view=view, is_hidden=not asked.grant.payloads)


def message(asked: Asked) -> MessagePage:
    """Returns one message."""
    found = _read_one(asked)
    is_hidden = not asked.grant.payloads
    has_secrets = not is_hidden and asked.secrets().has(found.topic)
    with asked.parts() as parts:
        view = parts.message(found)
    return MessagePage(topic=found.topic, message=view, is_hidden=is_hidden, has_secrets=has_secrets)


def file(asked: Asked) -> Response:
    """Returns a message, or a part of it, as a file."""
    kind = asked.query.get("part", "message")
    if not asked.grant.payloads:
        raise ActionRefused("the contents of messages are hidden from you")
    secrets = asked.secrets()
    if secrets.has(asked.path["topic"]):
        known = "messages of this topic have secret fields, which a file would show"
        raise ActionRefused(secrets.unknown_because or known)
    if kind not in ("key", "value", "message"):
        raise Wrong(f"part is key, value or message, not {kind!r}")
    made = download(_read_one(asked), "key" if kind == "key" else "value" if kind == "value" else "message")
    headers = {"Content-Disposition": f'attachment; filename="{made.name}"', "X-Content-Type-Options": "nosniff"}
    return Response(made.content, media_type=made.media_type, headers=headers)


def search(asked: Asked) -> SearchPage:
    """Returns the form of a search; waits for its hits only where `wait` is asked for."""
    topic, is_hidden = asked.path["topic"], not asked.grant.payloads
    if not asked.query.get("text"):
        return SearchPage(topic=topic, query=None, is_hidden=is_hidden)
    query = query_of(asked)
    if not asked.query.get("wait") or is_hidden:
        return SearchPage(topic=topic, query=query, is_hidden=is_hidden)
    bounded = msgspec.structs.replace(query, scanned_max=SCANNED_WAITED)
    with asked.parts() as parts, _search(asked, bounded, parts) as running:
        steps = list(running.steps())
    hits = [each for step in steps for each in step.hits]
    return SearchPage(topic=topic, query=query, hits=hits, last=steps[-1] if steps else None, is_hidden=False)


async def hits(asked: Asked) -> Response:
    """Returns the steps of a search as server-sent events, each as JSON. It is cancelled when the browser goes."""
    if not asked.grant.payloads:
        raise ActionRefused("a search tells the contents of messages, which are hidden from you")
    parts = await asyncio.get_running_loop().run_in_executor(None, asked.parts)
    return StreamingResponse(events(_search(asked, query_of(asked), parts), parts), media_type="text/event-stream")


class RunningSearch:
    """The number of searches that run in this process."""

    _lock = threading.Lock()
    _count = 0

    @classmethod
    def begin(cls) -> bool:
        """Counts one more; returns False if there are too many."""
        with cls._lock:
            if cls._count >= SEARCHES_MAX:
                return False
            cls._count += 1
            return True

    @classmethod
    def end(cls) -> None:
        """Counts one less."""
        with cls._lock:
            cls._count -= 1


async def events(running: Search, parts: DecodedParts) -> AsyncGenerator[str, None]:
    """Yields the steps of a search as events; the search ends with this generator.

    It counts itself: a browser that goes before the first event never starts it, and nothing would end it then.
    """
    loop = asyncio.get_running_loop()
    if not RunningSearch.begin():
        yield f'event: step\ndata: {{"error": "{SEARCHES_MAX} searches run already"}}\n\n'
        return

    def end() -> None:
        running.cancel()
        parts.close()
        RunningSearch.end()

    try:
        while (step := await loop.run_in_executor(None, _next, running)) is not None:
            yield f"event: step\ndata: {step}\n\n"
        yield "event: over\ndata: -\n\n"
    finally:
        loop.run_in_executor(None, end)


def _next(running: Search) -> str | None:
    """Returns the next step as JSON. An error is the last one."""
    try:
        step = running.next()
    except AwokeError as error:
        running.cancel()
        return harmless_json(msgspec.json.encode({"error": str(error)}).decode())
    return None if step is None else harmless_json(msgspec.json.encode(step).decode())


def where_of(asked: Asked) -> Where:
    """Returns the place that the query names.

    Raises:
        Wrong: A number or a time is none.
    """
    at: Any = asked.query.get("read", "newest")
    if at not in KINDS:
        raise Wrong(f"read is one of {', '.join(KINDS)}, not {at!r}")
    return Where(
        topic=asked.path["topic"],
        partition=_optional(asked, "partition"),
        at=at,
        offset=_optional(asked, "offset"),
        time_ms=time_of(asked.query.get("time", "")),
        limit=asked.integer("limit", LIMIT, 1, reading.LIMIT_MAX),
    )


def query_of(asked: Asked) -> SearchQuery:
    """Returns the search that the query names.

    Raises:
        Wrong: A number or a time is none.
    """
    place: Any = asked.query.get("place", "any")
    if place not in ("any", "key", "value", "header"):
        raise Wrong(f"place is any, key, value or header, not {place!r}")
    return SearchQuery(
        topic=asked.path["topic"],
        text=asked.query.get("text", ""),
        place=place,
        field=asked.query.get("field") or None,
        partition=_optional(asked, "partition"),
        since_ms=time_of(asked.query.get("since", "")),
        hits_max=asked.integer("hits", 100, 1, 1_000),
    )


def time_of(text: str) -> int | None:
    """Returns a time as milliseconds since 1970: an ISO time, in UTC unless it says its zone, or milliseconds.

    Raises:
        Wrong: It is neither.
    """
    if not text:
        return None
    if text.isdecimal() and len(text) < 16:
        return int(text)
    try:
        found = datetime.datetime.fromisoformat(text)
        aware = found if found.tzinfo is not None else found.replace(tzinfo=datetime.UTC)
        return max(0, int(aware.timestamp() * 1_000))
    except (ValueError, OverflowError):
        raise Wrong(f"a time is an ISO time, as in 2026-01-31T12:00, not {text[:40]!r}") from None


def _optional(asked: Asked, name: str) -> int | None:
    return asked.integer(name, 0) if asked.query.get(name) else None


def _search(asked: Asked, query: SearchQuery, parts: DecodedParts) -> Search:
    try:
        return Search(asked.brokers, query, parts)
    except ConfigError as error:
        raise (Wrong(str(error)) if parts.secrets.unknown_because is None else ActionRefused(str(error))) from None


def _read_one(asked: Asked) -> Any:
    try:
        partition, offset = int(asked.path["partition"][:18]), int(asked.path["offset"][:19])
    except ValueError:
        raise Wrong("partition and offset are numbers") from None
    try:
        return reading.read_one(asked.brokers, asked.path["topic"], partition, offset)
    except UnknownTopic as error:
        raise NoSuchPage(str(error)) from None


PAGES = [
    Page("/topics/{topic}/messages", "Messages", messages, "messages.html"),
    Page("/topics/{topic}/messages/{partition}/{offset}", "Message", message, "message.html"),
    Page("/topics/{topic}/messages/{partition}/{offset}/file", "Download", file, "message.html"),
    Page("/topics/{topic}/search", "Search", search, "search.html"),
    Page("/topics/{topic}/search/hits", "Hits", hits, "search.html"),
]


def download(message: Message[Any, Any], kind: Kind) -> Download:
    """Returns a file with the message or a part of it. Its content is foreign: only for who may see payloads.

    Raises:
        AwokeError: There is no key, or the message is a tombstone.
    """
    name = UNSAFE.sub("_", f"{message.topic}-{message.partition}-{message.offset}")
    if kind == "message":
        return Download(name=f"{name}.json", media_type="application/json", content=msgspec.json.encode(parts(message)))
    content = message.raw_key if kind == "key" else message.raw_value
    if content is None:
        at = f"{message.topic}[{message.partition}] offset {message.offset}"
        raise AwokeError(f"{at} has no {kind}")
    return Download(name=f"{name}.{kind}.bin", media_type=BYTES, content=content)


def parts(message: Message[Any, Any]) -> dict[str, Any]:
    """Returns all parts of a message for a JSON document: text as it is, and other bytes as base64 beside it."""
    return {
        "topic": message.topic,
        "partition": message.partition,
        "offset": message.offset,
        "timestamp_ms": message.timestamp_ms,
        **named("key", message.raw_key),
        **named("value", message.raw_value),
        "headers": [{"name": name, **named("value", value)} for name, value in message.headers],
    }


def named(name: str, content: bytes | None) -> dict[str, str | None]:
    """Returns content under its name, or as base64 under `name_base64` where it is no text."""
    if content is None:
        return {name: None}
    try:
        return {name: content.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(content).decode()}
