"""A console that is served by a process of its own, and the browser that shows it."""

from __future__ import annotations

import base64
import contextlib
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.python_syntax import REPOSITORY

CHROMIUM = shutil.which("chromium")
AXE = REPOSITORY / "target" / "console" / "axe.min.js"
WITHIN_MS = 60_000
ARGUMENTS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
POLICY = """addEventListener("securitypolicyviolation",
  (event) => console.error(`the policy refuses ${event.violatedDirective}: ${event.blockedURI}`));"""
FINDINGS = """async (rules) => {
  const found = await axe.run({ resultTypes: ["violations"], ...(rules.length ? { runOnly: rules } : {}) });
  return found.violations.map((each) => `${each.id}: ${each.nodes[0].html.slice(0, 200)}`);
}"""
unasked = set[str]()
"""The pages of which axe was not asked, because it is not there."""
PICTURES = {
    "style_light": "style",
    "style_dark": "style_dark",
    "light": "light",
    "dark": "dark",
    "narrow": "narrow",
    "start_light": "start",
}
"""The screenshots that docs/console.md shows, by their names there: `make pictures` writes them."""
QUALITY = 35
"""Of the pictures: they are in each wheel with the documentation, and text is still sharp."""
NARROW = {"width": 390, "height": 844}

needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="chromium is not installed: apt-get install chromium shows the console in a browser"
)


class Site(NamedTuple):
    """A console that is served, and the browser that shows it."""

    url: str
    browser: Any
    server: subprocess.Popen[str]

    def page(self, **options: Any) -> tuple[Any, list[str]]:
        """Returns a new page, and the list of what goes wrong in it: errors, violations of the policy, dialogs."""
        context = self.browser.new_context(reduced_motion="reduce", **options)
        context.set_default_timeout(WITHIN_MS)
        context.add_init_script(POLICY)
        page, wrong = context.new_page(), list[str]()
        page.on("console", lambda each: wrong.append(each.text) if each.type in ("error", "warning") else None)
        page.on("pageerror", lambda each: wrong.append(str(each)))

        def refuse(dialog: Any) -> None:
            wrong.append(f"a dialog: {dialog.message}")
            dialog.dismiss()

        page.on("dialog", refuse)
        return page, wrong

    def tell(self, line: str) -> None:
        """Sends a line to the server."""
        assert self.server.stdin is not None
        self.server.stdin.write(f"{line}\n")
        self.server.stdin.flush()

    def wait_said(self, *words: str) -> str:
        """Reads the lines of the server up to one that begins with these words, and returns it. Blocks."""
        assert self.server.stdout is not None
        for line in self.server.stdout:
            if line.split()[: len(words)] == list(words):
                return line.strip()
        raise AssertionError(f"the server has ended, and never said {' '.join(words)}")


@contextlib.contextmanager
def served(module: str, *arguments: str) -> Iterator[Site]:
    """Runs a module that serves a console and writes its address, and a browser; ends both after the block."""
    playwright = pytest.importorskip("playwright.sync_api")
    command = [sys.executable, "-m", module, *arguments]
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY) as server,
        playwright.sync_playwright() as driver,
    ):
        assert server.stdin is not None
        assert server.stdout is not None
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS, timeout=WITHIN_MS)
        yield Site(server.stdout.readline().strip(), browser, server)
        browser.close()
        server.stdin.close()
        server.stdout.read()
        server.wait(60)
    for each in threading.enumerate():
        if each.name.startswith("asyncio-waitpid"):  # The driver has ended; its thread ends a moment later.
            each.join(60)
    if unasked:  # All else has been looked at.
        count = len(unasked)
        unasked.clear()
        pytest.skip(f"axe was not asked about {count} pages: {AXE.name} is missing, `make console-assets` fetches it")


def confirm(page: Any, label: str, **fields: str) -> None:
    """Opens the form of a command, gives a reason, and confirms it."""
    form = page.locator("details.act").filter(has=page.locator("summary", has_text=label)).first
    form.locator("summary").click()
    for name, value in fields.items():
        form.locator(f"[name={name}]").fill(value)
    form.locator("[name=reason]").fill("a test")
    form.locator("[name=sure]").check()
    form.locator("button").click()


def act(page: Any, label: str, **fields: str) -> None:
    """Confirms a command, and waits for the page that says it is done."""
    confirm(page, label, **fields)
    page.locator("h1", has_text="Done").wait_for()


def shoot(page: Any, name: str) -> None:
    """Writes a screenshot into the folder AWOKE_SCREENSHOTS, and a picture of docs/console.md into AWOKE_PICTURES."""
    folder, pictures = os.environ.get("AWOKE_SCREENSHOTS"), os.environ.get("AWOKE_PICTURES")
    if folder:
        # Playwright itself would write the file on a thread, and leave it behind.
        (Path(folder) / f"console_{name}.png").write_bytes(page.screenshot(full_page=True))
    if pictures and name in PICTURES:
        (Path(pictures) / f"console_{PICTURES[name]}.webp").write_bytes(webp_of(page))


def webp_of(page: Any) -> bytes:
    """Returns a page as WebP, which Playwright does not write, and Chromium does."""
    chromium = page.context.new_cdp_session(page)
    size = chromium.send("Page.getLayoutMetrics")["cssContentSize"]
    clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
    options = {"format": "webp", "quality": QUALITY, "captureBeyondViewport": True, "clip": clip}
    found = base64.b64decode(chromium.send("Page.captureScreenshot", options)["data"])
    chromium.detach()
    return found


def findings_of(page: Any, *rules: str) -> list[str]:
    """Returns what axe finds on a page by these rules, or by all; without it the test is skipped at its end."""
    if not AXE.exists():
        unasked.add(page.url)
        return []
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text())
    found = page.evaluate(FINDINGS, list(rules))
    return [f"{page.url} {each}" for each in found]
