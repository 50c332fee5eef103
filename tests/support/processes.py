"""Apps in processes of their own, which a scenario starts, signals and waits for."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType

from tests.support.waiting import wait_until

REPOSITORY = Path(__file__).resolve().parents[2]
STOPPED = ("T", "t", "Z", "X")
"""The states of a thread that does not run, as `/proc` shows them."""
RAW = re.compile(r"%[0-7]\|")
"""The beginning of a line that librdkafka writes itself, where a handle has no log callback."""


AWOKE = ("-m", "awoke")


def in_child(check: Callable[[], None]) -> int:
    """Runs a check in a forked child; its exit code is 0 when it passed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 and later warn of threads at a fork.
        pid = os.fork()
    if pid == 0:
        code = 1
        try:
            check()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def signal_process(pid: int, number: signal.Signals) -> None:
    """Signal a process that the test started. Blocks after SIGSTOP until no thread of it runs.

    The kernel stops the threads one by one, and on a loaded machine a thread may work on for seconds.
    """
    os.kill(pid, number)
    if number == signal.SIGSTOP:
        wait_until(lambda: not _runs(pid), f"process {pid} is stopped", every_s=0.01)


def _runs(pid: int) -> bool:
    """Tells whether a thread of the process is neither stopped nor at its end."""
    for stat in Path(f"/proc/{pid}/task").glob("*/stat"):
        try:
            text = stat.read_text()
        except OSError:
            continue  # The thread has ended.
        # The name before the state may hold any character.
        if text.rpartition(")")[2].split()[0] not in STOPPED:
            return True
    return False


class Process:
    """`awoke ARGUMENTS` in a process, and the lines that it writes. A context manager: its exit kills the process.

    `program` are the arguments for Python of another program than awoke.
    """

    def __init__(
        self,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        program: Sequence[str] = AWOKE,
        cwd: Path = REPOSITORY,
    ) -> None:
        self._process = subprocess.Popen(
            [sys.executable, *program, *arguments],
            env={**os.environ, **(env or {})},
            cwd=cwd,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._lines: list[str] = []
        self._has_ended = False
        """Its output has ended. The reader still lives when it tells so."""
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, name="process-output", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    @property
    def output(self) -> str:
        """The lines that it has written until now."""
        with self._changed:
            return "\n".join(self._lines)

    @property
    def is_running(self) -> bool:
        """Tells whether it has not ended."""
        return self._process.poll() is None

    def says(self, text: str, within_s: float = 60.0) -> bool:
        """Wait until it has written this, or ended; whether it has."""

        def has_said() -> bool:
            return any(text in line for line in self._lines)

        with self._changed:
            self._changed.wait_for(lambda: has_said() or self._has_ended, within_s)
            return has_said()

    def wait_until(self, is_enough: Callable[[Sequence[str]], bool], within_s: float = 60.0) -> None:
        """Wait until its lines are enough; fails when it ended or the time is up."""
        with self._changed:
            self._changed.wait_for(lambda: is_enough(self._lines) or self._has_ended, within_s)
            assert is_enough(self._lines), "\n".join(self._lines)

    def wait_for(self, text: str, within_s: float = 60.0) -> None:
        """Wait until it has written this; fails when it ended or the time is up."""
        assert self.says(text, within_s), f"no {text!r} in:\n{self.output}"

    def signal(self, number: signal.Signals) -> None:
        """Signal the process that this object started."""
        if self._process.poll() is None:
            signal_process(self.pid, number)

    def wait(self, within_s: float = 60.0) -> int:
        """Wait for its end; its exit code."""
        code = self._process.wait(within_s)
        self._reader.join(within_s)
        return code

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._changed:
                self._lines.append(line.rstrip("\n"))
                self._changed.notify_all()
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()

    def __enter__(self) -> Process:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        raw = [line for line in self._lines if RAW.match(line)]
        assert error is not None or not raw, f"librdkafka wrote past awoke's log: {raw[:5]}"
