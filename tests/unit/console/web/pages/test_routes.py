"""Routes: the rates of all processes together, and a process with other options."""

from __future__ import annotations

from typing import Any

from awoke.console.views import Handler
from awoke.console.web.pages.routes import routes_of
from tests.unit.console.web.fakes import HOSTILE, FakeLive, console, report


def handler(name: str = "charge", **fields: Any) -> Handler:
    given: Any = {"name": name, "group": "shop", "topic": "orders", "is_async": False, "concurrency": 4, **fields}
    return Handler(**{"exactly_once": False, "dead_letter": None, **given})


def test_the_processes_of_a_route_are_one_row() -> None:
    reports = [
        report("a", handlers=[handler(messages_per_s=2.0, failures=1), handler("audit")]),
        report("b", handlers=[handler(messages_per_s=3.0, failures=2), handler("audit", concurrency=1)]),
        report("c", handlers=[handler(), handler("audit"), handler("new")]),
    ]
    found = {each.name: each for each in routes_of(reports)}
    charge = found["charge"]
    assert (charge.messages_per_s, charge.failures, charge.nodes) == (5.0, 3, ["a", "b", "c"])
    assert {name: each.differs for name, each in found.items()} == {"charge": False, "audit": True, "new": True}
    assert found["new"].messages_per_s is None


def test_the_page_names_options_and_dead_letters_and_is_harmless() -> None:
    told = handler(HOSTILE, topic=HOSTILE, group=HOSTILE, exactly_once=True, dead_letter="orders-dlq")
    with console(FakeLive([report("a", handlers=[told])])) as client:
        page = client.get("/routes").text
        other = client.get("/routes?q=elsewhere&format=json").json()
    assert "exactly once" in page
    assert "/letters/orders-dlq" in page
    assert "<script>alert" not in page
    assert other["routes"]["total"] == 0
