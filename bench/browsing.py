"""The work of a browser that shows a page of a console: its tasks, by the clock and by processor time.

A browser answers a person between the tasks of its main thread. Its own list of long tasks goes by the clock, so that
beside other work it has tasks that waited for a processor. A trace also has the processor time of each task, which
says what the page costs, on any machine.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from typing import Any

from tests.support.waiting import elapse

LONG_MS = 50.0
"""A person notices a longer task."""
WATCHED_S = 10.0
CATEGORIES = ["-*", "devtools.timeline", "disabled-by-default-devtools.timeline"]
"""Those with whole tasks: `toplevel` leaves out what a promise goes on with."""
ARGUMENTS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
OBSERVER = """
window.tasks = [];
new PerformanceObserver((list) => { for (const each of list.getEntries()) window.tasks.push(each.duration); })
  .observe({ type: "longtask" });
"""
COUNTER = """
window.tasks.length = 0;
window.changes = window.made = 0;
new MutationObserver((list) => {
  window.changes++;
  for (const each of list) {
    for (const node of each.addedNodes) window.made += 1 + (node.querySelectorAll?.("*").length || 0);
  }
}).observe(document.querySelector("main"), { childList: true, subtree: true, characterData: true, attributes: true });
"""
"""Counts the changes of the page, and the nodes that are made for them."""
PARTS = {"cpu_ms": "TaskDuration", "layout_ms": "LayoutDuration", "style_ms": "RecalcStyleDuration"}


class Browser:
    """Chromium, if it is installed. A context: its end ends the browser."""

    def __enter__(self) -> Browser:
        from playwright.sync_api import sync_playwright

        self._driver = sync_playwright().start()
        self._browser = self._driver.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
        return self

    def __exit__(self, *_: object) -> None:
        self._browser.close()
        self._driver.stop()

    def watch(self, url: str) -> dict[str, float]:
        """Returns the tasks of a browser that shows a page while it changes, and then has keys typed into it."""
        page: Any = self._browser.new_page()
        page.add_init_script(OBSERVER)
        page.goto(url)
        page.locator(".live[data-state=on]").wait_for()
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        page.evaluate(COUNTER)
        before = spent_ms(session)
        self._browser.start_tracing(page=page, categories=CATEGORIES)
        elapse(WATCHED_S, "reports come, and the page is made new")
        trace = json.loads(self._browser.stop_tracing())
        after = spent_ms(session)
        tasks, changes, made = page.evaluate("[window.tasks, window.changes, window.made]")
        page.evaluate("window.tasks.length = 0")
        page.locator("input[type=search]").press_sequentially("bench-shop" * 5, delay=100)
        typing = page.evaluate("window.tasks")
        page.close()
        cpu_ms = cpu_of_tasks_ms(trace["traceEvents"])
        return {
            "changes": float(changes),
            "over_50_ms": float(len(tasks)),
            "longest_ms": max(tasks, default=0.0),
            "cpu_over_50_ms": float(sum(each > LONG_MS for each in cpu_ms)),
            "longest_cpu_ms": max(cpu_ms, default=0.0),
            "over_50_ms_typing": float(len(typing)),
            "nodes_made": made / max(1, changes),
            **{f"{name}_a_change": (after[name] - before[name]) / max(1, changes) for name in PARTS},
        }


def spent_ms(session: Any) -> dict[str, float]:
    """Returns the processor time of the page's main thread until now, and its parts."""
    metrics = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
    return {name: metrics[of] * 1e3 for name, of in PARTS.items()}


def cpu_of_tasks_ms(events: list[dict[str, Any]]) -> list[float]:
    """Returns the processor time of each task of the page's main thread: that with most of it, as others are idle."""
    names = {(each["pid"], each["tid"]): each["args"]["name"] for each in events if each.get("name") == "thread_name"}
    tasks = [
        (each["pid"], each.get("tdur", 0) / 1e3)
        for each in events
        if each.get("ph") == "X"
        and each["name"] == "RunTask"
        and names.get((each["pid"], each["tid"])) == "CrRendererMain"
    ]
    total = Counter[int]()
    for process, took_ms in tasks:
        total[process] += round(took_ms * 1e3)
    busiest = max(total, key=lambda each: total[each], default=None)
    return [took_ms for process, took_ms in tasks if process == busiest]
