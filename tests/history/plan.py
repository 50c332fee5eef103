"""The faults of the nemesis in their order: a function of the seed alone."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import NamedTuple

from tests.history.settings import FAULTS, Run

WEIGHTS = {"unclean": 0.5, "recreate": 0.5, "renew": 0.5, "bounce": 0.5, "crash": 0.5, "full": 0.5}
WEIGHTS |= {"coordinator": 0.7, "lead": 0.7, "reassign": 0.5, "continue": 2.0}
"""The weight of a fault in the choice, where it is not 1. Those of brokers take long; a frozen member does no work."""
CLOCK_STEPS_S = (-3_600.0, -30.0, -5.0, 0.0, 20.0)
"""Where the clock of a member is set to, from the system's."""
PAUSE_S = (0.3, 5.0)


class Fault(NamedTuple):
    """One fault, and how long to wait before it."""

    name: str
    which: int
    """Which member, or which of the brokers that may be disturbed, counted round."""
    offset_s: float
    """Where a clock is set to."""
    pause_s: float


def plan(run: Run) -> Iterator[Fault]:
    """The faults of a run, without end."""
    chance = random.Random(run.seed)
    names = [name for name in FAULTS if name in run.faults]
    weights = [WEIGHTS.get(name, 1.0) for name in names]
    while names:
        (name,) = chance.choices(names, weights)
        yield Fault(name, chance.randrange(60), chance.choice(CLOCK_STEPS_S), chance.uniform(*PAUSE_S))
