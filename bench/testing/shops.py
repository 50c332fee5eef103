"""An app that bills orders, and the same app with new code."""

from __future__ import annotations

import awoke

old, new = awoke.App("shop"), awoke.App("shop")


@old.on("orders", output="bills")
def bill(message: awoke.Message[bytes]) -> bytes:
    """Return a bill."""
    return b"bill of " + message.value


@new.on("orders", output="bills")
def invoice(message: awoke.Message[bytes]) -> bytes:
    """Return an invoice."""
    return b"invoice of " + message.value
