"""The Grafana dashboard: a panel for each metric, on a grid."""

from __future__ import annotations

from awoke.observe.metrics import catalogue
from awoke.observe.metrics.catalogue import CATALOGUE
from awoke.operate.deploy.dashboard import dashboard, panel_of

PANELS = [each for each in dashboard()["panels"] if each["type"] != "row"]


def test_each_kind_of_metric_has_its_expression() -> None:
    ((rate, _),) = panel_of(catalogue.MESSAGES).graphs
    assert rate == "sum by (topic, handler) (rate(awoke_messages_total[$__rate_interval]))"
    half, most = panel_of(catalogue.JOB_WAIT).graphs
    assert half[0].startswith("histogram_quantile(0.5, sum by (le, topic) (rate(awoke_job_wait_seconds_bucket[")
    assert most[1] == "p99 {{topic}}"
    ((lag, _),) = panel_of(catalogue.LAG).graphs
    assert lag == "sum by (group, topic) (awoke_lag_messages)"
    ((healthy, _),) = panel_of(catalogue.HEALTHY).graphs
    assert healthy == "min by () (awoke_healthy)"


def test_every_metric_has_a_panel_in_the_dashboard() -> None:
    assert [each.name for each in CATALOGUE if each.name not in {panel["title"] for panel in PANELS}] == []


def test_panels_do_not_overlap() -> None:
    cells = [
        (x, y)
        for panel in dashboard()["panels"]
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
