"""The command line's way in, as the script `awoke`, as `python -m awoke` and as `manage.py awoke`.

It stands alone because it imports next to nothing: a signal that comes while the rest is imported, or the app, ends
`awoke run` with 0. Nothing has been processed then. The app's own handlers take over when it starts, and what has
ended keeps its exit code, whichever signal comes while the process goes away.

As process 1 of a container, `awoke run` works in a child: see `attend`.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

HEARD = (signal.SIGTERM, signal.SIGINT)


_begun: list[int] = []
"""The process that has begun already, if that is this one."""


def main() -> None:
    """Runs the command line, and ends the process."""
    is_run = begin(sys.argv[1:])
    from awoke.cli import main as run_command

    try:
        run_command()
    except SystemExit as end:
        if is_run:
            _keep(end.code)
        raise


def begin(words: Sequence[str]) -> bool:
    """Makes the process ready for `awoke run` if that is what these words ask for, and returns whether it is.

    For the main thread, as early as possible: before the rest of awoke is imported, and Django's applications.
    """
    is_run = is_command(words, "run")
    if is_run and _begun != [os.getpid()]:
        _open_streams()
        if os.getpid() == 1:
            _work_in_child()
        _begun[:] = [os.getpid()]
        _hear_early()
    return is_run


def is_command(words: Sequence[str], command: str) -> bool:
    """Returns whether these words may be this command: options come before it, each with a value or without."""
    for before, word in zip(("", *words), words, strict=False):
        if word == command:
            return True
        if not word.startswith("-") and not before.startswith("-"):
            return False
    return False


def _hear_early() -> None:
    """Has the first signal end the process in order, and the second one at once, with the place of the import."""

    def end(_number: int, _frame: FrameType | None) -> None:
        for each in HEARD:
            signal.signal(each, end_at_once)
        raise SystemExit(0)

    def end_at_once(number: int, frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        if frame is not None:
            from awoke.text.frames import stack_text

            text = f"the import has not ended, it is at:\n{stack_text(frame)}"
            os.write(2, text.encode(errors="backslashreplace"))  # `sys.stderr` may be what the import is in.
        os.kill(os.getpid(), number)

    def forget() -> None:
        for each, default in ((signal.SIGTERM, signal.SIG_DFL), (signal.SIGINT, signal.default_int_handler)):
            if signal.getsignal(each) in (end, end_at_once):
                signal.signal(each, default)

    for each in HEARD:
        signal.signal(each, end)
    os.register_at_fork(after_in_child=forget)  # A process that the app's import forks.


def _open_streams() -> None:
    """Opens the null device where a standard stream is closed: the next file or socket would get its number, and be
    written to by whatever writes to that stream."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _work_in_child() -> None:
    """Goes on in a child; this process attends to it, and ends with its exit code."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    child = os.fork()
    if child:
        os._exit(attend(child))
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def attend(child: int) -> int:
    """Passes signals on to a child and reaps every process that ends, until the child has; returns its exit code.

    Process 1 becomes the parent of all processes whose own parent has ended, and must wait for them. The process that
    runs the app can't: it would take the exit codes that `subprocess` waits for. All signals are blocked.
    """
    while True:
        caught = signal.sigwaitinfo(signal.valid_signals())
        if caught.si_signo != signal.SIGCHLD:
            if caught.si_code <= 0:  # A process has sent it. A terminal sends its signals to the child, too.
                os.kill(child, caught.si_signo)
            continue
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == child:
                code = os.waitstatus_to_exitcode(ended[1])
                return code if code >= 0 else 128 - code


def _keep(code: object) -> None:
    """Has later signals end the process with this exit code."""
    number = code if isinstance(code, int) else int(code is not None)
    for each in HEARD:
        signal.signal(each, lambda *_: os._exit(number))


if __name__ == "__main__":
    main()
