"""Secrets that are given as arguments: other users, who may read those of every process, see none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from awoke._native import is_secret as is_secret_natively
from awoke.cli import arguments

SECRETS = {
    "sasl.password": "hünter-2",
    "ssl.key.password": "swordfish",
    "sasl.pasword": "misspelt",
    "ssl.ca.pem": "-----BEGIN",
    "schema.url": "https://user:canary@host/x",
}
SHOW = """
import sys
from pathlib import Path
from awoke.cli.options import pairs
assert pairs([word.removeprefix("--kafka=") for word in sys.argv[1:] if "=" in word], "--kafka")["linger.ms"] == "5"
sys.stdout.buffer.write(Path("/proc/self/cmdline").read_bytes())
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux lets a process do that")
def test_secrets_are_overwritten_in_the_arguments() -> None:
    words = [word for name, value in SECRETS.items() for word in ("--kafka", f"{name}={value}")]
    words += ["--kafka=sasl.password=hünter-2", "--kafka", "linger.ms=5"]
    done = subprocess.run([sys.executable, "-c", SHOW, *words], capture_output=True, check=True)
    seen = done.stdout.decode().split("\0")
    for name, value in SECRETS.items():
        assert value not in done.stdout.decode(), name
        assert f"{name}={'*' * len(value.encode())}" in seen
    assert "linger.ms=5" in seen
    assert done.stderr == b""


def test_a_system_that_does_not_let_itself_be_overwritten_is_warned_of(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(arguments, "_overwrite", lambda secrets: False)
    arguments.hide_secrets({"linger.ms": "5"})
    assert capsys.readouterr().err == ""
    arguments.hide_secrets({"sasl.password": "hunter2"})
    said = capsys.readouterr().err
    assert "sasl.password" in said
    assert "AWOKE_KAFKA_SASL_PASSWORD" in said
    assert "hunter2" not in said


@pytest.mark.parametrize(
    "name",
    [*SECRETS, "sasl.username", "SASL.OAuthBearer.Config", "ssl.key.location", "my.token", "a.secret.b"],
)
def test_what_the_engine_takes_for_a_secret_is_one(name: str) -> None:
    assert arguments.is_secret(name, "x://u:p@h" if name == "schema.url" else "x")
    assert not is_secret_natively(name) or arguments.is_secret(name, "x")
