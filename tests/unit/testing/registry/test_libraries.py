"""Optional libraries: an error says how to install one that is missing."""

from __future__ import annotations

import fastavro
import pytest

import awoke
from awoke.testing.registry.libraries import library


def test_a_library_is_imported() -> None:
    assert library("fastavro") is fastavro


def test_a_missing_library_is_named_with_the_command_that_installs_it() -> None:
    with pytest.raises(awoke.ConfigError, match=r"needs fastavro2: pip install 'awoke\[registry\]'") as raised:
        library("fastavro2")
    assert raised.value.property == "registry"
