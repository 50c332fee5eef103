"""`awoke docs`: text where there is no browser with windows, and pages over HTTP where there is one."""

from __future__ import annotations

import signal
import urllib.request
import webbrowser

import pytest
from typer.testing import CliRunner

from awoke.cli import docs_pages
from awoke.cli.docs import answer_to, has_browser
from awoke.cli.docs_pages import Documentation
from awoke.cli.main import command_line
from tests.support.processes import Process

FILES = {
    "index.html": b"<h1>Start</h1>",
    "404.html": b"<h1>Not found</h1>",
    "llms.txt": b"# awoke\n\n- [Calls](docs/rpc.md)\n",
    "docs/rpc.md": b"# Calls\n\nOver Kafka.\n",
    "docs/rpc/index.html": b"<h1>Calls</h1>",
    "main.css": b"h1 {}",
}
WITHIN_S = 60


@pytest.fixture
def documentation(monkeypatch: pytest.MonkeyPatch) -> Documentation:
    found = Documentation(FILES)
    monkeypatch.setattr(docs_pages, "installed", lambda: found)
    return found


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["rpc"], "# Calls\n\nOver Kafka.\n"),
        ([], "# awoke\n\n- [Calls](docs/rpc.md)\n"),
        (["--text", "rpc"], "# Calls\n\nOver Kafka.\n"),
    ],
)
def test_a_page_is_printed_where_no_people_read(documentation: Documentation, words: list[str], said: str) -> None:
    done = CliRunner().invoke(command_line(["docs"]), ["docs", *words])
    assert (done.exit_code, done.output) == (0, said)


@pytest.mark.parametrize(
    ("path", "status", "kind", "body"),
    [
        ("/", "200 OK", "text/html; charset=utf-8", b"<h1>Start</h1>"),
        ("/docs/rpc/", "200 OK", "text/html; charset=utf-8", b"<h1>Calls</h1>"),
        ("/docs/rp%63.md", "200 OK", "text/plain; charset=utf-8", b"# Calls\n\nOver Kafka.\n"),
        ("/main.css", "200 OK", "text/css; charset=utf-8", b"h1 {}"),
        ("/../docs.py", "404 Not Found", "text/html; charset=utf-8", b"<h1>Not found</h1>"),
    ],
)
def test_a_file_is_served_with_its_type(path: str, status: str, kind: str, body: bytes) -> None:
    head, _, found = answer_to(Documentation(FILES), path).partition(b"\r\n\r\n")
    first, second, *_ = head.decode().split("\r\n")
    assert (first, second, found) == (f"HTTP/1.1 {status}", f"Content-Type: {kind}", body)


SERVING = """
import signal
from awoke.cli import docs, docs_pages
signal.signal(signal.SIGINT, signal.default_int_handler)  # A shell's background processes ignore it.
docs.serve(docs_pages.Documentation({"docs/rpc/index.html": b"Calls"}), "/docs/rpc/", lambda at: print(at, flush=True))
"""


def test_the_documentation_is_served_until_ctrl_c() -> None:
    with Process("-c", SERVING, program=()) as process:
        process.wait_for("http://127.0.0.1:")
        with urllib.request.urlopen(process.output.strip(), timeout=WITHIN_S) as answer:
            assert answer.read() == b"Calls"
        process.signal(signal.SIGINT)
        assert process.wait() == 0, process.output


@pytest.mark.parametrize(
    ("browser", "is_one"),
    [
        (webbrowser.BackgroundBrowser("firefox"), True),
        (webbrowser.Chrome("chromium"), True),
        (webbrowser.GenericBrowser("w3m"), False),
        (webbrowser.Error("none"), False),
    ],
)
def test_a_browser_of_the_terminal_is_none(monkeypatch: pytest.MonkeyPatch, browser: object, is_one: bool) -> None:
    def get() -> object:
        if isinstance(browser, Exception):
            raise browser
        return browser

    monkeypatch.setattr(webbrowser, "get", get)
    assert has_browser() == is_one
