"""`awoke deploy`: prints the files with which an app is run and watched."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from awoke.cli.commands import Section, group
from awoke.cli.options import Target
from awoke.cli.output import say

if TYPE_CHECKING:
    from awoke.operate.deploy.manifests import DeployedApp

app = group("deploy", "Print files that run and watch an app: dashboard, alerts, manifests.", Section.TOOLS)


@app.command("grafana")
def grafana() -> None:
    """Print the Grafana dashboard of all metrics, as JSON."""
    from awoke.operate.deploy.dashboard import dashboard

    _print(json.dumps(dashboard(), indent=2))


@app.command("alerts")
def alerts() -> None:
    """Print the alert rules for Prometheus, as YAML."""
    from awoke.operate.deploy import manifests

    _print(manifests.alerts())


@app.command("kubernetes")
def kubernetes(
    target: Target,
    image: Annotated[str, typer.Option(help="The image of the app.")],
    replicas: Annotated[int, typer.Option(min=1, help="The number of pods.")] = 2,
) -> None:
    """Print a Deployment whose probes and times fit the app's settings."""
    from awoke.operate.deploy import manifests

    _print(manifests.kubernetes(_found(target), image, replicas))


@app.command("keda")
def keda(
    target: Target,
    prometheus: Annotated[str, typer.Option(metavar="URL", help="The address of Prometheus.")],
    work_s: Annotated[float, typer.Option(min=1, help="The work that may wait for each worker.")] = 60.0,
    replicas_max: Annotated[int, typer.Option(min=1, help="At most the number of partitions.")] = 10,
) -> None:
    """Print a KEDA ScaledObject that scales by seconds of work."""
    from awoke.operate.deploy import manifests

    _print(manifests.keda(_found(target), manifests.Scale(prometheus, work_s, replicas_max)))


@app.command("systemd")
def systemd(
    target: Target, folder: Annotated[str, typer.Option(help="The folder of the app and of its .venv.")]
) -> None:
    """Print a systemd unit."""
    from awoke.operate.deploy import manifests

    _print(manifests.systemd(_found(target), folder))


@app.command("dockerfile")
def dockerfile(
    target: Target, python: Annotated[str, typer.Option(metavar="VERSION", help="The version of Python.")] = "3.13"
) -> None:
    """Print a Dockerfile: slim, and not root."""
    from awoke.operate.deploy import manifests

    _print(manifests.dockerfile(_found(target), python))


def _print(text: str) -> None:
    say(text.rstrip("\n"), keep="\n")


def _found(target: str) -> DeployedApp:
    from awoke.app.application import find_app
    from awoke.operate.deploy import manifests
    from awoke.settings import load_run

    found = find_app(target)
    return manifests.DeployedApp(target, found.name, found.settings, load_run({}).values)
