"""The state of `awoke top`: which table is shown, sorted and filtered how, and what a key changes. Draws nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from awoke.console.views import AppView, Partition, Report
from awoke.text.durations import duration
from awoke.text.printable import harmless

NONE = "-"
ROWS_MAX = 500
CELL_MAX = 2_000
"""The characters of a cell: a hostile text of a megabyte in each row would make a screen slow."""


class Subject(NamedTuple):
    """The object of a row, which commands act on and which is looked into."""

    node: str | None = None
    group: str | None = None
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None


class Row(NamedTuple):
    """One row: its cells, the values that sort it, and its object."""

    cells: tuple[str, ...]
    sorts: tuple[Any, ...]
    subject: Subject = Subject()


class PendingKey(NamedTuple):
    """A command that waits for its reason."""

    verb: str
    subject: Subject


class TopCommand(NamedTuple):
    """A command to be sent."""

    node: str
    verb: str
    reason: str
    arguments: Mapping[str, Any]


TABLES: Mapping[str, tuple[str, ...]] = {
    "stuck": ("reason", "place", "text"),
    "processes": ("process", "state", "age", "memory", "partitions", "failures"),
    "partitions": ("process", "topic", "partition", "position", "lag", "per s", "in flight", "state"),
    "lanes": ("topic", "partition", "offset", "key", "attempt", "state", "error"),
    "errors": ("count", "handler", "error", "text"),
    "audit": ("age", "who", "command", "place", "result", "reason"),
}
"""The columns of each table."""
ACTIONS = {"p": "pause", "u": "resume", "n": "retry", "x": "skip", "d": "dead_letter", "t": "stop"}
"""The command of each key."""
LOOK_INTO = {"stuck": "lanes", "processes": "partitions", "partitions": "lanes"}
PARTS = {"stop": (), "pause": ("topic", "partition"), "resume": ("topic", "partition"), "retry": ("topic", "partition")}
"""The fields that a command needs of a row; the others need an offset, too."""
HELP = (
    "1-6 table · ↑↓ row · Enter look into · Esc back · s sort · r reverse · / filter · "
    "p pause · u resume · n retry now · x skip · d dead letter · t stop · q quit"
)


class Top:
    """The content of the screen. One thread."""

    def __init__(self, view: AppView) -> None:
        self.view = view
        self.table, self.column, self.is_reversed = "stuck", 0, False
        self.words, self.within = "", Subject()
        self.at = 0
        """The chosen row."""
        self.typing: str | None = None
        """The text that is being typed: a filter, or the reason of `pending`."""
        self.pending: PendingKey | None = None
        self.note = ""
        self.is_over = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the table that is shown."""
        return TABLES[self.table]

    def rows(self) -> list[Row]:
        """Returns the rows that are shown, with control characters made visible."""
        made: Callable[[AppView], Sequence[Row]] = MAKERS[self.table]
        found = [each._replace(cells=tuple(map(shown, each.cells))) for each in made(self.view)]
        words = self.words.lower()
        found = [each for each in found if is_within(each.subject, self.within)]
        found = [each for each in found if words in " ".join(each.cells).lower()]
        if self.column:
            found.sort(key=lambda each: sort_key(each.sorts[self.column - 1]))
        if self.is_reversed:
            found.reverse()
        return found[:ROWS_MAX]

    def press(self, key: str) -> TopCommand | None:
        """Takes a key, or `up`, `down`, `enter`, `escape`, `backspace`; returns the command that it completes."""
        if self.typing is not None:
            return self._type(key)
        self.note = ""
        match key:
            case "q":
                self.is_over = True
            case "up" | "k":
                self.at = max(0, self.at - 1)
            case "down" | "j":
                self.at = min(max(0, len(self.rows()) - 1), self.at + 1)
            case "enter":
                self._look_into()
            case "escape":
                self._show(self.table, Subject())
                self.words = ""
            case "s":
                self.column = (self.column + 1) % (len(self.columns) + 1)
            case "r":
                self.is_reversed = not self.is_reversed
            case "/":
                self.typing = self.words
            case _ if key in "123456":
                self._show(list(TABLES)[int(key) - 1], Subject())
            case _ if key in ACTIONS:
                self._begin(ACTIONS[key])
        return None

    def _show(self, table: str, within: Subject) -> None:
        self.table, self.within, self.column, self.at = table, within, 0, 0

    def _chosen(self) -> Subject | None:
        rows = self.rows()
        return rows[self.at].subject if self.at < len(rows) else None

    def _look_into(self) -> None:
        chosen, into = self._chosen(), LOOK_INTO.get(self.table)
        if chosen is not None and into is not None:
            self._show(into, chosen._replace(offset=None))

    def _begin(self, verb: str) -> None:
        chosen = self._chosen()
        needed = ("node", *PARTS.get(verb, ("topic", "partition", "offset")))
        if chosen is None or any(getattr(chosen, each) is None for each in needed):
            self.note = f"{verb} needs a row with {', '.join(needed)}"
            return
        self.pending, self.typing = PendingKey(verb, chosen), ""

    def _type(self, key: str) -> TopCommand | None:
        assert self.typing is not None
        if key == "escape":
            self.typing = self.pending = None
        elif key == "backspace":
            self.typing = self.typing[:-1]
        elif key == "enter":
            return self._typed(self.typing.strip())
        elif len(key) == 1 and key.isprintable():
            self.typing += key
        return None

    def _typed(self, text: str) -> TopCommand | None:
        pending = self.pending
        if pending is None:
            self.words, self.typing, self.at = text, None, 0
            return None
        if not text:
            self.note = "a command needs a reason; Esc leaves it"
            return None
        self.typing = self.pending = None
        subject, parts = pending.subject, PARTS.get(pending.verb, ("topic", "partition", "offset"))
        arguments = {each: getattr(subject, each) for each in parts}
        if parts and subject.group is not None:
            arguments["group"] = subject.group
        assert subject.node is not None
        return TopCommand(subject.node, pending.verb, text, arguments)


def is_within(subject: Subject, bounds: Subject) -> bool:
    """Returns whether an object belongs to another one."""
    return all(bound in (None, value) for value, bound in zip(subject, bounds, strict=True))


def sort_key(value: Any) -> tuple[bool, bool, Any]:
    """Returns a key that sorts numbers and texts, and what is not known last."""
    return value is None, isinstance(value, str), value if value is not None else 0


def reports_of(view: AppView) -> list[Report]:
    """Returns the reports that this version understands."""
    return [report for each in view.nodes if (report := each.report()) is not None]


class Seconds(float):
    """A duration: sorted as a number, and shown with the unit that fits."""


def text(value: Any) -> str:
    """Returns a value as a cell."""
    if isinstance(value, Seconds):
        return duration(value)
    return NONE if value is None else f"{value:.1f}" if isinstance(value, float) else str(value)


def shown(cell: str) -> str:
    """Returns a cell that is not too long, with control characters made visible."""
    return harmless(cell[:CELL_MAX])


def row(subject: Subject, *values: Any) -> Row:
    """Returns a row whose cells are its values."""
    return Row(tuple(map(text, values)), values, subject)


def stuck_rows(view: AppView) -> list[Row]:
    """Returns a row for each reason, the most severe first."""
    found = []
    for each in view.reasons:
        place = each.node if each.topic is None else f"{each.topic}[{each.partition}]"
        subject = Subject(each.node, each.group, each.topic, each.partition)
        found.append(row(subject, each.kind, place, f"{each.text}; {each.advice}"))
    return found


def process_rows(view: AppView) -> list[Row]:
    """Returns a row for each process."""
    found = []
    for each in view.nodes:
        report, age = each.report(), Seconds(max(0, view.at_ms - each.at_ms) / 1_000)
        if report is None:
            found.append(row(Subject(each.node), each.node, "newer node", age, None, None, None))
            continue
        state = each.state_of(report)
        counts = (report.memory_bytes >> 20, report.partitions_total, report.failures)
        found.append(row(Subject(each.node), each.node, state, age, *counts))
    return found


def state_of(at: Partition) -> str:
    """Returns the state of a partition in a word."""
    for is_so, word in (
        (at.stuck_because is not None, "stuck"),
        (at.paused_because is not None, "paused"),
        (bool(at.failing), "failing"),
        (at.transaction_open_since_ms is not None, "transaction"),
        (not at.has_room, "full"),
        (bool(at.running), "running"),
    ):
        if is_so:
            return word
    return "idle"


def partition_rows(view: AppView) -> list[Row]:
    """Returns a row for each assigned partition of each process."""
    found = []
    for report in reports_of(view):
        for at in report.partitions:
            lag = None if at.end_offset is None or at.position is None else max(0, at.end_offset - at.position)
            subject = Subject(report.node, at.group, at.topic, at.partition)
            numbers = (at.partition, at.position, lag, at.offsets_per_s, at.in_flight)
            found.append(row(subject, report.node, at.topic, *numbers, state_of(at)))
    return found


def lane_rows(view: AppView) -> list[Row]:
    """Returns a row for each lane under way, and each message that waits for its next attempt."""
    found = []
    for report in reports_of(view):
        for at in report.partitions:
            for lane in at.lanes():
                again = "again" if lane.next_ms is None else f"again in {duration((lane.next_ms - view.at_ms) / 1_000)}"
                state = "running" if lane.is_running else again
                state += ", keeps the commit back" if lane.keeps_commit_back else ""
                subject = Subject(report.node, at.group, at.topic, at.partition, lane.offset)
                place = (at.topic, at.partition, lane.offset)
                found.append(row(subject, *place, lane.key_hash, lane.attempt, state, lane.error))
    return found


def error_rows(view: AppView) -> list[Row]:
    """Returns a row for each fingerprint."""
    return [
        row(Subject(), each.count, each.last.handler, each.last.error_type, each.last.error_text)
        for each in view.errors
    ]


def audit_rows(view: AppView) -> list[Row]:
    """Returns a row for each command, the newest first."""
    found = []
    for each in view.audit:
        place = " ".join(str(value) for value in each.arguments.values() if value is not None)
        age = Seconds(max(0, view.at_ms - each.at_ms) / 1_000)
        found.append(row(Subject(each.node), age, each.who, each.verb, place, each.result, each.reason))
    return found


MAKERS: Mapping[str, Callable[[AppView], Sequence[Row]]] = {
    "stuck": stuck_rows,
    "processes": process_rows,
    "partitions": partition_rows,
    "lanes": lane_rows,
    "errors": error_rows,
    "audit": audit_rows,
}
"""The function that makes the rows of each table."""
