"""Dead letters: in groups, one by one with their attempts, edited, and sent again after a plan."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from starlette.responses import RedirectResponse, Response

from awoke.console.access import TIMEOUT_S
from awoke.console.letters import listing, replaying
from awoke.console.letters.runs import Run
from awoke.console.letters.views import LetterGroup, LetterRow, LetterView, ReplayPlan, ReplayRun
from awoke.console.web.grants import Role
from awoke.console.web.page import ActionRefused, Asked, Done, NoSuchPage, Page, PageAction, Rows, Wrong
from awoke.console.web.recorded import recorded, recorder, text_of, who_of
from awoke.console.web.rendering import segment
from awoke.errors import AwokeError, ConfigError, UnknownTopic
from awoke.operate.dead_letters.letters import Filter, Letter
from awoke.text.durations import duration
from awoke.text.secrets import HIDDEN

WORDS = ("dead", "dlq", "dlt")
"""A topic with one of these in its name is offered; any other can be named."""
REPLAY_S_MAX = 12 * 3_600.0
"""The longest replay of a console: its end is forgotten with the console."""
WAIT_S = 30.0
"""The longest wait of a request for the end of a replay."""
CANCELLED_WITHIN_S = 10.0
"""The longest wait of an operator who cancels a replay for its end."""
COUNT = 100


class LetterTopicsPage(msgspec.Struct, kw_only=True):
    """Topics that look as if they had dead letters."""

    topics: list[str]


class LettersPage(msgspec.Struct, kw_only=True):
    """The dead letters of a topic."""

    topic: str
    fingerprint: str
    groups: list[LetterGroup]
    letters: Rows[LetterRow]
    others: int
    is_partial: bool
    replays: list[ReplayRun]
    """Those that this console makes or has made, the newest first."""


class LetterPage(msgspec.Struct, kw_only=True):
    """One dead letter."""

    topic: str
    letter: LetterView
    is_hidden: bool


class PlanPage(msgspec.Struct, kw_only=True):
    """A replay before it is made."""

    topic: str
    fields: dict[str, str]
    """The fields of the operator's form, which the next form repeats."""
    plan: ReplayPlan


class ReplayPage(msgspec.Struct, kw_only=True):
    """The progress of a replay."""

    topic: str
    run: ReplayRun


def letter_topics(asked: Asked) -> LetterTopicsPage:
    """Returns the dead letter topics of the app, as its code or its processes name them, and topics named like one."""
    handlers = [each for report in asked.snapshot().live.values() for each in report.handlers]
    with asked.brokers.admin() as admin:
        names = [each.name for each in admin.topics(TIMEOUT_S)]
    own = {*asked.code.dead_letters, *(each.dead_letter for each in handlers)}
    found = [each for each in sorted(names) if each in own or any(word in each.lower() for word in WORDS)]
    return LetterTopicsPage(topics=found)


def letters(asked: Asked) -> LettersPage:
    """Returns the dead letters of a topic, in groups and one by one."""
    topic = asked.path["topic"]
    mark, error = asked.query.get("fingerprint", ""), asked.query.get("error") or None
    view = listing.list_letters(topic, _read(asked), Filter(error=error), mark)
    columns = {
        "failed": lambda each: each.failed_at_ms,
        "error": lambda each: each.error_type,
        "topic": lambda each: each.topic,
        "handler": lambda each: each.handler,
    }
    rows = asked.rows(
        view.letters,
        "failed",
        columns,
        is_descending=True,
        text=lambda each: f"{each.error_type} {each.error_text} {each.topic} {each.handler}",
    )
    return LettersPage(
        topic=topic,
        fingerprint=mark,
        groups=view.groups,
        letters=rows,
        others=view.others,
        is_partial=view.is_partial,
        replays=asked.replays.of(topic),
    )


def letter(asked: Asked) -> LetterPage:
    """Returns one dead letter with its attempts."""
    read = _read(asked)
    found = _find(asked, read.letters)
    with asked.parts() as parts:
        view = listing.show_letter(found, read.letters, asked.snapshot().errors, parts)
    return LetterPage(topic=asked.path["topic"], letter=view, is_hidden=not asked.grant.payloads)


def plan(asked: Asked) -> PlanPage | Response:
    """Returns what a replay would send; it sends nothing. While one runs, it leads to that: a plan would disturb it."""
    if not asked.grant.allows("replay"):
        raise ActionRefused("this console does not allow 'replay' (--allow)")
    wanted = wanted_of(asked)
    running = [each for each in asked.replays.of(wanted.topic) if not each.is_over]
    if running:
        return RedirectResponse(asked.prefix + path_of(running[0]), 303)
    with _replay(asked, wanted) as replay:
        found = replay.plan()
    names = ("place", "fingerprint", "error", "handler", "to", "granted", "count", "rate", "again")
    fields = {name: value for name in names if (value := text_of(asked, name)) is not None}
    return PlanPage(topic=wanted.topic, fields=fields, plan=found)


def replay(asked: Asked) -> Done:
    """Starts the replay that was planned; it stops at the first letter that is refused."""
    wanted, digest = wanted_of(asked), text_of(asked, "digest") or ""
    arguments = {
        "topic": wanted.topic,
        "fingerprint": wanted.fingerprint or None,
        "place": text_of(asked, "place"),
        "to": wanted.to,
        "granted": text_of(asked, "granted"),
        "count": wanted.count,
        "again": wanted.again,
        "digest": digest,
    }
    made, record = _replay(asked, wanted), recorder(asked, "replay", arguments)
    try:
        run = asked.replays.start(wanted.topic, who_of(asked), made, digest, record)
    except AwokeError as error:
        return Done(text=str(error), back=f"/letters/{segment(wanted.topic)}", is_failed=True)
    return Done(text="the replay has begun", back=path_of(run.view), is_begun=True)


def path_of(run: ReplayRun) -> str:
    """Returns the path of the page of a replay."""
    return f"/letters/{segment(run.topic)}/replays/{run.id}"


async def replay_run(asked: Asked) -> ReplayPage:
    """Returns how far a replay is; with `wait=1`, at its end or after 30 s."""
    found = _run(asked)
    if asked.query.get("wait"):
        await asyncio.wait([asyncio.wrap_future(found.ended)], timeout=WAIT_S)
    return ReplayPage(topic=asked.path["topic"], run=found.view)


def cancel_replay(asked: Asked) -> Done:
    """Ends a replay after the letter that is being sent, and says how many were sent."""
    found = _run(asked)

    def act() -> str:
        if not found.cancel():
            raise AwokeError(f"this replay has ended already: {found.view.text}")
        if found.wait(CANCELLED_WITHIN_S):
            return found.view.text
        now = found.view
        return f"the replay ends after the letter that is being sent; {now.sent} of {now.total} letters were sent"

    arguments = {"topic": found.view.topic, "replay": found.view.id}
    return recorded(asked, "cancel_replay", arguments, act, path_of(found.view))


def edit(asked: Asked) -> Done:
    """Sends a letter with the value, the key or the headers that an operator has edited."""
    if not asked.grant.payloads:
        raise ActionRefused("the contents of messages are hidden from you, so you can't edit them")
    topic, brokers = asked.path["topic"], asked.brokers
    found = _find(asked, _read(asked).letters)
    to = text_of(asked, "to") or found.origin.topic
    edited = edited_of(asked)
    if isinstance(edited.value, str) and HIDDEN in edited.value and asked.secrets().has(topic):
        raise Wrong(f"the value has a masked field: {HIDDEN} would be sent in the place of its secret")

    def act() -> str:
        partition, offset = replaying.send_edited(
            brokers, found, edited, to, asked.code.check_of(to), asked.code.formats
        )
        return f"the edited letter is offset {offset} of {to}[{partition}]"

    at = "{}:{}".format(*found.place)
    arguments = {"topic": topic, "place": at, "to": to}
    return recorded(asked, "edit_letter", arguments, act, f"/letters/{segment(topic)}/{at.replace(':', '/')}")


def try_it(asked: Asked) -> Done:
    """Runs a letter through the app's present code; the messages that it sends are shown, and sent nowhere."""
    tries, topic = asked.code.try_letter, asked.path["topic"]
    if tries is None:
        raise Wrong("this console has not the code of the app: open it as awoke console MODULE:APP")
    found, lines = _find(asked, _read(asked).letters), list[str]()

    def act() -> str:
        trial = tries(found)
        with asked.parts() as parts:
            for each in trial.outputs:
                content = parts.content(each.topic, "value", each.data, each.headers)
                lines.append(
                    f"would send to {each.topic}: {content.text or f'{content.form}, {content.size_bytes} bytes'}"
                )
        if trial.is_handled:
            return f"the present code handles {at}; nothing was sent"
        why = "" if trial.error is None else f": {type(trial.error).__name__}: {trial.error}"
        raise TrialFailed(f"the letter {at} is {trial.state} after {trial.attempts} attempts{why}")

    at = "{}:{}".format(*found.place)
    arguments = {"topic": topic, "place": at}
    done = recorded(asked, "try_letter", arguments, act, f"/letters/{segment(topic)}/{at.replace(':', '/')}")
    done.lines = lines
    return done


class TrialFailed(AwokeError):
    """The present code fails, too."""


def edited_of(asked: Asked) -> replaying.Edited:
    """Returns the parts that the form has. An empty value is one; only `tombstone` makes none.

    Raises:
        Wrong: A header has no colon.
    """
    given: dict[str, Any] = {}
    if asked.form.get("tombstone"):
        given["value"] = None
    elif "value" in asked.form:
        given["value"] = asked.form["value"].replace("\r\n", "\n")
    if asked.form.get("key"):
        given["key"] = asked.form["key"]
    if asked.form.get("headers"):
        lines = [line for line in asked.form["headers"].splitlines() if line.strip()]
        if not all(":" in line for line in lines):
            raise Wrong("a header is NAME: VALUE, one a line")
        given["headers"] = {name.strip(): value.strip() for name, _, value in (each.partition(":") for each in lines)}
    return replaying.Edited(**given)


def wanted_of(asked: Asked) -> replaying.ReplayWanted:
    """Returns the replay that the query or the form names.

    Raises:
        Wrong: A number or a place is none, or the replay would take too long.
    """
    count = asked.integer("count", COUNT, 1, replaying.COUNT_MAX)
    rate = text_of(asked, "rate")
    try:
        rate_per_s = None if rate is None else float(rate[:20])
        places = [place_of(word) for word in (text_of(asked, "place") or "").split(",") if word]
    except ValueError:
        raise Wrong("rate is a number of letters per second, and a place PARTITION:OFFSET") from None
    if rate_per_s is not None and not count <= rate_per_s * REPLAY_S_MAX:
        text = f"{count} letters at this rate take longer than {duration(REPLAY_S_MAX)}: send fewer at a time"
        raise Wrong(f"{text}, or use awoke dead-letter replay --rate")
    return replaying.ReplayWanted(
        topic=asked.path["topic"],
        places=places,
        fingerprint=text_of(asked, "fingerprint") or "",
        error=text_of(asked, "error"),
        handler=text_of(asked, "handler"),
        to=text_of(asked, "to"),
        granted=[word for word in (text_of(asked, "granted") or "").split(",") if word],
        count=count,
        rate_per_s=rate_per_s,
        again=bool(text_of(asked, "again")),
    )


def place_of(word: str) -> tuple[int, int]:
    """Returns the place of a word such as `0:42`.

    Raises:
        ValueError: It is none.
    """
    partition, _, offset = word.strip().partition(":")
    return int(partition[:18]), int(offset[:19])


def _replay(asked: Asked, wanted: replaying.ReplayWanted) -> replaying.Replay:
    """Returns a replay. The app reads the topics of its routes, and of its groups, as the brokers know them."""
    view = asked.snapshot().view
    read = {each.topic for group in view.groups for each in group.partitions}
    try:
        return replaying.Replay(asked.brokers, wanted, lambda topic: topic in read or asked.code.reads(topic))
    except ConfigError as error:
        raise Wrong(str(error)) from None


def _run(asked: Asked) -> Run:
    found = asked.replays.find(asked.path["topic"], asked.path["run"])
    if found is None:
        text = "this console has made no such replay, or has forgotten it"
        raise NoSuchPage(f"{text}: a console that starts again knows none, and the audit has what was sent")
    return found


def _read(asked: Asked) -> listing.Read:
    try:
        return listing.read_letters(asked.brokers, asked.path["topic"])
    except UnknownTopic as error:
        raise NoSuchPage(str(error)) from None


def _find(asked: Asked, letters: list[Letter]) -> Letter:
    try:
        place = place_of(f"{asked.path['partition']}:{asked.path['offset']}")
    except ValueError:
        raise Wrong("partition and offset are numbers") from None
    found = listing.find(letters, place)
    if found is None:
        raise NoSuchPage(f"{asked.path['topic']} has no dead letter at {place[0]}:{place[1]}")
    return found


PAGES = [
    Page("/letters", "Dead letters", letter_topics, "letter_topics.html", section="Work"),
    Page("/letters/{topic}", "Dead letters of a topic", letters, "letters.html"),
    Page("/letters/{topic}/plan", "Plan of a replay", plan, "replay_plan.html", role=Role.OPERATE),
    Page("/letters/{topic}/replays/{run}", "Replay", replay_run, "replay.html"),
    Page("/letters/{topic}/{partition}/{offset}", "Dead letter", letter, "letter.html"),
]
ACTIONS = [
    PageAction("/letters/{topic}/{partition}/{offset}/try", "Try", try_it, verb="try_letter", role=Role.ADMIN),
    PageAction("/letters/{topic}/replay", "Send dead letters again", replay, verb="replay"),
    PageAction("/letters/{topic}/replays/{run}/cancel", "Cancel a replay", cancel_replay, verb="replay"),
    PageAction(
        "/letters/{topic}/{partition}/{offset}/edit", "Edit and send", edit, verb="edit_letter", role=Role.ADMIN
    ),
]
