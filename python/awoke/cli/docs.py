"""`awoke docs`: shows the documentation of this version, in a browser or as text. It asks no other host."""

from __future__ import annotations

import contextlib
import mimetypes
import webbrowser
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated
from urllib.parse import unquote

import typer

from awoke.cli import docs_pages
from awoke.cli.commands import command
from awoke.cli.output import is_terminal, say

if TYPE_CHECKING:
    from awoke.cli.docs_pages import Documentation
    from awoke.observe.web.listener import Respond

INDEX = "llms.txt"
"""The list of all pages."""


@command
def docs(
    page: Annotated[
        str, typer.Argument(metavar="[PAGE]", help="A page, as in errors/UnknownTopic or how_to/retry.")
    ] = "",
    text: Annotated[
        bool, typer.Option("--text", help="Print the page, or the list of pages, and open nothing.")
    ] = False,
) -> None:
    """Open the documentation of this version in a browser, or print a page of it."""
    documentation = docs_pages.installed()
    name = documentation.page(page) if page else ""
    if text or not is_terminal() or not has_browser():
        say(documentation.text(name or INDEX).rstrip("\n"), keep="\n")
        return
    serve(documentation, documentation.path(name) if name else "/", open_in_browser)


def has_browser() -> bool:
    """Returns whether there is a browser with windows. One in the terminal would hide what is printed here."""
    try:
        found = webbrowser.get()
    except webbrowser.Error:
        return False
    return not isinstance(found, webbrowser.GenericBrowser) or isinstance(found, webbrowser.BackgroundBrowser)


def open_in_browser(address: str) -> None:
    """Opens an address, and says it: the browser may be on another screen."""
    say(f"the documentation is at {address}; Ctrl-C ends this")
    webbrowser.open(address)


def serve(documentation: Documentation, path: str, on_address: Callable[[str], object]) -> None:
    """Serves the documentation on a free port of the loopback interface. Blocks until it is interrupted."""
    from awoke.observe.web import http
    from awoke.observe.web.loop import Loop

    def answer(asked: str, respond: Respond) -> None:
        respond(answer_to(documentation, asked))

    listening = http.listening_socket("127.0.0.1", 0)
    address = f"http://127.0.0.1:{listening.getsockname()[1]}"
    with (
        contextlib.closing(Loop()) as loop,
        contextlib.closing(http.HttpListener(loop, listening, http.names_in("", "127.0.0.1"), answer)),
        contextlib.suppress(KeyboardInterrupt),
    ):
        on_address(f"{address}{path}")
        while True:
            loop.turn()


def answer_to(documentation: Documentation, path: str) -> bytes:
    """Returns the answer over HTTP to the request for a path."""
    from awoke.observe.web import http

    found = documentation.file(unquote(path))
    if found is None:
        return http.answer("404 Not Found", documentation.files.get("404.html", b""), "text/html; charset=utf-8")
    name, content = found
    kind = "text/plain" if name.endswith((".md", ".py")) else mimetypes.guess_type(name)[0] or "text/plain"
    charset = "; charset=utf-8" if kind.startswith("text/") or kind.endswith(("javascript", "json", "xml")) else ""
    return http.answer("200 OK", content, f"{kind}{charset}")
