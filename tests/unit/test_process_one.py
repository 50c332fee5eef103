"""As process 1 of a container: signals reach the app, and processes whose parents have ended are reaped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from tests.support.processes import Process

PROGRAM = """
import os, signal, sys
from awoke.__main__ import attend
from awoke.swarm import linux

linux.become_subreaper()
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
child = os.fork()
if child:
    code = attend(child)
    print("left", linux.children(), flush=True)
    sys.exit(code)
signal.pthread_sigmask(signal.SIG_SETMASK, [])
for _ in range(3):  # Each has a child whose parent ends first.
    between = os.fork()
    if between == 0:
        os.fork()
        os._exit(0)
    os.waitpid(between, 0)
children = f"/proc/{os.getppid()}/task/{os.getppid()}/children"
while open(children).read().split() != [str(os.getpid())]:
    os.sched_yield()
stops = []
signal.signal(signal.SIGTERM, lambda *_: stops.append(1))
print("ready", flush=True)
while not stops:
    signal.pause()
if sys.argv[1] == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
os._exit(7)
"""


@pytest.mark.parametrize(("end", "code"), [("exits", 7), ("killed", 128 + signal.SIGKILL)])
def test_it_passes_signals_on_and_reaps_all(end: str, code: int) -> None:
    with Process(end, program=("-c", PROGRAM)) as process:
        process.wait_for("ready")
        process.signal(signal.SIGTERM)
        assert process.wait() == code
        assert "left []" in process.output


UNSHARE = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")


@pytest.mark.skipif(os.getuid() != 0, reason="only root makes a namespace of processes")
def test_a_run_as_process_one_works_in_a_child() -> None:
    if subprocess.run([*UNSHARE, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this system makes no namespaces")
    code = "import os; print(os.getpid(), os.getppid()); import sys; sys.argv = ['awoke', 'run', 'none:app']; "
    code += "from awoke.__main__ import main; main()"
    done = subprocess.run([*UNSHARE, sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["1", "0"]
    assert done.returncode == 78, done.stderr
    assert "there is no module 'none'" in done.stderr
