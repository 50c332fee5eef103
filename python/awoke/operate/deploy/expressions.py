"""PromQL over the catalogue of metrics. A name that the catalogue lacks can't be written."""

from __future__ import annotations

from awoke.observe.metrics import catalogue
from awoke.observe.metrics.catalogue import Metric

RATE = "$__rate_interval"
"""Grafana's own interval: long enough for a rate at every zoom."""


def rate(metric: Metric, by: tuple[str, ...], interval: str) -> str:
    """Returns the sum of a counter's rates per second."""
    return f"sum by ({', '.join(by)}) (rate({metric.name}[{interval}]))"


def quantile(share: float, metric: Metric, by: tuple[str, ...], interval: str) -> str:
    """Returns a quantile of a histogram."""
    labels = ", ".join(("le", *by))
    return f"histogram_quantile({share}, sum by ({labels}) (rate({metric.name}_bucket[{interval}])))"


def seconds_of_work(interval: str) -> str:
    """Returns, for each topic, how long one worker would need for the messages that wait.

    It is the lag times the mean time for a message. A topic of which no message was processed within the interval has
    no value.
    """
    run, messages = f"{catalogue.JOB_RUN.name}_sum", catalogue.MESSAGES.name
    mean = f"sum by (topic) (rate({run}[{interval}])) / (sum by (topic) (rate({messages}[{interval}])) > 0)"
    return f"sum by (topic) ({catalogue.LAG.name}) * ({mean})"
