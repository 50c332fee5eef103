"""Writes durations for people. Each text of awoke that tells how long something takes or has taken uses it."""

from __future__ import annotations

STEPS = ((84_600, 86_400, "d"), (3_570, 3_600, "h"), (59.5, 60, "min"), (0.9995, 1, "s"))
"""The least seconds that a unit writes, its length in seconds, and its name: 59.5 s are a minute, and never 60 s."""


def duration(seconds: float) -> str:
    """Returns a duration with its largest fitting unit, as in `420 ms`, `2.5 s`, `59 min`, `1 h`; negative is none."""
    for least_s, length_s, unit in STEPS:
        if seconds >= least_s:
            value = seconds / length_s
            return f"{value:.0f} {unit}" if value >= 9.95 else f"{value:.1f}".removesuffix(".0") + f" {unit}"
    return f"{max(0.0, seconds) * 1_000:.0f} ms"
