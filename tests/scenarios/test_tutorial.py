"""The tutorial works as it stands there: each step with what came before, from the first file to the stop."""

from __future__ import annotations

import re
import signal
import urllib.request
from pathlib import Path

from tests.support.processes import REPOSITORY, Process
from tests.support.shell_steps import commands, environment, programs, says, words

PAGE = (REPOSITORY / "docs" / "tutorial.md").read_text()
PROGRAM, TEST, REPAIR = programs(PAGE)
INSTALL, PYTEST, BROKER, RUN, STATUS, GOOD, BAD, READY, METRICS, LIST, RELOAD, REPLAY, STOP = commands(PAGE)


def got(command: str, supervisor: Process) -> str:
    """Returns what `curl` of the tutorial shows: from the free port that the supervisor has here."""
    path = re.fullmatch(r"curl -s http://127\.0\.0\.1:9404(/\w+)", command)
    address = re.search(r"health and metrics at (http://\S+:\d+)", supervisor.output)
    assert path is not None
    assert address is not None
    with urllib.request.urlopen(f"{address[1]}{path[1]}", timeout=30) as answer:
        return str(answer.read().decode())


def repaired(program: str) -> str:
    """Returns the program with the two lines of its `if` replaced, as the tutorial says."""
    new, count = re.subn(r"    if .*\n        raise .*\n", REPAIR, program)
    assert count == 1
    return new


def test_the_tutorial_works(tmp_path: Path) -> None:
    assert INSTALL == "pip install awoke pytest"
    shell = environment(tmp_path)
    (tmp_path / "shop.py").write_text(PROGRAM)
    (tmp_path / "test_shop.py").write_text(TEST)
    assert "1 passed" in says(PYTEST, shell, tmp_path)
    with Process(*words(BROKER, "awoke broker"), env=shell, cwd=tmp_path) as kafka:
        kafka.wait_for("export ")
        shell |= dict(re.findall(r"(AWOKE_\w+)=(\S+)", kafka.output))
        with Process(*words(RUN, "awoke run")[:-1], "0", env=shell, cwd=tmp_path) as swarm:
            operate(swarm, shell, tmp_path)
        ended = Process("-q", env=shell, cwd=tmp_path, program=("-m", "pytest"))
        with ended:
            assert ended.wait() == 1, ended.output
        assert "1 failed" in ended.output, "the test that expects too much now ends by itself"
        kafka.signal(signal.SIGINT)
        assert kafka.wait() == 0, kafka.output


def operate(swarm: Process, shell: dict[str, str], folder: Path) -> None:
    """Takes the steps 4 to 8 on the running swarm."""
    for log in ("node 1 is up", "node 2 is up", "partitions.assigned"):
        swarm.wait_for(log)
    assert "up" in says(STATUS, shell, folder)
    says(GOOD, shell, folder)
    says(BAD, shell, folder)
    swarm.wait_for("charging order 1: 9.5")
    swarm.wait_for("message.dead_lettered")
    assert got(READY, swarm) == "ready\n"
    assert re.search(r"^awoke_dead_letters_total\{.*\} 1\.0$", got(METRICS, swarm), re.MULTILINE)
    assert "order 2 has a negative total" in says(LIST, shell, folder)
    (folder / "shop.py").write_text(repaired(PROGRAM))
    says(RELOAD, shell, folder)
    says(REPLAY, shell, folder)
    swarm.wait_for("refunding order 2: 1.0")
    says(STOP, shell, folder)
    assert swarm.wait() == 0, swarm.output
