"""A server for the clients under test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.registry_stub import RegistryStub


@pytest.fixture
def stub() -> Iterator[RegistryStub]:
    """A server with answers that the test writes."""
    with RegistryStub() as running:
        yield running
