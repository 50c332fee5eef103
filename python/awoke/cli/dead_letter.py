"""`awoke dead-letter`: shows messages that went to a dead letter topic, and sends them again."""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

import awoke
from awoke.cli import letters
from awoke.cli.app_types import KeepSecrets, OfApp, check_keeps, check_with_app, shown_by, types_of
from awoke.cli.commands import Section, group
from awoke.cli.consent import Consent, asks_first
from awoke.cli.letters import Error, FailedFrom, FailedTo, Handler, Key, Topic
from awoke.cli.options import AsJson, BootstrapServers, Kafka, pairs
from awoke.cli.output import KEPT, ask, say, say_json, show_table, with_count
from awoke.cli.registry_options import RegistryUrl
from awoke.cli.tables import plural, time_of
from awoke.cli.tail import Decode, decoded, decoded_document, decoded_topic, document, line_of, say_notes
from awoke.errors import AwokeError, ConfigError
from awoke.operate.dead_letters.letters import Filter, Letter, Place, letter_of, place_of
from awoke.operate.dead_letters.replays import ReplayMemory, Sender
from awoke.operate.dead_letters.targets import ReplayTargets, shortened, summary
from awoke.text.printable import printable

if TYPE_CHECKING:
    from awoke.console.explorer.parts import DecodedParts
    from awoke.payloads.decoding.registered import ShownPart

app = group("dead-letter", "Show messages that went to a dead letter topic, and send them again.", Section.MESSAGES)

ERROR_WIDTH = 60
FAILURES_SHOWN_MAX = 10
JSON_INTEGER_MAX = 1 << 63

FOREIGN_MAX = 10
"""The most foreign topics that an operator is asked about. More are refused together."""


@app.command("list")
def list_letters(
    topic: Topic,
    limit: Annotated[int | None, typer.Option(min=1, help="Show at most this many.")] = None,
    full: Annotated[bool, typer.Option("--full", help="Show complete errors, and the keys.")] = False,
    begin: FailedFrom = None,
    end: FailedTo = None,
    error: Error = None,
    handler: Handler = None,
    key: Key = None,
    as_json: AsJson = False,
    of_app: OfApp = None,
    keep_secrets: KeepSecrets = False,
    bootstrap_servers: BootstrapServers = None,
    kafka: Kafka = None,
) -> None:
    """List the messages of a dead letter topic: the topic that each came from, and its error."""
    check_keeps(of_app, keep_secrets)
    wanted = Filter.of(begin, end, error, handler, key)
    strangers = Counter[str]()
    rows: list[tuple[str, ...]] = []
    shown = 0
    with contextlib.nullcontext() if of_app is None else types_of(of_app, keep_secrets) as parts:
        note = partial(strangers.update, ["messages"])
        for letter in letters.read(topic, bootstrap_servers, kafka, note, is_counted=not as_json):
            if shown == limit:
                break
            if not wanted.wants(letter):
                continue
            shown += 1
            if as_json:
                say_json(as_document(letter, document_by(parts, letter)))
            else:
                rows.append(cells(letter, full, parts))
    if not as_json:
        show_table(("at", "from", "group", "attempts", "failed at", "error"), rows)
    others = strangers["messages"]
    said = f"; {plural(others, 'other message')} skipped" if others else ""
    say(f"{plural(shown, 'dead letter')}{said}", err=as_json)


@app.command("summary")
def summarize(
    topic: Topic,
    by: Annotated[
        str, typer.Option(metavar="FIELD", help="The field to count by: error, text, topic, handler or key.")
    ] = "error",
    begin: FailedFrom = None,
    end: FailedTo = None,
    error: Error = None,
    handler: Handler = None,
    key: Key = None,
    as_json: AsJson = False,
    of_app: OfApp = None,
    keep_secrets: KeepSecrets = False,
    bootstrap_servers: BootstrapServers = None,
    kafka: Kafka = None,
) -> None:
    """Count the dead letters of a topic by their errors, with the first and the last time, and an example."""
    if by not in GROUPS:
        raise ConfigError(f"--by takes one of {', '.join(GROUPS)}, not {by!r}", "--by")
    check_keeps(of_app, keep_secrets)
    wanted = Filter.of(begin, end, error, handler, key)
    groups: dict[str, Group] = {}
    for letter in letters.read(topic, bootstrap_servers, kafka):
        if wanted.wants(letter):
            groups.setdefault(GROUPS[by](letter), Group(letter)).add(letter)
    if of_app is not None and by == "key":
        with types_of(of_app, keep_secrets) as parts:
            named = [(key_by(parts, each.example) or "", each) for each in groups.values()]
    else:
        named = list(groups.items())
    found = sorted(named, key=lambda item: (-item[1].count, item[0]))
    if as_json:
        for name, group in found:
            say_json(msgspec.json.encode({by: name, **group.as_dict()}).decode())
        return
    rows = [(str(group.count), in_column(name), *group.cells()) for name, group in found]
    show_table(("count", by, "first", "last", "at", "example"), rows)


@app.command("show")
def show(
    topic: Topic,
    place: letters.Place,
    as_json: AsJson = False,
    of_app: OfApp = None,
    keep_secrets: KeepSecrets = False,
    decode: Decode = False,
    registry_url: RegistryUrl = None,
    bootstrap_servers: BootstrapServers = None,
    kafka: Kafka = None,
) -> None:
    """Show one dead letter completely."""
    check_with_app(of_app, decode, registry_url)
    check_keeps(of_app, keep_secrets)
    wanted = place_of(place)
    with (
        decoded_topic(topic, registry_url) if decode else contextlib.nullcontext(topic) as named,
        contextlib.nullcontext() if of_app is None else types_of(of_app, keep_secrets) as parts,
    ):
        for message in letters.messages(named, bootstrap_servers, kafka):
            if (message.partition, message.offset) == wanted:
                letter = letter_of(message)
                by_schema = decoded(message, "key", "value") if decode else []
                show_letter(letter, as_json, shown_by(parts, message, "key", "value") if parts else by_schema)
                return
    raise AwokeError(f"{topic}[{wanted[0]}] has no message at offset {wanted[1]}")


@app.command("replay")
@asks_first("sends dead letters again, to the topics that they name")
def replay(
    topic: Topic,
    consent: Consent,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="PARTITION:OFFSET", help="Send only this one; may be repeated."),
    ] = None,
    target: Annotated[
        str | None, typer.Option("--topic", help="Send to this topic, not to the one that each came from.")
    ] = None,
    of_app: Annotated[
        str | None, typer.Option("--app", metavar="MODULE:APP", help="The app whose routes read the topics.")
    ] = None,
    yes_to: Annotated[
        list[str] | None,
        typer.Option("--yes-topic", metavar="TOPIC", help="Do not ask about this topic; may be repeated."),
    ] = None,
    begin: FailedFrom = None,
    end: FailedTo = None,
    error: Error = None,
    handler: Handler = None,
    key: Key = None,
    again: Annotated[bool, typer.Option("--again", help="Also send those that were sent before.")] = False,
    rate: Annotated[float | None, typer.Option(min=0.001, help="Send at most this many per second.")] = None,
    stop_at_failure: Annotated[
        bool, typer.Option("--stop-at-failure", help="Send one after the other, and stop at the first refused one.")
    ] = False,
    group: Annotated[
        str | None, typer.Option(help="The consumer group that stores what was sent (awoke-replay.TOPIC).")
    ] = None,
    bootstrap_servers: BootstrapServers = None,
    kafka: Kafka = None,
) -> None:
    """Send dead letters again, as they were, to the topics that they came from.

    They stay in the dead letter topic. Each is sent once, unless --again is given. A letter may be forged, so you are
    asked about each topic that is named neither by --topic, nor by --yes-topic, nor by a route of --app. --yes answers
    for the others.
    """
    targets = Targets(target, of_app, yes_to or ())
    places = [place_of(place) for place in only or ()]
    wanted = Filter.of(begin, end, error, handler, key)
    found = read_all(topic, places, bootstrap_servers, kafka)
    if not found:
        raise AwokeError(f"{topic} holds no dead letters")
    with ReplayMemory(topic, group or f"awoke-replay.{topic}", bootstrap_servers, pairs(kafka, "--kafka")) as memory:
        memory.load(found, partitions_of(topic, bootstrap_servers, kafka), partial(say, err=True))
        chosen = [each for each in found if wanted.wants(each) and (not places or each.place in places)]
        fresh = [each for each in chosen if again or not memory.has_sent(each)]
        before = left_out(len(chosen) - len(fresh))
        if consent.is_dry_run or not fresh:
            say(f"dry run: would send {counted(targets, fresh)}{before}")
            say_foreign(targets, fresh)
            return
        confirmed = confirm_all(targets, fresh, before, consent)
        memory.check_room(confirmed)
        properties = pairs(kafka, "--kafka")
        properties |= awoke.dead_letter.producer_properties(properties)
        with awoke.Producer(bootstrap_servers, kafka=properties) as producer:
            sender = Sender(producer, memory, targets, rate)
            sender.send(confirmed, stop_at_failure)
    report(topic, sender, targets, confirmed)


def read_all(
    topic: str, places: Iterable[Place], bootstrap_servers: str | None, kafka: list[str] | None
) -> list[Letter]:
    """Returns all dead letters of a topic.

    Raises:
        AwokeError: One of these places has no message, or one that is no dead letter.
    """
    missing = set(places)
    found = []
    for message in with_count(letters.messages(topic, bootstrap_servers, kafka), "message"):
        place = (message.partition, message.offset)
        if place in missing:
            letter_of(message)
            missing.discard(place)
        if awoke.dead_letter.origin(message) is not None:
            found.append(letter_of(message))
    if missing:
        partition, offset = min(missing)
        raise AwokeError(f"{topic}[{partition}] has no message at offset {offset}")
    return found


def partitions_of(topic: str, bootstrap_servers: str | None, kafka: list[str] | None) -> list[int]:
    """Returns the partitions of a topic."""
    with awoke.Admin(bootstrap_servers, kafka=pairs(kafka, "--kafka")) as admin:
        return [each.partition for each in admin.describe_topic(topic).partitions]


def confirm_all(targets: Targets, fresh: list[Letter], before: str, consent: Consent) -> list[Letter]:
    """Asks for confirmation: for each foreign topic, and for the others together; returns the confirmed letters.

    Raises:
        ConfigError: There is no terminal to ask at.
    """
    confirmed = targets.confirmed(fresh)
    known = [each for each in confirmed if not targets.is_foreign(targets.of(each))]
    if known and not targets.is_granted(known):
        consent.to(f"send {counted(targets, known)}{before}")
    return confirmed


def say_foreign(targets: Targets, fresh: list[Letter]) -> None:
    """Prints the topics that a replay would ask about."""
    foreign = targets.foreign(fresh)
    if foreign:
        say(f"it would ask about foreign topics: {summary(foreign)}")


def counted(targets: Targets, letters_: Iterable[Letter]) -> str:
    """Returns the number of messages for each topic, as text."""
    return summary(Counter(map(targets.of, letters_)))


def left_out(count: int) -> str:
    """Returns the note about messages that were sent before."""
    return f" ({count} sent before are left out: --again sends them)" if count else ""


def report(topic: str, sender: Sender, targets: Targets, letters_: list[Letter]) -> None:
    """Prints the messages that were sent, and those that were not.

    Raises:
        AwokeError: Some were refused.
    """
    failed = {each.place for each, _ in sender.failures}
    done = [each for each in letters_[: sender.sent + len(failed)] if each.place not in failed]
    say(f"sent {counted(targets, done)}; the dead letters are still in {topic}")
    if not sender.failures:
        return
    for letter, error in sender.failures[:FAILURES_SHOWN_MAX]:
        say(f"{letter.place[0]}:{letter.place[1]} was not sent: {error}", err=True)
    rest = len(letters_) - len(done)
    raise AwokeError(f"{rest} of {len(letters_)} dead letters were not sent; the next replay sends them")


class Group:
    """Dead letters that are counted together."""

    def __init__(self, example: Letter) -> None:
        self.count, self.example = 0, example
        self.first_ms = self.last_ms = example.origin.failed_at_ms

    def add(self, letter: Letter) -> None:
        """Counts a letter."""
        self.count += 1
        self.first_ms = min(self.first_ms, letter.origin.failed_at_ms)
        self.last_ms = max(self.last_ms, letter.origin.failed_at_ms)

    def cells(self) -> tuple[str, ...]:
        """Returns the times and the example for a table."""
        partition, offset = self.example.place
        return time_of(self.first_ms), time_of(self.last_ms), f"{partition}:{offset}", in_column(self.example.error)

    def as_dict(self) -> dict[str, Any]:
        """Returns the group for a program."""
        partition, offset = self.example.place
        place = f"{partition}:{offset}"
        times = {"first_ms": in_range(self.first_ms), "last_ms": in_range(self.last_ms)}
        return {"count": self.count, **times, "at": place, "example": self.example.error}


GROUPS: dict[str, Callable[[Letter], str]] = {
    "error": lambda letter: letter.origin.error_type,
    "text": lambda letter: letter.error,
    "topic": lambda letter: letter.origin.topic,
    "handler": lambda letter: letter.origin.handler,
    "key": lambda letter: (letter.message.key or b"").decode(errors="backslashreplace"),
}


def document_by(parts: DecodedParts | None, letter: Letter) -> str | None:
    """Returns the message of a letter as JSON, decoded by an app's types; None without an app."""
    return None if parts is None else decoded_document(letter.message, *shown_by(parts, letter.message, "key", "value"))


def key_by(parts: DecodedParts | None, letter: Letter) -> str | None:
    """Returns the key of a letter as one line, decoded by an app's types if there is an app; None without a key."""
    if letter.message.raw_key is None:
        return None
    return printable(letter.message.key) if parts is None else line_of(shown_by(parts, letter.message, "key")[0])


def cells(letter: Letter, full: bool, parts: DecodedParts | None = None) -> tuple[str, ...]:
    """Returns a dead letter as a row, with its key by an app's types if `parts` has them."""
    origin = letter.origin
    error = printable(letter.error) if full else in_column(letter.error)
    shown = key_by(parts, letter) if full else None
    key = "" if shown is None else f" key {shown}"
    return (
        "{}:{}".format(*letter.place),
        f"{printable(origin.topic)}[{origin.partition}] {origin.offset}{key}",
        printable(origin.group),
        str(origin.attempts),
        time_of(origin.failed_at_ms),
        error,
    )


def in_column(words: str) -> str:
    """Returns text shortened to the width of a table's column."""
    shown = printable(words[: ERROR_WIDTH + 1])
    return shown if len(shown) <= ERROR_WIDTH else shown[: ERROR_WIDTH - 1] + "…"


def show_letter(letter: Letter, as_json: bool, parts: Sequence[ShownPart]) -> None:
    """Prints a dead letter, with its key and value decoded where `parts` has them."""
    if as_json:
        say_json(as_document(letter, decoded_document(letter.message, *parts) if parts else None))
        return
    say_notes(letter.message, *parts)
    key, value = [line_of(parts[0]), block_of(parts[1])] if parts else [None, None]
    say(whole(letter, key, value), keep=KEPT)


def block_of(value: ShownPart) -> str:
    """Returns a value for people: indented JSON if it was decoded."""
    return printable(value.raw, KEPT) if value.decoded is None else msgspec.json.format(value.decoded.json, indent=2)


def as_document(letter: Letter, parts: str | None = None) -> str:
    """Returns a dead letter as JSON; `parts` is its message as JSON, by default not decoded."""
    origin = {name: in_range(value) for name, value in letter.origin._asdict().items()}
    origin["failed_at"] = time_of(letter.origin.failed_at_ms)
    # Its values stay as they are, however deep they are nested.
    found = msgspec.json.decode(parts or document(letter.message), type=dict[str, msgspec.Raw])
    return msgspec.json.encode({**found, "origin": origin}).decode()


def in_range(value: Any) -> Any:
    """Returns a number that is too large for JSON as text: a header may have any number."""
    return str(value) if isinstance(value, int) and not -JSON_INTEGER_MAX <= value < JSON_INTEGER_MAX else value


def whole(letter: Letter, key: str | None = None, value: str | None = None) -> str:
    """Returns a dead letter with all its parts, for people; `key` and `value` are by default not decoded."""
    own = [(name, value) for name, value in letter.message.headers if name not in awoke.dead_letter.HEADERS]
    parts = {**letter.origin._asdict(), "failed_at": time_of(letter.origin.failed_at_ms)}
    if letter.origin.value_bytes is None:
        del parts["value_bytes"], parts["value_sha256"]
    lines = [f"{name}: {block(value)}" for name, value in parts.items()]
    headers = [f"  {printable(name)}: {printable(value)}" for name, value in own]
    key = printable(letter.message.key) if key is None else key
    value = printable(letter.message.raw_value, KEPT) if value is None else value
    return "\n".join([*lines, f"key: {key}", "headers:", *headers, "value:", value])


def block(value: object) -> str:
    """Returns text of several lines, indented so that no line looks like the next field."""
    return printable(str(value), KEPT).replace("\n", "\n    ")


class Targets(ReplayTargets):
    """The target topics of one replay, and the questions about them."""

    def __init__(self, to: str | None, app: str | None, granted: Collection[str]) -> None:
        super().__init__(to, (lambda topic: False) if app is None else reads_of(app), granted)
        self._app = app

    def is_granted(self, letters: Sequence[Letter]) -> bool:
        """Returns whether the operator has named every target with `--yes-topic`."""
        return {self.of(each) for each in letters} <= self._granted

    def confirmed(self, letters: Sequence[Letter]) -> list[Letter]:
        """Asks about each foreign topic; returns the letters whose topic is known or confirmed.

        Raises:
            ConfigError: There is no terminal to ask at, or there are too many foreign topics.
        """
        foreign = self.foreign(letters)
        if not foreign:
            return list(letters)
        if len(foreign) > FOREIGN_MAX or not sys.stdin.isatty():
            raise ConfigError(self._refusal(foreign), "--yes-topic")
        refused = {topic for topic, count in foreign.most_common() if not ask(self._question(topic, count))}
        return [each for each in letters if self.of(each) not in refused]

    def _who(self) -> str:
        return "only the letters name it" if self._app is None else f"no route of {self._app} reads it"

    def _question(self, topic: str, count: int) -> str:
        return f"Send {count} to {shortened(topic)}? It is a foreign topic: {self._who()}."

    def _refusal(self, foreign: Counter[str]) -> str:
        return (
            f"foreign topics: {summary(foreign)}; any client that may write dead letters can name them. "
            "Pass --app MODULE:APP, whose routes' topics are known, --yes-topic TOPIC for each, or --topic TOPIC for "
            "all; or answer at a terminal"
        )


def reads_of(app: str) -> Callable[[str], bool]:
    """Returns what tells whether an app's routes read a topic, by its name or by a pattern."""
    from awoke.app.application import find_app  # Imported here, because other commands need no app.

    found = find_app(app)
    return lambda topic: topic in found.read_topics or any(each.matches(topic) for each in found.patterns)
