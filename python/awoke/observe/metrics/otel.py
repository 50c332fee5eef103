"""The metrics of an app as instruments of OpenTelemetry, under the same names as in Prometheus. Needs the extra `otel`.

The application's meter provider exports them: how often and where to is its own affair.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry

from awoke.errors import ConfigError
from awoke.observe.metrics.catalogue import CATALOGUE, Metric

if TYPE_CHECKING:
    from opentelemetry.metrics import Observation


class Instruments:
    """The instruments of one app. Any thread may call everything here; nothing blocks.

    Raises:
        ConfigError: OpenTelemetry is not installed.
    """

    def __init__(self, registry: CollectorRegistry, buckets: Sequence[float], attributes: Mapping[str, str]) -> None:
        try:
            from opentelemetry import metrics
        except ImportError:
            text = "metrics_otel needs OpenTelemetry: pip install 'awoke[otel]', or set metrics_otel to false"
            raise ConfigError(text, "metrics_otel") from None
        self._registry: CollectorRegistry | None = registry
        self._attributes, self._observation = attributes, metrics.Observation
        self._round: dict[str, list[Observation]] = {}
        """The values that were read together and that no instrument has taken yet."""
        self._histograms: dict[str, metrics.Histogram] = {}
        meter = metrics.get_meter("awoke")
        for each in CATALOGUE:
            if each.kind == "histogram":
                self._histograms[each.name] = meter.create_histogram(
                    each.name, "s", each.text, explicit_bucket_boundaries_advisory=buckets
                )
            else:
                create = meter.create_observable_counter if each.kind == "counter" else meter.create_observable_gauge
                create(each.name, [partial(self._observe, each.name)], description=each.text)

    def record(self, metric: Metric, value: float, labels: Sequence[str]) -> None:
        """Adds a value to a histogram."""
        attributes = {**self._attributes, **dict(zip(metric.labels, labels, strict=True))}
        self._histograms[metric.name].record(value, attributes)

    def close(self) -> None:
        """Ends the observations; OpenTelemetry has no way to remove an instrument."""
        self._registry = None

    def _observe(self, name: str, _: Any) -> list[Observation]:
        """Returns the values of one metric. All are read at once, by the first instrument that finds its own taken."""
        found = self._round.pop(name, None)
        if found is None:
            fresh = self._read()
            found = fresh.pop(name, [])
            self._round = fresh
        return found

    def _read(self) -> dict[str, list[Observation]]:
        registry = self._registry
        found: dict[str, list[Observation]] = {each.name: [] for each in CATALOGUE if each.kind != "histogram"}
        for family in () if registry is None else registry.collect():
            for sample in family.samples:
                if sample.name in found:
                    attributes = {**self._attributes, **sample.labels}
                    found[sample.name].append(self._observation(sample.value, attributes))
        return found
