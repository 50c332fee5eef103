"""Errors about settings say where the setting came from, and which one was meant."""

from __future__ import annotations

from pathlib import Path

import pytest

import awoke
from awoke.settings.origins import PROPERTIES

ADDRESS = "127.0.0.1:1"


def refused(address: str | None) -> str:
    with awoke.Admin(address) as admin, pytest.raises(awoke.BrokerUnreachable) as error:
        admin.brokers(0.3)
    return str(error.value)


def test_an_address_that_does_not_answer_is_named_with_its_origin(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AWOKE_BOOTSTRAP_SERVERS", raising=False)
    assert f"no broker of {ADDRESS} (from an argument) answered within 0.3 s" in refused(ADDRESS)
    (tmp_path / "awoke.toml").write_text(f'bootstrap_servers = "{ADDRESS}"\n')
    assert f"no broker of {ADDRESS} (from awoke.toml) answered" in refused(None)
    monkeypatch.setenv("AWOKE_BOOTSTRAP_SERVERS", ADDRESS)
    text = refused(None)
    assert f"no broker of {ADDRESS} (from AWOKE_BOOTSTRAP_SERVERS) answered" in text
    assert "thrd" not in text
    assert "in state" not in text
    assert text.count(ADDRESS) == 2, "once as the setting, once in what the system says"


def test_an_unknown_property_is_named_with_its_origin_and_the_one_that_was_meant(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(awoke.ConfigError, match=r"from an argument\); did you mean 'linger\.ms'\?"):
        awoke.Producer(ADDRESS, kafka={"linger.msec": 1})
    monkeypatch.setenv("AWOKE_KAFKA_LINGER_MSEC", "1")
    with pytest.raises(awoke.ConfigError, match=r"AWOKE_KAFKA_LINGER_MSEC\); did you mean 'linger\.ms'\?"):
        awoke.Admin(ADDRESS)
    monkeypatch.delenv("AWOKE_KAFKA_LINGER_MSEC")
    with pytest.raises(awoke.ConfigError, match=r"is no property of librdkafka [0-9.]+ \(from an argument\)$"):
        awoke.Admin(ADDRESS, kafka={"xyzzy": 1})


def test_librdkafka_knows_every_property_that_is_suggested() -> None:
    unknown = []
    for name in PROPERTIES:
        try:
            awoke.Admin(ADDRESS, kafka={name: "\n"}).close()  # Refused for its value, if the name is known.
        except awoke.AwokeError as error:
            if "is no property of librdkafka" in str(error):
                unknown.append(name)
    assert unknown == []
