"""`awoke doctor`: settings with their origin, variables that are none, and the brokers' answer or what to do."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import awoke
from awoke.admin import GroupInfo, MemberInfo
from tests.unit.cli.fakes import FakeAdmin, run


@pytest.fixture
def admin(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeAdmin:
    """Two brokers, seen from a directory without files of settings."""
    monkeypatch.chdir(tmp_path)
    admin = FakeAdmin()
    monkeypatch.setattr(awoke, "Admin", admin)
    return admin


def row(output: str, name: str) -> list[str]:
    """Returns the cells of a setting."""
    (line,) = (line for line in output.splitlines() if line.startswith(f"{name} "))
    return re.split(r" {2,}", line)


def test_brokers_that_answer_are_listed(admin: FakeAdmin) -> None:
    done = run("doctor", "-b", "a:9092")
    assert done.exit_code == 0
    assert "the cluster answers: broker 1 at a:9092\nthe cluster answers: broker 2 at b:9093\n" in done.output


def test_each_setting_is_shown_with_its_value_and_origin(admin: FakeAdmin, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("awoke.toml").write_text("workers = 3\nnodes = 2\n")
    monkeypatch.setenv("AWOKE_GROUP", "billing")
    monkeypatch.setenv("AWOKE_KAFKA_SASL_PASSWORD", "canary")
    output = run("doctor", "-b", "a:9092", "--kafka", "acks=1").output
    assert row(output, "bootstrap_servers") == ["bootstrap_servers", "a:9092", "argument"]
    assert row(output, "workers") == ["workers", "3", "awoke.toml"]
    assert row(output, "nodes") == ["nodes", "2", "awoke.toml"]
    assert row(output, "group") == ["group", "billing", "environment"]
    assert row(output, "instance_id") == ["instance_id", "(not set)", "default"]
    assert row(output, "acks") == ["acks", "1", "argument"]
    assert row(output, "sasl.password") == ["sasl.password", "[secret]", "environment"]
    assert " None " not in output
    assert "canary" not in output


def test_a_variable_that_is_no_setting_is_a_warning(admin: FakeAdmin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWOKE_DEPLOYED_BY", "us")
    done = run("doctor")
    assert "warning: the environment variable AWOKE_DEPLOYED_BY is no setting of awoke's\n" in done.output
    assert done.exit_code == 0


@pytest.mark.parametrize(
    ("error", "is_advised"),
    [
        (awoke.BrokerUnreachable("no broker answered", -195, "_TRANSPORT"), True),
        (awoke.OperationTimeout("no answer", "list topics", 5.0), True),
        (awoke.AuthenticationFailed("wrong password", -169, "_AUTHENTICATION"), False),
    ],
)
def test_brokers_that_do_not_answer_are_an_error_with_advice_where_the_address_may_be_wrong(
    error: awoke.AwokeError, is_advised: bool, admin: FakeAdmin
) -> None:
    admin.error = error
    done = run("doctor")
    assert done.exit_code == 1
    assert f"brokers: {error}\n" in done.output
    assert ("Is the address right" in done.output) is is_advised


def test_the_brokers_are_asked_with_the_settings_that_are_shown(admin: FakeAdmin) -> None:
    run("doctor", "-b", "c:1")
    settings: Any = admin.made[0]["settings"]
    assert settings.bootstrap_servers == "c:1"


def test_the_checklist_names_what_is_missing_and_what_to_do(admin: FakeAdmin) -> None:
    done = run("doctor", "--production", "-b", "a:9092,b:9092", "--kafka", "security.protocol=sasl_ssl")
    assert done.exit_code == 1
    assert "ok: several brokers to begin with\nok: connections are encrypted\n" in done.output
    assert "missing: logs are JSON: set log_format to json (AWOKE_LOG_FORMAT)\n" in done.output
    assert done.output.endswith("8 checks, 3 missing\n")


def test_the_checklist_has_the_routes_and_topics_of_an_app(monkeypatch: pytest.MonkeyPatch, admin: FakeAdmin) -> None:
    app = awoke.App("shop", metrics_port=9404)
    app.on("orders", dead_letter="orders.dead", retry=awoke.Retry(attempts=3), max_processing_s=9.0)(
        lambda message: None
    )
    monkeypatch.setattr("awoke.app.application.find_app", lambda target: app)
    done = run("doctor", "shop:app", "--production", "-b", "a:1,b:1")
    assert "missing: topic orders exists: awoke topics create orders\n" in done.output
    assert "missing: topic orders.dead exists" in done.output
    assert "ok: metrics\n" in done.output
    assert "does not end the app" in done.output


def test_all_that_is_met_has_the_exit_code_0(monkeypatch: pytest.MonkeyPatch, admin: FakeAdmin) -> None:
    monkeypatch.setenv("AWOKE_LOG_FORMAT", "json")
    monkeypatch.setenv("AWOKE_METRICS_PORT", "9404")
    done = run("doctor", "--production", "-b", "a:1,b:1", "--kafka", "security.protocol=ssl")
    assert (done.exit_code, done.output.splitlines()[-1]) == (0, "8 checks, 0 missing")


def test_members_of_another_app_in_its_group_are_a_warning(monkeypatch: pytest.MonkeyPatch, admin: FakeAdmin) -> None:
    app = awoke.App("shop")
    app.on("orders")(lambda message: None)
    monkeypatch.setattr("awoke.app.application.find_app", lambda target: app)
    names = ["awoke-shop", "awoke-mailing", "sarama"]
    members = [MemberInfo(name, name, "host", None, [("orders", 0)]) for name in names]
    admin.groups["shop"] = GroupInfo("shop", "Stable", "classic", "range", None, members)
    done = run("doctor", "shop:app", "-b", "a:9092")
    sentence = "group shop has members of another app, which take a part of the messages: mailing"
    assert f"warning: {sentence}; give each app a group of its own\n" in done.output
    assert done.exit_code == 0
    admin.groups.clear()
    assert "warning" not in run("doctor", "shop:app", "-b", "a:9092").output


def test_findings_are_documents_for_programs(admin: FakeAdmin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWOKE_DEPLOYED_BY", "us")
    found = [json.loads(line) for line in run("doctor", "-b", "a:9092", "--json").output.splitlines()]
    assert {"version_of": "awoke", "version": awoke.__version__} in found
    assert {"setting": "bootstrap_servers", "value": "a:9092", "origin": "argument"} in found
    assert {"setting": "instance_id", "value": None, "origin": "default"} in found
    assert {"broker": 2, "address": "b:9093"} in found
    assert {"warning": "AWOKE_DEPLOYED_BY"} in found
