"""`awoke top`: the state of an app in the terminal, live, with commands.

The main thread waits for a key, draws, and sends commands. Another thread reads the state anew after each interval.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import re
import select
import sys
import termios
import threading
import tty
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from awoke.cli.commands import Section, command
from awoke.cli.options import BootstrapServers, Kafka, pairs
from awoke.cli.output import is_terminal
from awoke.errors import AwokeError, ConfigError
from awoke.operate.commands.audit import name_of

if TYPE_CHECKING:
    from rich.console import RenderableType

    from awoke.console.top import Top, TopCommand
    from awoke.console.views import AppView

KEYS = {
    "\r": "enter",
    "\n": "enter",
    "\x1b": "escape",
    "\x7f": "backspace",
    "\x1b[A": "up",
    "\x1b[B": "down",
    "\x1bOA": "up",
    "\x1bOB": "down",
    "\x03": "q",
    "\x04": "q",
}
"""The names of the keys that write no character."""
KEY_BYTES_MAX = 64
KEY = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O[@-~])|.", re.DOTALL)
"""A character, or the sequence of a key that writes none: several may come at once."""


@command(Section.WATCH)
def top(
    name: Annotated[str, typer.Argument(metavar="APP", help="The app's name.")],
    bootstrap_servers: BootstrapServers = None,
    kafka: Kafka = None,
    every_s: Annotated[float, typer.Option(min=0.5, help="The time between two looks.")] = 2.0,
) -> None:
    """Watch an app, look into what is stuck, and act (needs console=True; acting needs console_commands)."""
    from awoke.console.commands import Commander
    from awoke.console.state import read_view
    from awoke.console.top import Top
    from awoke.settings import load

    if not (sys.stdin.isatty() and is_terminal()):
        raise ConfigError("awoke top needs a terminal; programs read `awoke report --json`", "terminal")
    settings = load({"bootstrap_servers": bootstrap_servers, "kafka": pairs(kafka, "--kafka")}).values
    with Commander(name, settings=settings, name="awoke top") as commander:

        def send(wanted: TopCommand) -> str:
            who, reason = name_of(os.getuid()), wanted.reason
            return commander.send(wanted.node, wanted.verb, who=who, reason=reason, **wanted.arguments).text

        shown = Top(read_view(name, settings))
        Screen(shown, lambda: read_view(name, settings), send, every_s).run()


class Screen:
    """Draws the state, and takes keys until the end."""

    def __init__(
        self, shown: Top, read: Callable[[], AppView], send: Callable[[TopCommand], str], every_s: float
    ) -> None:
        self._shown, self._read, self._send, self._every_s = shown, read, send, every_s
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._closing = threading.Event()
        self._new: AppView | str | None = None
        """The state that was read last, or why it could not be read; None where that is shown."""
        self._waking, self._waker = os.pipe()

    def run(self) -> None:
        """Draws until the end. Blocks."""
        from rich.console import Console
        from rich.live import Live

        console = Console(highlight=False)
        reader = threading.Thread(target=self._read_on, name="awoke-top", daemon=True)
        reader.start()
        try:
            with raw_terminal(), Live(console=console, screen=True, auto_refresh=False) as live:
                while not self._shown.is_over:
                    live.update(drawn(self._shown, console.height), refresh=True)
                    self._wait()
        finally:
            self._closing.set()

    def _wait(self) -> None:
        """Waits for a key or a new state, and takes it."""
        ready, _, _ = select.select([sys.stdin.fileno(), self._waking], [], [])
        if self._waking in ready:
            os.read(self._waking, KEY_BYTES_MAX)
            new, self._new = self._new, None
            if isinstance(new, str):
                self._shown.note = new
            elif new is not None:
                self._shown.view = new
        if sys.stdin.fileno() in ready:
            data = os.read(sys.stdin.fileno(), KEY_BYTES_MAX)
            for key in keys_of(self._decoder.decode(data)) if data else ["q"]:  # The terminal is gone.
                self._press(key)

    def _press(self, key: str) -> None:
        wanted = self._shown.press(key)
        if wanted is None:
            return
        try:
            self._shown.note = self._send(wanted)
        except AwokeError as error:
            self._shown.note = f"{wanted.verb} failed: {error}"

    def _read_on(self) -> None:
        while not self._closing.wait(self._every_s):
            try:
                self._new = self._read()
            except AwokeError as error:
                self._new = f"the state can't be read: {error}"
            os.write(self._waker, b".")


@contextlib.contextmanager
def raw_terminal() -> Iterator[None]:
    """Gets each key at once, unseen, within the block."""
    before = termios.tcgetattr(sys.stdin)
    tty.setcbreak(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def keys_of(text: str) -> list[str]:
    """Returns the keys in the terminal's input, by name or character; a key without a meaning here is left out."""
    return [KEYS.get(each, each) for each in KEY.findall(text) if len(each) == 1 or each in KEYS]


def drawn(shown: Top, height: int) -> RenderableType:
    """Returns the screen: no text in it is markup, or has control characters."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from awoke.console.top import HELP, TABLES
    from awoke.text.printable import harmless

    title: Any = Text()
    for number, name in enumerate(TABLES, 1):
        title.append(f" {number} {name} ", "reverse" if name == shown.table else "")
    rows = shown.rows()
    room = max(1, height - 7)
    first = max(0, min(shown.at - room // 2, len(rows) - room))
    arrow = "↓" if shown.is_reversed else "↑"
    names = [f"{each} {arrow}" if at == shown.column else each for at, each in enumerate(shown.columns, 1)]
    table = Table(*names, expand=True, pad_edge=False)
    for at, row in enumerate(rows[first : first + room], first):
        cells = (Text(each, no_wrap=True, overflow="ellipsis") for each in row.cells)
        table.add_row(*cells, style="reverse" if at == shown.at else "")
    if shown.typing is not None:
        asked = "filter" if shown.pending is None else f"{shown.pending.verb}: reason (Enter sends, Esc leaves)"
        last = f"{asked}: {shown.typing}▏"
    else:
        last = shown.note or (f"filter: {shown.words}" if shown.words else "")
    summary = f"{shown.view.app}: {len(rows)} rows, {len(shown.view.reasons)} reasons"
    return Group(title, table, Text(harmless(summary)), Text(harmless(last), "bold"), Text(HELP, "dim"))
