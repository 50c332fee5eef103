"""The Grafana dashboard: an overview, then one panel for each metric of the catalogue."""

from __future__ import annotations

from typing import Any, NamedTuple

from awoke.observe.metrics import catalogue
from awoke.observe.metrics.catalogue import CATALOGUE, Metric
from awoke.operate.deploy.expressions import RATE, quantile, rate, seconds_of_work

Json = dict[str, Any]
WIDTH, HEIGHT, COLUMNS = 8, 7, 3
"""Of a panel, in units of Grafana's grid, which has 24 columns."""
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
AREAS = {"awoke_rpc_": "Remote calls", "awoke_registry_": "Schema registry", "awoke_broker_": "Brokers"}
"""The title of a row by how the names of its metrics begin."""
REST = "The app"


class Panel(NamedTuple):
    """A panel with one graph for each pair of expression and legend."""

    title: str
    text: str
    unit: str
    graphs: tuple[tuple[str, str], ...]


OVERVIEW = (
    Panel(
        "Seconds of work that wait",
        "The lag of a topic times the mean time for a message: how long one worker would need.",
        "s",
        ((seconds_of_work("5m"), "{{topic}}"),),
    ),
    Panel(
        "Messages per second",
        catalogue.MESSAGES.text,
        "ops",
        ((rate(catalogue.MESSAGES, ("topic",), RATE), "{{topic}}"),),
    ),
    Panel(
        "Failed jobs per second",
        catalogue.JOBS.text,
        "ops",
        ((f'sum by (topic) (rate({catalogue.JOBS.name}{{outcome="failed"}}[{RATE}]))', "{{topic}}"),),
    ),
)


def dashboard() -> Json:
    """Returns the dashboard as Grafana imports it."""
    rows: dict[str, list[Panel]] = {"Overview": list(OVERVIEW)}
    for metric in CATALOGUE:
        title = next((title for begin, title in AREAS.items() if metric.name.startswith(begin)), REST)
        rows.setdefault(title, []).append(panel_of(metric))
    return {
        "title": "awoke",
        "uid": "awoke",
        "tags": ["awoke", "kafka"],
        "schemaVersion": 39,
        "time": {"from": "now-1h", "to": "now"},
        "refresh": "30s",
        "templating": {"list": [{"name": "datasource", "type": "datasource", "query": "prometheus"}]},
        "panels": _placed(rows),
    }


def panel_of(metric: Metric) -> Panel:
    """Returns the panel of one metric: rates of counters, quantiles of histograms, gauges over all processes."""
    by = tuple(each for each in metric.labels if each != "partition")
    legend = " ".join(f"{{{{{each}}}}}" for each in by) or metric.name
    is_time, is_bytes = "_seconds" in metric.name, "_bytes" in metric.name
    if metric.kind == "counter":
        unit = "s" if is_time else "Bps" if is_bytes else "ops"
        graphs = [(rate(metric, by, RATE), legend)]
    elif metric.kind == "histogram":
        unit = "s"
        graphs = [(quantile(share, metric, by, RATE), f"p{share * 100:g} {legend}") for share in (0.5, 0.99)]
    else:
        unit = "s" if is_time else "bytes" if is_bytes else "short"
        function = "min" if metric is catalogue.HEALTHY else "max" if is_time else "sum"
        graphs = [(f"{function} by ({', '.join(by)}) ({metric.name})", legend)]
    return Panel(metric.name, metric.text, unit, tuple(graphs))


def _placed(rows: dict[str, list[Panel]]) -> list[Json]:
    """Returns the rows and their panels with their places."""
    found: list[Json] = []
    top = 0
    for title, panels in rows.items():
        found.append(
            {
                "id": len(found) + 1,
                "type": "row",
                "title": title,
                "collapsed": False,
                "panels": [],
                "gridPos": {"h": 1, "w": 24, "x": 0, "y": top},
            }
        )
        for number, panel in enumerate(panels):
            place = {
                "h": HEIGHT,
                "w": WIDTH,
                "x": number % COLUMNS * WIDTH,
                "y": top + 1 + number // COLUMNS * HEIGHT,
            }
            found.append({"id": len(found) + 1, "gridPos": place, **_graph(panel)})
        top += 1 + -(-len(panels) // COLUMNS) * HEIGHT
    return found


def _graph(panel: Panel) -> Json:
    targets = [
        {"refId": chr(ord("A") + number), "datasource": DATASOURCE, "expr": expression, "legendFormat": legend}
        for number, (expression, legend) in enumerate(panel.graphs)
    ]
    return {
        "type": "timeseries",
        "title": panel.title,
        "description": panel.text,
        "datasource": DATASOURCE,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": targets,
    }
