"""Settings: layers, origins, errors, secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from awoke.errors import ConfigError
from awoke.settings import load


def test_arguments_win_over_environment_over_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "awoke.toml").write_text("workers = 2\ngroup = 'file'\n[kafka]\nlinger.ms = 7\n")
    monkeypatch.setenv("AWOKE_WORKERS", "3")
    monkeypatch.setenv("AWOKE_GROUP", "environment")
    monkeypatch.setenv("AWOKE_KAFKA_SASL_USERNAME", "me")
    loaded = load({"workers": 4, "group": None}, tmp_path)
    assert (loaded.values.workers, loaded.values.group) == (4, "environment")
    assert loaded.values.kafka == {"linger.ms": "7", "sasl.username": "me"}
    origins = {name: origin for name, _, origin in loaded.explain()}
    assert (origins["workers"], origins["group"], origins["linger.ms"]) == ("argument", "environment", "awoke.toml")
    assert origins["commit_interval_s"] == "default"


@pytest.mark.parametrize(
    ("arguments", "named"),
    [({"wrokers": 1}, "wrokers"), ({"workers": "many"}, "workers"), ({"workers": 0}, "workers")],
)
def test_what_is_wrong_is_named(arguments: dict[str, object], named: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=named) as error:
        load(arguments, tmp_path)
    assert error.value.property == named


def test_secrets_are_not_explained(tmp_path: Path) -> None:
    loaded = load({"kafka": {"sasl.password": "canary", "ssl.key.pem": "canary"}}, tmp_path)
    assert "canary" not in str(loaded.explain())


def test_a_file_that_is_no_toml_is_named(tmp_path: Path) -> None:
    (tmp_path / "awoke.toml").write_text("workers = = 2")
    with pytest.raises(ConfigError, match=r"awoke\.toml"):
        load({}, tmp_path)
