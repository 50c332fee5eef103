"""The view models of dead letters."""

from __future__ import annotations

import msgspec

from awoke.console.letters.views import ReplayPlan, TargetCount


def test_a_plan_is_json() -> None:
    targets = [TargetCount(topic="orders", count=2, is_foreign=True)]
    plan = ReplayPlan(topic="dead", count=2, targets=targets, refused=[], sent_before=1, digest="d")
    assert msgspec.json.decode(msgspec.json.encode(plan), type=ReplayPlan) == plan
