"""The alert rules, as Prometheus itself judges them (`promtool`, from Debian's package `prometheus`)."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from awoke.operate.deploy.manifests import alerts

PROMTOOL = shutil.which("promtool")
needs_promtool = pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed")

FIRING: dict[str, dict[str, str]] = {
    "AwokeUnhealthy": {'awoke_healthy{instance="a"}': "0x60"},
    "AwokeBehind": {
        'awoke_lag_messages{topic="t",partition="0"}': "1000x60",
        'awoke_job_run_seconds_sum{topic="t",handler="h"}': "0+60x60",
        'awoke_messages_total{topic="t",handler="h"}': "0+60x60",
    },
    "AwokeNothingAssigned": {'awoke_assigned_partitions{group="g"}': "0x60"},
    "AwokeStuckPartitions": {'awoke_stuck_partitions{group="g",topic="t"}': "1x60"},
    "AwokeFailingMessages": {'awoke_failing_messages{group="g",topic="t"}': "1x60"},
    "AwokeOldestMessage": {'awoke_commit_gap_seconds{group="g",topic="t",partition="0"}': "1000x60"},
    "AwokeDeadLetters": {'awoke_dead_letters_total{topic="t",handler="h"}': "_x58 1x1"},
    "AwokeDeadLettersFail": {'awoke_dead_letter_failures_total{topic="t",handler="h"}': "_x58 1x1"},
    "AwokeSkippedMessages": {'awoke_skipped_messages_total{topic="t",handler="h"}': "0x57 1x3"},
    "AwokeOverdueJobs": {'awoke_overdue_jobs_total{reason="slow"}': "_x58 1x1"},
    "AwokeCommitsFail": {'awoke_commit_failures_total{code="c"}': "0+1x60"},
    "AwokePartitionsLost": {'awoke_rebalances_total{change="lost"}': "0+1x60"},
    "AwokeNoBroker": {'awoke_connected_brokers{client="c",instance="a"}': "0x60"},
    "AwokeLogWentBack": {'awoke_rewinds_total{topic="t"}': "_x58 1x1"},
    "AwokeThreadsLeak": {'awoke_leaked_threads_total{owner="o"}': "_x58 1x1"},
    "AwokeRpcFails": {'awoke_rpc_failures_total{method="m"}': "_x58 1x1"},
    "AwokeRegistryAway": {'awoke_registry_errors_total{instance="a"}': "0+1x60"},
}
"""For each alert the series, with a value a minute, by which it fires after an hour."""

HEALTHY = {
    'awoke_healthy{instance="a"}': "1x60",
    'awoke_lag_messages{topic="t",partition="0"}': "100000x60",
    'awoke_job_run_seconds_sum{topic="t",handler="h"}': "0+0.06x60",
    'awoke_messages_total{topic="t",handler="h"}': "0+6000x60",
    'awoke_assigned_partitions{group="g",instance="a"}': "0x60",
    'awoke_assigned_partitions{group="g",instance="b"}': "3x60",
    'awoke_stuck_partitions{group="g",topic="t"}': "0x60",
    'awoke_failing_messages{group="g",topic="t"}': "0x50 1x10",
    'awoke_dead_letters_total{topic="t",handler="h"}': "7x60",
    'awoke_connected_brokers{client="c",instance="a"}': "3x60",
    'awoke_rebalances_total{change="lost"}': "2x60",
    'awoke_registry_errors_total{instance="a"}': "0x60",
}
"""A service that works: many quick messages wait, a message has failed for a while, and dead letters are old."""


def test_each_alert_has_a_state_in_which_it_fires() -> None:
    assert sorted(FIRING) == sorted(rule["alert"] for rule in yaml.safe_load(alerts())["groups"][0]["rules"])


def checked(folder: Path, series: dict[str, str], firing: list[str]) -> subprocess.CompletedProcess[str]:
    """Has promtool judge the rules after an hour of these series."""
    assert PROMTOOL is not None
    (folder / "rules.yaml").write_text(alerts())
    query = 'count by (alertname) (ALERTS{alertstate="firing"})'
    expected = [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in firing]
    case: dict[str, Any] = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [{"expr": query, "eval_time": "60m", "exp_samples": expected}],
    }
    tests = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [case]}
    (folder / "tests.json").write_text(json.dumps(tests))
    return subprocess.run(
        [PROMTOOL, "test", "rules", "tests.json"], cwd=folder, capture_output=True, text=True, check=False
    )


@needs_promtool
@pytest.mark.parametrize("name", sorted(FIRING))
def test_an_alert_fires_in_its_state(tmp_path: Path, name: str) -> None:
    done = checked(tmp_path, FIRING[name], [name])
    assert done.returncode == 0, done.stdout + done.stderr


@needs_promtool
def test_no_alert_fires_while_the_service_works(tmp_path: Path) -> None:
    done = checked(tmp_path, HEALTHY, [])
    assert done.returncode == 0, done.stdout + done.stderr


@needs_promtool
def test_promtool_finds_an_alert_that_does_not_fire(tmp_path: Path) -> None:
    assert checked(tmp_path, HEALTHY, ["AwokeUnhealthy"]).returncode != 0
