"""`awoke deploy`: each file is printed as other programs read it, with the app's settings."""

from __future__ import annotations

import json

import pytest
import yaml
from typer.testing import CliRunner

import awoke
from awoke.cli.main import command_line


@pytest.fixture(autouse=True)
def app(monkeypatch: pytest.MonkeyPatch) -> None:
    app = awoke.App("shop", shutdown_timeout_s=100.0, metrics_port=9_999)
    monkeypatch.setattr("awoke.app.application.find_app", lambda target: app)


def output(*words: str) -> str:
    done = CliRunner().invoke(command_line(["deploy"]), ["deploy", *words])
    assert done.exit_code == 0, done.output
    return done.output


def test_the_dashboard_and_the_alerts_are_json() -> None:
    assert json.loads(output("grafana"))["uid"] == "awoke"
    assert yaml.safe_load(output("alerts"))["groups"][0]["name"] == "awoke"


def test_the_manifests_have_the_settings_of_the_app() -> None:
    first, _ = yaml.safe_load_all(output("kubernetes", "shop:app", "--image", "shop:1", "--replicas", "4"))
    assert first["spec"]["replicas"] == 4
    assert first["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == 110
    scaled = yaml.safe_load(output("keda", "shop:app", "--prometheus", "http://p", "--work-s", "10"))
    assert scaled["spec"]["triggers"][0]["metadata"]["threshold"] == "40"
    assert "TimeoutStopSec=110" in output("systemd", "shop:app", "--folder", "/opt/shop")
    assert "FROM python:3.14-slim" in output("dockerfile", "shop:app", "--python", "3.14")
