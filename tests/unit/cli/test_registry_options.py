"""The registry of a command: from its option or from the settings."""

from __future__ import annotations

import pytest

from awoke.cli.registry_options import registry_at
from awoke.errors import ConfigError


@pytest.fixture(autouse=True)
def none_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Removes a registry that the environment names."""
    monkeypatch.delenv("AWOKE_REGISTRY_URL", raising=False)


def test_without_a_registry_the_error_says_what_to_set() -> None:
    with pytest.raises(ConfigError, match=r"--registry-url .* AWOKE_REGISTRY_URL, or registry_url in awoke\.toml"):
        registry_at(None)


def test_the_option_comes_before_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWOKE_REGISTRY_URL", "http://from-environment:1")
    with registry_at(None) as registry:
        assert registry.url == "http://from-environment:1"
    with registry_at("http://from-option:2") as registry:
        assert registry.url == "http://from-option:2"


def test_a_password_in_the_option_is_warned_of_and_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    registry_at("http://ann:hunter2@host:1").close()
    written = capsys.readouterr()
    assert written.err.startswith("warning: other users can see the arguments of this process")
    assert "hunter2" not in written.err + written.out
    registry_at("http://host:1").close()
    assert capsys.readouterr().err == ""
