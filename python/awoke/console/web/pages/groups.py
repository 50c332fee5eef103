"""The consumer groups of the cluster: members, lag, and resets of offsets that are previewed first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from awoke.console.clusters import groups as found
from awoke.console.clusters import resets
from awoke.console.clusters.views import GroupPlace, GroupRow, MemberView, ResetPreview
from awoke.console.views import GroupPartition
from awoke.console.web.grants import Role
from awoke.console.web.page import Asked, Done, NoSuchPage, Page, PageAction, Rows, Wrong
from awoke.console.web.recorded import recorded, text_of
from awoke.console.web.rendering import segment
from awoke.errors import ConfigError, UnknownGroup, UnknownTopic

ALL = 1_000_000
ALL_LOGS_MAX = 500
"""Of a group with more partitions, the logs of those that are shown are asked."""
COLUMNS: dict[str, Callable[[GroupPlace], Any]] = {
    "partition": lambda each: (each.topic, each.partition),
    "lag": lambda each: each.lag,
    "committed": lambda each: each.committed,
}


class GroupsPage(msgspec.Struct, kw_only=True):
    """All groups."""

    groups: Rows[GroupRow]


class GroupPage(msgspec.Struct, kw_only=True):
    """One group."""

    name: str
    state: str
    kind: str
    protocol: str
    coordinator: str | None
    lag: int | None
    """None where the partitions are too many to be asked at once."""
    members: list[MemberView]
    places: Rows[GroupPlace]


class ResetPage(msgspec.Struct, kw_only=True):
    """A reset before it is made."""

    group: str
    to: str
    value: str
    topic: str
    preview: ResetPreview


def groups(asked: Asked) -> GroupsPage:
    """Returns all groups."""
    view = asked.ask("groups", lambda admin: found.list_groups(admin, limit=ALL))
    columns = {"group": lambda each: each.name, "state": lambda each: each.state, "kind": lambda each: each.kind}
    return GroupsPage(groups=asked.rows(view.groups, "group", columns, text=lambda each: each.name))


def group(asked: Asked) -> GroupPage:
    """Returns one group."""
    name = asked.path["group"]
    # The logs of all partitions of a large group take long: they are asked where the table is sorted by the lag.
    most = ALL if asked.query.get("sort") == "lag" else ALL_LOGS_MAX
    known = known_of(asked, name)
    lag = None if known is None else sum(each.lag or 0 for each in known.values())
    committed = (
        None if known is None or len(known) <= most else {place: each.committed for place, each in known.items()}
    )
    try:
        view = asked.ask(("group", name, most), lambda admin: found.show_group(admin, name, most, committed))
    except UnknownGroup as error:
        raise NoSuchPage(str(error)) from None
    places = asked.rows(view.places, "partition", COLUMNS, text=lambda each: each.topic)
    if len(view.places) > most:
        rows = places.rows
        key = ("logs", name, tuple((each.topic, each.partition) for each in rows))
        places.rows = asked.ask(key, lambda admin: found.logs_of(admin, rows))
    return GroupPage(
        name=view.name,
        state=view.state,
        kind=view.kind,
        protocol=view.protocol,
        coordinator=view.coordinator,
        lag=view.lag if view.lag is not None else lag,
        members=view.members,
        places=places,
    )


def known_of(asked: Asked, name: str) -> dict[tuple[str, int], GroupPartition] | None:
    """Returns the partitions of a group of the app, as the brokers told of them just now; None of another group."""
    partitions = next((each.partitions for each in asked.snapshot().view.groups if each.group == name), None)
    return None if partitions is None else {(each.topic, each.partition): each for each in partitions}


def preview(asked: Asked) -> ResetPage:
    """Returns what a reset would change; it changes nothing."""
    name, to, value, topic = _named(asked)
    try:
        target = resets.target_of(to, value)
        with asked.brokers.admin() as admin:
            plan = resets.preview_reset(admin, name, target, [topic] if topic else None)
    except ConfigError as error:
        raise Wrong(str(error)) from None
    except (UnknownGroup, UnknownTopic) as error:
        raise NoSuchPage(str(error)) from None
    return ResetPage(group=name, to=to, value=value, topic=topic, preview=plan)


def reset(asked: Asked) -> Done:
    """Makes the reset that was previewed."""
    name, to, value, topic = _named(asked)
    digest = text_of(asked, "digest") or ""
    try:
        target = resets.target_of(to, value)
    except ConfigError as error:
        raise Wrong(str(error)) from None

    def act() -> str:
        with asked.brokers.admin() as admin:
            made = resets.reset(admin, name, target, [topic] if topic else None, digest=digest)
        count = len(made.changes)
        return f"{count} offsets of group {name} were moved: {made.again} are read again, {made.skipped} are skipped"

    arguments = {"group": name, "to": to, "value": value, "topic": topic or None, "digest": digest}
    return recorded(asked, "reset_offsets", arguments, act, f"/groups/{segment(name)}")


def _named(asked: Asked) -> tuple[str, str, str, str]:
    to, value, topic = (text_of(asked, name) or "" for name in ("to", "value", "topic"))
    return asked.path["group"], to, value, topic


PAGES = [
    Page("/groups", "Groups", groups, "groups.html", section="Kafka"),
    Page("/groups/{group:path}/reset", "Reset of offsets", preview, "reset.html"),
    Page("/groups/{group:path}", "Group", group, "group.html"),
]
ACTIONS = [
    PageAction("/groups/{group:path}/reset", "Reset offsets", reset, verb="reset_offsets", role=Role.ADMIN),
]
