"""The consumer groups of the cluster: members, lag, and resets of offsets that are previewed first."""

from __future__ import annotations

import msgspec

from awoke.console.access import Brokers
from awoke.console.clusters import groups as found
from awoke.console.clusters import resets
from awoke.console.clusters.views import GroupPlace, GroupRow, MemberView, ResetPreview
from awoke.console.web.grants import Role
from awoke.console.web.page import Action, Asked, Done, Missing, Page, Rows, Wrong
from awoke.console.web.recorded import recorded, text_of
from awoke.console.web.rendering import segment
from awoke.errors import ConfigError, UnknownGroup, UnknownTopic

ALL = 1_000_000


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
    lag: int
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
    with Brokers(asked.settings).admin() as admin:
        view = found.list_groups(admin, limit=ALL)
    columns = {"group": lambda each: each.name, "state": lambda each: each.state, "kind": lambda each: each.kind}
    return GroupsPage(groups=asked.rows(view.groups, "group", columns, text=lambda each: each.name))


def group(asked: Asked) -> GroupPage:
    """Returns one group."""
    with Brokers(asked.settings).admin() as admin:
        try:
            view = found.show_group(admin, asked.path["group"])
        except UnknownGroup as error:
            raise Missing(str(error)) from None
    columns = {
        "partition": lambda each: (each.topic, each.partition),
        "lag": lambda each: each.lag,
        "committed": lambda each: each.committed,
    }
    return GroupPage(
        name=view.name,
        state=view.state,
        kind=view.kind,
        protocol=view.protocol,
        coordinator=view.coordinator,
        lag=view.lag,
        members=view.members,
        places=asked.rows(view.places, "partition", columns, text=lambda each: each.topic),
    )


def preview(asked: Asked) -> ResetPage:
    """Returns what a reset would change; it changes nothing."""
    name, to, value, topic = _named(asked)
    try:
        target = resets.target_of(to, value)
        with Brokers(asked.settings).admin() as admin:
            plan = resets.preview_reset(admin, name, target, [topic] if topic else None)
    except ConfigError as error:
        raise Wrong(str(error)) from None
    except (UnknownGroup, UnknownTopic) as error:
        raise Missing(str(error)) from None
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
        with Brokers(asked.settings).admin() as admin:
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
    Action("/groups/{group:path}/reset", "Reset offsets", reset, verb="reset_offsets", role=Role.ADMIN),
]
