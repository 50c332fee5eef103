"""Measures the pages of the web console of a large app: the first one, each of the others, memory, and a browser.

50 processes, 5,000 partitions, 10,000 keys under way and 100,000 errors are in its topics. Where Chromium is installed,
a browser shows pages while ten reports come in a second and keys are typed: no task may keep it busy for long. Each
table is of medians, over the runs or the requests.
"""

from __future__ import annotations

import argparse
import shutil
import threading

import msgspec

from awoke import Producer
from awoke.console.topics import ConsoleTopics
from bench.browsing import Browser
from bench.console_scale import Console, Scale, console_of, report_of, seed
from bench.harness import brokers
from bench.report import Report
from tests.support.waiting import became

QUICK = Scale(nodes=5, partitions=50, keys=100, errors=1_000)
REPORTS_PER_S = 10
BROWSED = ("partitions", "processes")
"""The pages that a browser shows: the one with most rows, and that of the most charts."""


def pages_of(app: str) -> dict[str, str]:
    """Returns the pages that are measured, by their names; the first one is the first page."""
    place, errors = f"{app}/7/{app}", ConsoleTopics.of(app).errors
    return {
        "overview": "/",
        "why is it stuck": "/stuck",
        "partitions": "/partitions",
        "partitions, sorted by lag": "/partitions?sort=lag&order=desc",
        "partitions, filtered": "/partitions?q=77",
        "one partition": f"/partitions/{place}",
        "jobs": "/jobs",
        "transactions": "/transactions",
        "routes": "/routes",
        "errors": "/errors",
        "one error": "/errors/0000000000000007",
        "processes": "/processes",
        "one process": "/processes/host-0.1000",
        "threads": "/threads",
        "settings": "/settings",
        "self-checks": "/checks",
        "audit": "/audit",
        "topics": "/topics",
        "a topic of as many partitions": f"/topics/{app}",
        "groups": "/groups",
        "a group of as many partitions": f"/groups/{app}",
        "messages of the errors": f"/topics/{errors}/messages",
        "one message of the errors": f"/topics/{errors}/messages/0/7",
    }


def is_read(console: Console, errors: int) -> bool:
    """Tells whether the console has counted all errors."""
    return int(msgspec.json.decode(console.get("/errors", is_json=True)[1])["records"]) >= errors


class Reporting:
    """Writes reports until the end of the `with` block: of the first process and of all others in turn.

    The pages show the first process, so that nearly each second report changes them.
    """

    def __init__(self, bootstrap_servers: str, app: str, scale: Scale) -> None:
        self._bootstrap_servers, self._app, self._scale = bootstrap_servers, app, scale
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Reporting:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        topic, number = ConsoleTopics.of(self._app).reports, 0
        with Producer(self._bootstrap_servers, kafka={"compression.type": "zstd"}) as producer:
            while not self._ended.wait(1 / REPORTS_PER_S):
                node = number // 2 % self._scale.nodes if number % 2 else 0
                report = report_of(self._app, node, self._scale, number)
                producer.produce(topic, msgspec.json.encode(report), key=report.node)
                number += 1


def measure(report: Report, browsed: Report, bootstrap_servers: str, scale: Scale, *, runs: int, starts: int) -> None:
    """Adds the figures of all pages, of memory and of the browser to the reports."""
    app = seed(bootstrap_servers, scale)
    pages = pages_of(app)
    for _ in range(starts):
        with console_of(app, bootstrap_servers) as console:
            report.results.setdefault("first page", []).append({"ms": console.get("/")[0]})
    for _ in range(runs):
        with console_of(app, bootstrap_servers) as console:
            report.results.setdefault("first page", []).append({"ms": console.get("/")[0]})
            if not became(lambda: is_read(console, scale.errors), within_s=120.0):
                raise RuntimeError("the errors were not read")
            for name, path in pages.items():
                took = [console.get(path)[0] for _ in range(10)]
                report.results.setdefault(name, []).extend({"ms": each} for each in took)
            with Reporting(bootstrap_servers, app, scale):
                for name in ("overview", "partitions", "processes"):
                    took = [console.get(pages[name])[0] for _ in range(20)]
                    label = f"{name}, while {REPORTS_PER_S} reports come in a second"
                    report.results.setdefault(label, []).extend({"ms": each} for each in took)
                if shutil.which("chromium") is not None:
                    browse(browsed, console, pages)
            report.results.setdefault("console", []).append(console.memory_mb())


def browse(browsed: Report, console: Console, pages: dict[str, str]) -> None:
    """Adds the figures of a browser that shows pages one after the other."""
    with Browser() as browser:
        for name in BROWSED:
            browsed.results.setdefault(name, []).append(browser.watch(console.url + pages[name]))


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.web_console", description=__doc__)
    parser.add_argument("--bootstrap-servers", help="brokers to use instead of starting one")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--starts", type=int, default=4, help="further consoles, of which only the first page is asked")
    parser.add_argument("--messages", type=int, help="ignored: the size is --quick or the full one")
    parser.add_argument("--quick", action="store_true", help="a small app: no figures to quote")
    options = parser.parse_args()
    scale = QUICK if options.quick else Scale()
    title = f"A console of {scale.nodes} processes, {scale.partitions:,} partitions, {scale.errors:,} errors"
    report = Report("web_console", title, "ms", is_higher_better=False)
    title = f"A browser of it for ten seconds, while {REPORTS_PER_S} reports come in a second"
    browsed = Report("web_console_browser", title, "longest_ms", is_higher_better=False)
    with brokers(options.bootstrap_servers) as bootstrap_servers:
        measure(report, browsed, bootstrap_servers, scale, runs=options.runs, starts=options.starts)
    slowest = {name: max((run.get("ms", 0.0) for run in runs), default=0.0) for name, runs in report.results.items()}
    for name, ms in slowest.items():
        report.results[name].append({"slowest_ms": ms})
    report.write({"runs": options.runs, "starts": options.starts, **scale._asdict()})
    if browsed.results:
        browsed.write({"runs": options.runs, **scale._asdict()})


if __name__ == "__main__":
    main()
