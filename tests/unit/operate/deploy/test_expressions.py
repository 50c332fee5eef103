"""Every metric and label in every expression of the dashboard, the alerts and the scaling exists."""

from __future__ import annotations

import re

import pytest
import yaml

from awoke.observe.metrics.catalogue import CATALOGUE
from awoke.operate.deploy.dashboard import dashboard
from awoke.operate.deploy.expressions import seconds_of_work
from awoke.operate.deploy.manifests import alerts

SERIES = {
    f"{each.name}{suffix}": {*each.labels, "instance", *(["le"] if suffix == "_bucket" else [])}
    for each in CATALOGUE
    for suffix in (("_bucket", "_sum", "_count") if each.kind == "histogram" else ("",))
}
PANELS = [each for each in dashboard()["panels"] if each["type"] != "row"]
EXPRESSIONS = [
    *(target["expr"] for panel in PANELS for target in panel["targets"]),
    *(rule["expr"] for rule in yaml.safe_load(alerts())["groups"][0]["rules"]),
    seconds_of_work("30m"),
]


def unknown(expression: str) -> list[str]:
    """Returns the series of an expression that no process has, and the labels that a series lacks."""
    names = re.findall(r"awoke_\w+", expression)
    missing = [name for name in names if name not in SERIES]
    grouped = re.findall(r"by \(([^)]*)\) \((?:rate\(|increase\()?(awoke_\w+)", expression)
    for labels, name in grouped:
        wanted = {label.strip() for label in labels.split(",") if label.strip()}
        missing += sorted(wanted - SERIES.get(name, wanted))
    return missing


@pytest.mark.parametrize("expression", sorted(set(EXPRESSIONS)))
def test_all_series_and_labels_of_an_expression_exist(expression: str) -> None:
    assert re.findall(r"awoke_\w+", expression)
    assert unknown(expression) == []


def test_a_wrong_name_or_label_is_found() -> None:
    assert unknown("rate(awoke_messages[5m])") == ["awoke_messages"]
    assert unknown("sum by (topic, owner) (rate(awoke_messages_total[5m]))") == ["owner"]
