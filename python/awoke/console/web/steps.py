"""The steps of a start, as far as the console knows them: what it waits for, and since when."""

from __future__ import annotations

import enum

import msgspec


class StepState(enum.Enum):
    """The state of a step."""

    WAITING = "waiting"
    DONE = "done"
    FAILED = "failed"


class Step(msgspec.Struct, kw_only=True, frozen=True):
    """A step of the start."""

    name: str
    state: StepState
    text: str
    """The reason of the wait, or the result."""
    since_ms: int
    """When it began; times are milliseconds since 1970."""
    ended_ms: int | None = None
    """None of one that waits."""


class Steps:
    """The steps of one start, in the order in which they began. One thread."""

    def __init__(self) -> None:
        self._steps: dict[str, Step] = {}

    def note(self, name: str, state: StepState, text: str, at_ms: int) -> bool:
        """Keeps the state of a step, and returns False where it has not changed.

        A step that has ended and waits again begins anew, and is the last one then.
        """
        before = self._steps.get(name)
        if before is not None and (before.state, before.text) == (state, text):
            return False
        is_new = before is None or (before.ended_ms is not None and state is StepState.WAITING)
        since_ms = at_ms if before is None or is_new else before.since_ms
        ended_ms = None if state is StepState.WAITING else at_ms
        if is_new:
            self._steps.pop(name, None)
        self._steps[name] = Step(name=name, state=state, text=text, since_ms=since_ms, ended_ms=ended_ms)
        return True

    def all(self) -> list[Step]:
        """Returns the steps."""
        return list(self._steps.values())
