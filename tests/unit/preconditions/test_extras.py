"""Libraries that are extras."""

from __future__ import annotations

import sys

import msgspec
import pytest

import awoke
from awoke.preconditions.extras import needs


def test_a_library_that_is_there_is_returned() -> None:
    assert needs("msgspec", "registry") is msgspec


def test_one_that_is_missing_is_an_error_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastavro", None)
    with pytest.raises(awoke.ConfigError, match=r"pip install 'awoke\[registry\]'"):
        needs("fastavro", "registry")
    with pytest.raises(awoke.ConfigError, match=r"pip install 'awoke\[registry\]'"):
        awoke.avro(int)
