"""How many examples Hypothesis tries: few and always the same in the suite, more and random ones in a soak."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

EXAMPLES = int(os.environ.get("AWOKE_FUZZ_EXAMPLES", "0"))
"""`AWOKE_FUZZ_EXAMPLES=1000000 pytest tests/security -k fuzz` runs for hours."""


def fuzzed(examples: int) -> settings:
    """Returns the settings of a test that tries this many examples in the suite."""
    return settings(
        max_examples=EXAMPLES or examples,
        derandomize=not EXAMPLES,
        database=None,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )
