"""The first steps of the README work as they stand there, each with what came before."""

from __future__ import annotations

import re
import signal
from pathlib import Path

from tests.support.processes import REPOSITORY, Process
from tests.support.shell_steps import commands, environment, programs, says, words

README = (REPOSITORY / "README.md").read_text()
FIRST_STEPS = README.partition("## Try it")[2].partition("\n## ")[0]
COMMANDS = commands(FIRST_STEPS)
(PROGRAM,) = programs(FIRST_STEPS)


def test_the_first_steps_work(tmp_path: Path) -> None:
    shell = environment(tmp_path)
    (tmp_path / "shop.py").write_text(PROGRAM)
    install, broker, run, *produce, list_letters = COMMANDS
    assert install == "pip install awoke"
    with Process(*words(broker, "awoke broker"), env=shell) as kafka:
        kafka.wait_for("export ")
        exported = re.findall(r"(AWOKE_\w+)=(\S+)", kafka.output)
        shell |= dict(exported)
        assert len(exported) == 2
        with Process(*words(run, "awoke run"), env=shell) as app:
            app.wait_for("partitions.assigned")
            for command in produce:
                says(command, shell, tmp_path)
            app.wait_for("message.dead_lettered")
            app.wait_for("charging order 1: 9.5")
            app.wait_for("charging order 3: 4.0")
            assert app.output.count("Traceback") == 1
            assert app.output.count("job.failed") == 3
            letters = says(f"{list_letters} --json", shell, tmp_path)
            app.signal(signal.SIGINT)
            assert app.wait() == 0, app.output
        assert "order 2 has a negative total" in letters
        kafka.signal(signal.SIGINT)
        assert kafka.wait() == 0, kafka.output
