"""A terminal of a test: it types keys, and reads what a program draws."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import termios
import threading
from collections.abc import Iterator

DRAWING = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
"""A sequence by which a program moves the cursor, and chooses colours and screens."""
WITHIN_S = 60.0


class Terminal:
    """Both ends of a terminal. `file` is the one of the program, which never waits for the test to read."""

    def __init__(self, columns: int = 200, lines: int = 50) -> None:
        self._own, self.file = pty.openpty()
        fcntl.ioctl(self.file, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self._ending, self._end = os.pipe()
        self._more = threading.Condition()
        self.drawn = b""
        """All that the program has drawn."""
        self._typed_at = 0
        """The length of `drawn` when the last key was typed."""
        self._thread = threading.Thread(target=self._read_on, name="terminal")
        self._thread.start()

    def type(self, text: str | bytes) -> None:
        """Types keys."""
        self._typed_at = len(self.drawn)
        os.write(self._own, text.encode() if isinstance(text, str) else text)

    def wait_shown(self, *words: str) -> str:
        """Waits until these words are drawn, after the last key that was typed, and returns what is. Blocks."""

        def shown() -> str:
            return DRAWING.sub("", self.drawn[self._typed_at :].decode(errors="replace"))

        with self._more:
            is_shown = self._more.wait_for(lambda: all(word in shown() for word in words), WITHIN_S)
            assert is_shown, f"{words} are not shown: {shown()[-4000:]}"
            return shown()

    def _read_on(self) -> None:
        while True:
            ready, _, _ = select.select([self._own, self._ending], [], [])
            if self._own not in ready:  # All is read, and the end is asked for.
                return
            data = os.read(self._own, 65_536)
            with self._more:
                self.drawn += data
                self._more.notify_all()

    def close(self) -> None:
        """Reads what is left, and closes both ends."""
        os.write(self._end, b".")
        self._thread.join()
        for each in (self._own, self.file, self._ending, self._end):
            os.close(each)


@contextlib.contextmanager
def terminal() -> Iterator[Terminal]:
    """Opens a terminal for a block."""
    made = Terminal()
    try:
        yield made
    finally:
        made.close()
