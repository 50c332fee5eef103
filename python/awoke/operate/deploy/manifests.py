"""Fills the files that run an app: a Kubernetes Deployment, a KEDA ScaledObject, a systemd unit, a Dockerfile.

Their numbers come from the settings of the app: a stop must be given the time that the app needs for it.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from string import Template
from typing import NamedTuple

from awoke.operate.deploy.expressions import seconds_of_work
from awoke.settings import RunSettings, Settings

AFTER_DEADLINE_S = 10.0
"""A stop may take this much longer than its deadline: shutdown functions, producers and clients have a second each."""
PORT = 9404
FILES = Path(__file__).with_name("files")
"""Templates of `string.Template`, and the alert rules, which are printed as they are."""


class DeployedApp(NamedTuple):
    """An app that is to be deployed."""

    target: str
    """As in shop:app."""
    name: str
    settings: Settings
    run: RunSettings

    @property
    def id(self) -> str:
        """Its name for Kubernetes: lower case, digits and hyphens."""
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")[:50] or "app"

    @property
    def port(self) -> int:
        """The port of metrics and health."""
        return self.settings.metrics_port or PORT

    @property
    def workers(self) -> int:
        """The threads of all its processes that run handlers."""
        return (self.settings.workers or 4) * (self.run.nodes or 1)

    @property
    def stop_s(self) -> int:
        """The time that a stop may take, in seconds."""
        of_app = self.settings.shutdown_timeout_s
        longest_s = of_app if self.run.nodes is None else max(of_app, self.run.drain_timeout_s)
        return math.ceil(longest_s + AFTER_DEADLINE_S)

    @property
    def start_s(self) -> int:
        """The time that a start may take, in seconds."""
        return math.ceil(self.settings.startup_timeout_s + 60)


def kubernetes(app: DeployedApp, image: str, replicas: int = 2) -> str:
    """Returns a Deployment and a PodDisruptionBudget.

    Neither lag nor absent brokers end a process: `/live` asks only whether it answers.
    """
    failures = math.ceil(app.start_s / 2)
    return filled("kubernetes.yaml", app, image=image, replicas=replicas, start_failures=failures)


class Scale(NamedTuple):
    """The bounds of scaling."""

    prometheus: str
    """The address of Prometheus."""
    work_s: float = 60.0
    """The work that may wait for each worker, in seconds."""
    replicas_max: int = 10
    """At most the number of partitions: more have nothing to do."""


def keda(app: DeployedApp, scale: Scale) -> str:
    """Returns a ScaledObject that scales by seconds of work: a thousand quick messages need no process more.

    It never scales to 0: the lag is measured by the processes themselves.
    """
    query = f"sum({seconds_of_work('30m')}) or vector(0)"
    given = scale._asdict() | {"work_s": f"{scale.work_s:g}", "threshold": f"{scale.work_s * app.workers:g}"}
    return filled("keda.yaml", app, query=query, **given)


def systemd(app: DeployedApp, folder: str) -> str:
    """Returns a unit for an app in this folder, whose virtual environment is `.venv` there."""
    reload = "ExecReload=/bin/kill -HUP $MAINPID\n" if app.run.nodes is not None else ""
    return filled("systemd.service", app, folder=folder, reload=reload)


def dockerfile(app: DeployedApp, python: str = "3.13") -> str:
    """Returns a Dockerfile: a slim image without build tools, whose process is not root and gets the signals itself."""
    return filled("Dockerfile", app, python=python)


def alerts() -> str:
    """Returns the alert rules for Prometheus."""
    return (FILES / "alerts.yaml").read_text()


def filled(file: str, app: DeployedApp, **values: object) -> str:
    """Returns a file whose places are filled with these values and those of an app."""
    of_app = {name: getattr(app, name) for name in ("target", "name", "id", "port", "workers", "stop_s")}
    text = (FILES / file).read_text()
    return Template(text).substitute(of_app, after_deadline_s=f"{AFTER_DEADLINE_S:g}", **values)
