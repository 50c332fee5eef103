"""Previews and makes resets of a group's committed offsets: what would be read again, and what would be skipped.

The operator confirms a preview by its digest. Where the offsets have moved meanwhile, the digest is another one, and
nothing is changed.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Collection, Sequence
from datetime import UTC, datetime

from awoke.admin import Admin, OffsetChange, ResetTo, Shift
from awoke.console.access import TIMEOUT_S
from awoke.console.clusters.views import ResetChange, ResetPreview
from awoke.errors import AwokeError, ConfigError, UnknownGroup

TARGETS = ("earliest", "latest", "time", "offset", "shift")
"""The words for a target; the last three need a value."""


def target_of(kind: str, value: str = "") -> ResetTo:
    """Returns the target that a form names: a time is an ISO time with its zone, or else in UTC.

    Raises:
        ConfigError: There is no such target, or its value is wrong.
    """
    if kind in ("earliest", "latest"):
        return "earliest" if kind == "earliest" else "latest"
    if kind == "time":
        return _time_of(value)
    if kind not in TARGETS:
        raise ConfigError(f"to is one of {', '.join(TARGETS)}, not {kind!r}", "to")
    try:
        number = int(value)
    except ValueError:
        raise ConfigError(f"{kind} needs a whole number, not {value!r}", "value") from None
    return Shift(number) if kind == "shift" else number


def _time_of(value: str) -> datetime:
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        raise ConfigError(f"time is an ISO time, as in 2026-01-31T12:00+00:00, not {value!r}", "value") from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def preview_reset(admin: Admin, group: str, to: ResetTo, topics: Collection[str] | None = None) -> ResetPreview:
    """Returns the changes of a reset, and makes none. Blocks.

    Raises:
        ConfigError: The target is wrong. UnknownGroup: No topics are given, and the group has no offsets. UnknownTopic.
    """
    return _preview(admin, group, to, admin.plan_reset(group, topics, to=to, timeout_s=TIMEOUT_S))


def reset(admin: Admin, group: str, to: ResetTo, topics: Collection[str] | None = None, *, digest: str) -> ResetPreview:
    """Makes the reset that a preview with this digest has shown, and returns it. Blocks.

    Raises:
        AwokeError: The changes are no longer those of the preview. GroupNotEmpty: The group has members. Nothing was
        changed.
    """
    plan = admin.plan_reset(group, topics, to=to, timeout_s=TIMEOUT_S)
    found = _preview(admin, group, to, plan)
    if found.digest != digest:
        raise AwokeError(f"the offsets of group {group!r} have moved since the preview; look at the new one")
    admin.reset_offsets([each for each in plan if each.before != each.after], TIMEOUT_S)
    return found


def _preview(admin: Admin, group: str, to: ResetTo, plan: Sequence[OffsetChange]) -> ResetPreview:
    changes = [change_of(each) for each in plan if each.before != each.after]
    return ResetPreview(
        group=group,
        target=text_of(to),
        changes=changes,
        unchanged=len(plan) - len(changes),
        again=sum(each.again for each in changes),
        skipped=sum(each.skipped for each in changes),
        refused_because=_refusal(admin, group),
        digest=digest_of(group, changes),
    )


def change_of(change: OffsetChange) -> ResetChange:
    """Returns a change with the offsets that are read again, or never.

    A group without a committed offset has read nothing that is known: it skips what lies before the new offset.
    """
    before = change.start if change.before is None else min(max(change.before, change.start), change.end)
    return ResetChange(
        topic=change.topic,
        partition=change.partition,
        before=change.before,
        after=change.after,
        start=change.start,
        end=change.end,
        is_clamped=change.is_clamped,
        again=max(0, before - change.after),
        skipped=max(0, change.after - before),
    )


def digest_of(group: str, changes: Sequence[ResetChange]) -> str:
    """Returns the same text for the same changes of a group. The ends of the log are not in it: they move."""
    lines = [f"{each.topic}:{each.partition}:{each.before}:{each.after}" for each in changes]
    return hashlib.blake2b("\n".join([group, *lines]).encode(), digest_size=8).hexdigest()


def text_of(to: ResetTo) -> str:
    """Returns a target as text."""
    if isinstance(to, Shift):
        return f"{abs(to.by)} offsets {'back' if to.by < 0 else 'ahead'}"
    if isinstance(to, datetime):
        return to.isoformat(" ", "seconds")
    return str(to) if isinstance(to, str) else f"offset {to}"


def _refusal(admin: Admin, group: str) -> str | None:
    with contextlib.suppress(UnknownGroup):  # Its first offsets make the group.
        count = len(admin.describe_group(group, TIMEOUT_S).members)
        if count:
            return f"the group has {count} member{'s' if count > 1 else ''}: stop them first"
    return None
