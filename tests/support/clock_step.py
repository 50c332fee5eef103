"""Steps the clock that one process sees: a preloaded library adds an offset, which the test may change at any time."""

from __future__ import annotations

import mmap
import struct
import subprocess
from pathlib import Path
from types import TracebackType

SOURCE = Path(__file__).resolve().parent / "clock_step.c"
NS_PER_S = 1_000_000_000


def build(folder: Path) -> Path:
    """Compile the library; its file."""
    library = folder / "clock_step.so"
    command = ["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return library


class SteppedClock:
    """The clock of the processes that are started with `env`. A context manager."""

    def __init__(self, library: Path, file: Path) -> None:
        file.write_bytes(bytes(8))
        self.env = {"LD_PRELOAD": str(library), "CLOCK_STEP_FILE": str(file)}
        """Returns the environment variables that a process needs."""
        with file.open("r+b") as opened:
            self._offset = mmap.mmap(opened.fileno(), 8)

    def set(self, offset_s: float) -> None:
        """Set how far the clock is ahead of the system's, behind where negative."""
        self._offset[:8] = struct.pack("=q", int(offset_s * NS_PER_S))

    def __enter__(self) -> SteppedClock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._offset.close()
