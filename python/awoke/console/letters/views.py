"""The view models of dead letters."""

from __future__ import annotations

import msgspec

from awoke.console.explorer.views import MessageView


class LetterRow(msgspec.Struct, kw_only=True):
    """A dead letter in a list. Numbers of its headers may be of any size: they are texts where JSON has no number."""

    partition: int
    offset: int
    """Its place in the dead letter topic."""
    fingerprint: str
    topic: str
    original_partition: int | str
    original_offset: int | str
    group: str
    handler: str
    attempts: int | str
    failed_at_ms: int
    error_type: str
    error_text: str
    key_hash: str | None


class LetterGroup(msgspec.Struct, kw_only=True):
    """The dead letters of one fingerprint: one error class of one handler, with texts that differ in details only."""

    fingerprint: str
    count: int
    error_type: str
    handler: str
    topics: list[str]
    """The topics that they came from, at most ten."""
    first_ms: int
    last_ms: int
    example: LetterRow
    """The last one."""


class LettersView(msgspec.Struct, kw_only=True):
    """The dead letters of a topic."""

    topic: str
    letters: list[LetterRow]
    """The last to fail first."""
    groups: list[LetterGroup]
    """The most frequent first."""
    others: int
    """Messages of the topic that are no dead letters."""
    is_partial: bool
    """True if the topic has more messages than were read: the last ones were."""


class AttemptView(msgspec.Struct, kw_only=True):
    """An attempt at the message of a dead letter."""

    at_ms: int
    attempt: int | None
    node: str | None
    error_type: str
    error_text: str
    fingerprint: str
    traceback: str | None
    changed: list[str]
    """The parts that differ from the attempt before: `error_type`, `error_text`, `traceback`, `node`."""
    place: str
    """`errors`, or the place of the dead letter that tells of it."""


class LetterView(msgspec.Struct, kw_only=True):
    """One dead letter."""

    row: LetterRow
    message: MessageView
    attempts: list[AttemptView]
    """The oldest first. Error records are kept for some days, so early ones may be missing."""
    lost_value_bytes: int | None
    """The size of the value where the letter was sent without it."""


class TargetCount(msgspec.Struct, kw_only=True):
    """A topic to which dead letters would be sent."""

    topic: str
    count: int
    is_foreign: bool
    """True if only the letters name it, which may be forged: it has to be named by the operator."""


class LetterRefused(msgspec.Struct, kw_only=True):
    """A dead letter that can't be sent, or was not."""

    partition: int
    offset: int
    reason: str


class ReplayPlan(msgspec.Struct, kw_only=True):
    """A replay before it is made: nothing is sent."""

    topic: str
    count: int
    """The letters that would be sent."""
    targets: list[TargetCount]
    refused: list[LetterRefused]
    sent_before: int
    """Selected letters that were sent before, and are left out."""
    digest: str
    """The same for the same letters and targets: who confirms a plan names it."""


class ReplayResult(msgspec.Struct, kw_only=True):
    """A replay that was made."""

    topic: str
    sent: int
    refused: list[LetterRefused]
    left: int
    """Letters of the plan that were not tried, because of a failure or because the replay was cancelled."""
    is_cancelled: bool = False


class ReplayRun(msgspec.Struct, kw_only=True):
    """A replay that this console makes, or has made."""

    id: str
    topic: str
    who: str
    state: str
    """`reading` (which letters there are, and which were sent), `sending`, `stopping` (it was cancelled, and a letter
    is still being sent); at its end `done`, `cancelled` or `failed`."""
    sent: int = 0
    total: int | None = None
    """The letters of its plan; None until they are read."""
    began_ms: int
    ended_ms: int | None = None
    text: str = ""
    """The answer at its end."""

    @property
    def is_over(self) -> bool:
        """Tells whether it has ended."""
        return self.ended_ms is not None
