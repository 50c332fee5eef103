"""The style guide: each component of the pages with made-up content, to be looked at. The self-checks lead to it."""

from __future__ import annotations

from typing import Any

import msgspec

from awoke.console.views import Reason
from awoke.console.web.page import Asked, Page, Rows
from awoke.waiting.clock import wall_ms


class Example(msgspec.Struct, kw_only=True):
    """A row of the example of a table."""

    state: str
    lag: int
    lag_per_s: float | None


class StylePage(msgspec.Struct, kw_only=True):
    """The content of the components."""

    at_ms: int
    reasons: list[Reason]
    rows: Rows[Example]


def style(asked: Asked) -> StylePage:
    """Returns the content; it is the same for every app."""
    place: dict[str, Any] = {"node": "web-1.310", "group": "flights", "topic": "flights", "partition": 3}
    reasons = [
        Reason(kind=kind, severity=severity, text=text, advice=f"`{advice}`", **place)
        for kind, severity, text, advice in (
            ("stuck", 90, "flights[3] gives no messages any more", "awoke resume MODULE:APP flights 3"),
            ("slow job", 40, "flights[3] offset 19000 is at work for 1.6 min", "awoke dump MODULE:APP"),
        )
    ]
    rows = [
        Example(state="working", lag=20, lag_per_s=-1.5),
        Example(state="failing", lag=1_800, lag_per_s=12.5),
        Example(state="slow", lag=55, lag_per_s=0.0),
        Example(state="idle", lag=0, lag_per_s=None),
    ]
    return StylePage(
        at_ms=wall_ms() - 7_200_000,
        reasons=reasons,
        rows=Rows(rows=rows, total=len(rows), sort="lag", is_descending=False),
    )


PAGES = [Page("/style", "Style guide", style, "style.html")]
