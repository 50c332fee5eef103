"""The options of a swarm, and sizes as people write them."""

from __future__ import annotations

import msgspec
import pytest

import awoke
from awoke.operate.commands.socket_paths import socket_path
from awoke.swarm.options import SwarmOptions, bytes_of


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("5", 5),
        ("2k", 2048),
        ("512M", 512 << 20),
        ("512Mi", 512 << 20),
        ("512MiB", 512 << 20),
        ("1.5Gi", 3 << 29),
        ("1 GiB", 1 << 30),
        ("1T", 1 << 40),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert bytes_of(text) == size


@pytest.mark.parametrize("text", ["", "M", "-1M", "0", "0.0001", "1P", "1e9", "half", "1.M", "\u0663M"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(awoke.ConfigError, match="no size"):
        bytes_of(text)


def test_options_are_checked_and_travel() -> None:
    with pytest.raises(awoke.ConfigError, match="at least 1"):
        SwarmOptions(target="a:b", nodes=0, socket="s")
    with pytest.raises(awoke.ConfigError, match="hard memory limit"):
        SwarmOptions(target="a:b", nodes=1, socket="s", memory_soft_bytes=2, memory_hard_bytes=1)
    options = SwarmOptions(target="a:b", nodes=2, socket="s", kafka={"acks": "all"})
    assert msgspec.json.decode(msgspec.json.encode(options), type=SwarmOptions) == options
    assert "a-b" in socket_path("a:b")
