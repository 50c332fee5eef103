"""The extensions of an app: those that its settings ask for, in the order of their start."""

from __future__ import annotations

from typing import Any

import pytest

import awoke

ALWAYS = ["ProcessCommands", "OverdueWatch"]


@pytest.mark.parametrize(
    ("settings", "options", "names"),
    [
        ({}, {}, ALWAYS),
        ({"console": True}, {}, ["Reporter", *ALWAYS]),
        ({"metrics_port": 0}, {}, ["ServedMetrics", *ALWAYS]),
        ({"metrics_otel": True, "console": True}, {}, ["ServedMetrics", "Reporter", *ALWAYS]),
        ({}, {"collects_metrics": True}, ["ServedMetrics", *ALWAYS]),
    ],
)
def test_settings_ask_for_extensions(settings: dict[str, Any], options: dict[str, Any], names: list[str]) -> None:
    runner = awoke.AppRunner(awoke.App("shop", **settings), **options)
    assert [type(each).__name__ for each in runner.extensions] == names
