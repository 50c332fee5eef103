"""The price of the plugin: a test that runs an app on brokers of its own and sends one message, 30 times."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bench.testing.awoke_tests import shop


@pytest.mark.parametrize("number", range(30))
def test_price(awoke_run: Callable[..., Any], number: int) -> None:
    """Needs brokers, an app and a probe; its time holds their start and their end."""
    probe = awoke_run(shop())
    probe.send("orders", b"%d" % number)
    probe.idle()
