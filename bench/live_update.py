"""The time from a message to its effect in a browser: its handler fails, and the failure is on the page of errors.

The message is produced, fetched and handled, the failure is reported and recorded, the console reads it and tells of
it by a server-sent event, and the page is fetched again. `events` follows the events as a browser does; `Chromium`,
where it is installed, waits for the text in the page.
"""

from __future__ import annotations

import argparse
import http.client
import shutil
import statistics
import threading
import time
from typing import Any
from urllib.parse import urlsplit

import msgspec

import awoke
import awoke.testing
from awoke.admin import Admin
from awoke.console.topics import ConsoleTopics
from bench.browsing import ARGUMENTS
from bench.console_scale import Console, console_of
from bench.harness import brokers, create_topic, delete_topic, unique
from bench.report import Report, percentile
from tests.support.waiting import Collected, elapse

WITHIN_S = 30.0


class Followed:
    """A page as one sees it who fetches it after each event. A context: its end ends the thread."""

    def __init__(self, console: Console) -> None:
        self._url, self._console = urlsplit(console.url), console
        self.changed = threading.Condition()
        self.text = ""
        self._is_ended = False
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Followed:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_ended = True  # The console ticks every 2 s.
        self._thread.join()

    def _run(self) -> None:
        connection = http.client.HTTPConnection(self._url.netloc, timeout=WITHIN_S)
        connection.request("GET", "/live")
        events = connection.getresponse()
        while not self._is_ended:
            if events.readline().startswith(b"event: change"):
                text = self._console.get("/errors", is_json=True)[1].decode()
                with self.changed:
                    self.text = text
                    self.changed.notify_all()
        connection.close()

    def wait_for(self, text: str) -> None:
        """Waits until the page has this text."""
        with self.changed:
            assert self.changed.wait_for(lambda: text in self.text, WITHIN_S), f"{text} was not shown"


def app_of(topic: str) -> awoke.App:
    """Returns an app that fails at each message with its text, and goes on."""
    app = awoke.App(unique("bench"), console=True)

    @app.on(topic, retry=awoke.Retry(attempts=1, on_exhausted="skip"))
    def handle(message: awoke.Message[bytes]) -> None:
        raise ValueError(message.value.decode())

    return app


def figures(took_ms: list[float]) -> dict[str, float]:
    """Returns the median, the 99th percentile and the slowest."""
    return {"ms": statistics.median(took_ms), "p99_ms": percentile(took_ms, 99), "slowest_ms": max(took_ms)}


def follow(app: awoke.App, topic: str, console: Console, messages: int, pause_s: float) -> dict[str, float]:
    """Returns the times until one who follows the events sees each message, with a pause before each."""
    took_ms = []
    with Followed(console) as followed:
        for number in range(messages):
            text = f"no good {number:06d} {unique('seen')}"
            elapse(pause_s, "changes that follow each other soon are told at once")
            begin_s = time.perf_counter()
            app.producer.produce(topic, text)
            followed.wait_for(text)
            took_ms.append((time.perf_counter() - begin_s) * 1e3)
    return figures(took_ms)


def browse(app: awoke.App, topic: str, console: Console, messages: int) -> dict[str, float]:
    """Returns the times until each message is in the page of a browser."""
    from playwright.sync_api import sync_playwright

    took_ms = []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
        page: Any = browser.new_page()
        page.goto(f"{console.url}/errors")
        page.locator(".live[data-state=on]").wait_for()
        for number in range(messages):
            text = f"no good {number:06d} {unique('shown')}"
            begin_s = time.perf_counter()
            app.producer.produce(topic, text)
            page.wait_for_function(
                "text => document.querySelector('main').textContent.includes(text)", arg=text, polling="raf"
            )
            took_ms.append((time.perf_counter() - begin_s) * 1e3)
        browser.close()
    return figures(took_ms)


def measure(bootstrap_servers: str, messages: int) -> dict[str, dict[str, float]]:
    """Runs an app and its console, and returns the figures."""
    topic = create_topic(bootstrap_servers, 1)
    app = app_of(topic)
    assigned = Collected[Any]()
    app.events.subscribe("partitions.assigned", assigned.add)
    found: dict[str, dict[str, float]] = {}
    with awoke.testing.running(app, bootstrap_servers=bootstrap_servers), Admin(bootstrap_servers) as admin:
        assigned.wait_for(1)
        admin.wait_for_topic(ConsoleTopics.of(app.name).errors, WITHIN_S)
        with console_of(app.name, bootstrap_servers) as console:
            msgspec.json.decode(console.get("/errors", is_json=True)[1])
            found["events, one message after the other"] = follow(app, topic, console, messages, 0.0)
            found["events, a second apart"] = follow(app, topic, console, max(1, messages // 4), 1.0)
            if shutil.which("chromium") is not None:
                found["Chromium"] = browse(app, topic, console, messages)
    delete_topic(bootstrap_servers, topic)
    return found


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.live_update", description=__doc__)
    parser.add_argument("--bootstrap-servers", help="brokers to use instead of starting one")
    parser.add_argument("--messages", type=int, default=100)
    parser.add_argument("--runs", type=int, default=1)
    options = parser.parse_args()
    if options.messages < 1 or options.runs < 1:
        parser.error("--messages and --runs must be at least 1")
    report = Report("live_update", "From a message to its effect in the console", "ms", is_higher_better=False)
    with brokers(options.bootstrap_servers) as bootstrap_servers:
        for _ in range(options.runs):
            for name, each in measure(bootstrap_servers, options.messages).items():
                report.results.setdefault(name, []).append(each)
    report.write({"messages": options.messages, "runs": options.runs})


if __name__ == "__main__":
    main()
