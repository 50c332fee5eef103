"""All pages and actions of the console, in the order of its navigation."""

from __future__ import annotations

from awoke.console.web.page import Action, Page
from awoke.console.web.pages import (
    calls,
    commands,
    explorer,
    failures,
    groups,
    letters,
    overview,
    partitions,
    processes,
    routes,
    self_checks,
    style,
    topics,
    transactions,
)

MODULES = (
    overview,
    partitions,
    transactions,
    routes,
    calls,
    failures,
    letters,
    topics,
    explorer,
    groups,
    processes,
    commands,
    self_checks,
    style,
)
"""The modules of pages. Each has `PAGES`, and may have `ACTIONS`."""

PAGES: list[Page] = [page for module in MODULES for page in module.PAGES]
ACTIONS: list[Action] = [action for module in MODULES for action in getattr(module, "ACTIONS", ())]
ORDER = ("Now", "Work", "Kafka", "Processes")
SECTIONS: dict[str, list[Page]] = {name: [page for page in PAGES if page.section == name] for name in ORDER}
"""The navigation."""
