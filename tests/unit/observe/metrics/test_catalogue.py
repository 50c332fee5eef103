"""The catalogue of metrics: names by Prometheus's conventions, and the page that lists them."""

from __future__ import annotations

import re

from awoke.observe.events.catalogue import counters
from awoke.observe.metrics import catalogue
from awoke.observe.metrics.recorder import Recorder
from tests.support.python_syntax import REPOSITORY
from tests.unit.observe.metrics.test_recorder import Fake


def test_every_metric_of_the_catalogue_is_made_and_documented() -> None:
    recorder = Recorder()
    recorder.attach(Fake())
    text = recorder.text().decode()
    for metric in catalogue.CATALOGUE:
        assert f"# HELP {metric.name}" in text, metric.name
    assert catalogue.as_markdown() in (REPOSITORY / "docs" / "metrics.md").read_text()


def test_names_say_kind_and_unit_and_come_once() -> None:
    names = [metric.name for metric in catalogue.CATALOGUE]
    assert len(names) == len(set(names))
    for metric in catalogue.CATALOGUE:
        assert re.fullmatch(r"awoke_[a-z_]+", metric.name)
        assert metric.name.endswith("_total") == (metric.kind == "counter"), metric.name
        assert metric.kind != "histogram" or metric.name.endswith("_seconds"), metric.name
        assert "in seconds" not in metric.text or metric.name.endswith("_seconds"), metric.name


def test_the_counters_of_events_are_metrics_with_their_labels() -> None:
    found = {metric.name: (metric.labels, metric.text) for metric in catalogue.CATALOGUE}
    assert all(found[each.name] == (tuple(each.labels), each.text) for each in counters())
