"""The frame of a page: its route, its view model, its rights, and the form in which a request reaches it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from awoke.admin import Admin
from awoke.console.access import Brokers
from awoke.console.explorer.parts import DecodedParts
from awoke.console.letters.runs import ReplayRuns
from awoke.console.web.cluster import Cluster
from awoke.console.web.code import UNKNOWN, Code
from awoke.console.web.grants import Grant, Role
from awoke.console.web.snapshot import Snapshot
from awoke.declare.secret_topics import NO_SECRETS, SecretTopics
from awoke.errors import AwokeError
from awoke.settings import Settings

ROWS = 100
"""The rows of a page of a table."""

Row = TypeVar("Row")
Shown = TypeVar("Shown")
Answer = TypeVar("Answer")


class NoSuchPage(AwokeError):
    """The page is about something that does not exist."""


class Wrong(AwokeError):
    """The request can't be understood."""


class ActionRefused(AwokeError):
    """The request is understood, and not allowed."""


class Rows(msgspec.Struct, Generic[Row], kw_only=True):
    """A part of a table: sorted, filtered and cut on the server."""

    rows: list[Row]
    total: int
    """The rows that the filter leaves."""
    at: int = 0
    """The number of the first row."""
    sort: str = ""
    is_descending: bool = False
    filter: str = ""
    before: int | None = None
    """The first row of the page before this one; None on the first."""
    after: int | None = None

    def shown_as(self, make: Callable[[Row], Shown]) -> Rows[Shown]:
        """Returns the same part with rows that are made of these: only those that are shown have a price."""
        return Rows(
            rows=[make(each) for each in self.rows],
            total=self.total,
            at=self.at,
            sort=self.sort,
            is_descending=self.is_descending,
            filter=self.filter,
            before=self.before,
            after=self.after,
        )


class Source(Protocol):
    """The state of the app."""

    def snapshot(self, within_s: float = ...) -> Snapshot: ...


NO_RUNS = ReplayRuns()
"""The replays of a console that makes none."""


class Asked(NamedTuple):
    """A request, as the function of a page sees it."""

    app: str
    settings: Settings
    grant: Grant
    path: Mapping[str, str]
    query: Mapping[str, str]
    form: Mapping[str, str]
    source: Source
    prefix: str = ""
    """The path at which the console is mounted."""
    page: Page | None = None
    code: Code = UNKNOWN
    """The routes of the app, where the console is beside it."""
    cluster: Cluster | None = None
    """None asks the brokers anew."""
    replays: ReplayRuns = NO_RUNS

    def ask(self, key: Hashable, question: Callable[[Admin], Answer]) -> Answer:
        """Returns the answer of the brokers to a question, which may be two seconds old. It may not be changed.

        Raises:
            BrokerUnreachable; AuthorizationFailed; all errors of the question.
        """
        if self.cluster is not None:
            return self.cluster.ask(key, question)
        with self.brokers.admin() as admin:
            return question(admin)

    @property
    def brokers(self) -> Brokers:
        """The brokers, for questions whose answers must be new, and for readers."""
        return Brokers(self.settings) if self.cluster is None else self.cluster.brokers()

    def snapshot(self) -> Snapshot:
        """Returns the state of the app. The first call may block until the topics are read."""
        return self.source.snapshot()

    def secrets(self) -> SecretTopics:
        """Returns the secret fields of topics: those of the code, and those that the processes tell. Blocks as above.

        A console without the code knows what the processes tell, and hides all contents until one has.
        """
        own, told = self.code.secrets, self.snapshot().secrets
        return told if own is None else own.with_others(told.parts)

    def parts(self) -> DecodedParts:
        """Returns what shows the parts of messages to this request, as a context. Blocks as above."""
        secrets = self.secrets() if self.grant.payloads else NO_SECRETS
        return DecodedParts(self.settings, self.code.decoders, secrets, reveals=bool(self.grant.payloads))

    def integer(self, name: str, default: int, least: int = 0, most: int = 2**63 - 1) -> int:
        """Returns a number of the query or the form, within these bounds.

        Raises:
            Wrong: It is no number.
        """
        text = self.form.get(name) or self.query.get(name) or ""
        if not text:
            return default
        try:
            return min(most, max(least, int(text[:20])))
        except ValueError:
            raise Wrong(f"{name} is no number: {text[:40]!r}") from None

    def rows(
        self,
        found: Iterable[Row],
        sort: str,
        columns: Mapping[str, Callable[[Row], Any] | None],
        *,
        is_descending: bool = False,
        text: Callable[[Row], str] | None = None,
    ) -> Rows[Row]:
        """Returns the part of a table that the query names (`sort`, `order`, `q`, `at`); `sort` is the default.

        The rows come in the order of a column without a function.
        """
        rows = found if isinstance(found, Sequence) else list(found)
        wanted = self.query.get("q", "")[:200]
        if wanted and text is not None:
            rows = [each for each in rows if wanted.lower() in text(each).lower()]
        column = self.query.get("sort", "")
        if column in columns:
            sort, is_descending = column, self.query.get("order") == "desc"
        key = columns.get(sort)
        if key is not None:
            keyed = [(key(each), each) for each in rows]
            known = [each for each in keyed if each[0] is not None]
            known.sort(key=itemgetter(0), reverse=is_descending)
            rows = [each for _, each in known] + [each for at, each in keyed if at is None]
        elif is_descending:
            rows = rows[::-1]
        at = self.integer("at", 0, 0, max(0, len(rows) - 1))
        return Rows(
            rows=list(rows[at : at + ROWS]),
            total=len(rows),
            at=at,
            sort=sort,
            is_descending=is_descending,
            filter=wanted,
            before=max(0, at - ROWS) if at else None,
            after=at + ROWS if at + ROWS < len(rows) else None,
        )


class Page(NamedTuple):
    """A page for people, and the same for programs as JSON."""

    path: str
    title: str
    function: Callable[[Asked], Any]
    """Returns the view model. A plain function runs on a thread and may block."""
    template: str
    section: str | None = None
    """The part of the navigation that names the page; None: no part."""
    role: Role = Role.VIEW


class PageAction(NamedTuple):
    """A change, by POST: checked for its role, its verb, its confirmation, and a request of the same origin."""

    path: str
    title: str
    function: Callable[[Asked], Done]
    verb: str
    role: Role = Role.OPERATE


class Block(msgspec.Struct, kw_only=True):
    """A text of several lines, as a stack."""

    title: str
    text: str


class Done(msgspec.Struct, kw_only=True):
    """The answer to an action."""

    text: str
    back: str = "/"
    """The path of the page that shows the effect."""
    is_failed: bool = False
    is_begun: bool = False
    """It goes on: the page of `back` shows how far it is."""
    lines: Sequence[str] = ()
    blocks: Sequence[Block] = ()
