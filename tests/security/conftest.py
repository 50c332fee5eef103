"""One broker with every kind of listener for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support import secure_broker as support
from tests.support.secure_broker import SecureBroker


@pytest.fixture(scope="session")
def secure_broker() -> Iterator[SecureBroker]:
    """One broker for the whole run."""
    with support.secure_broker() as running:
        yield running
