"""The first example of the README prints what it shows, and runs against other brokers by the command that it names."""

from __future__ import annotations

import re
import signal
from pathlib import Path

from awoke.testing import EmbeddedCluster
from tests.support.processes import REPOSITORY, Process
from tests.support.shell_steps import environment, programs, says

EXAMPLE = (REPOSITORY / "README.md").read_text().partition("## A first example")[2].partition("\n## ")[0]
(PROGRAM,) = programs(EXAMPLE)
ALONE, ELSEWHERE = re.findall(r"```console\n\$ (.+)\n((?:.*\n)*?)```", EXAMPLE)


def test_the_first_example_prints_what_it_shows(tmp_path: Path) -> None:
    shell = environment(tmp_path)
    (tmp_path / "shop.py").write_text(PROGRAM)
    command, output = ALONE
    assert command == "python shop.py"
    assert says(command, shell, tmp_path) == output


def test_the_first_example_runs_against_other_brokers_and_stops(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(PROGRAM)
    found = re.fullmatch(r"AWOKE_BOOTSTRAP_SERVERS=127\.0\.0\.1:9092 awoke (run shop:app)", ELSEWHERE[0])
    assert found is not None
    with EmbeddedCluster() as kafka:
        for topic in ("orders", "orders.dead"):
            kafka.create_topic(topic)
        shell = environment(tmp_path) | {"AWOKE_BOOTSTRAP_SERVERS": kafka.bootstrap_servers}
        with Process(*found[1].split(), env=shell) as app:
            app.wait_for("partitions.assigned")
            says("""awoke produce orders '{"id": 4, "total": 2.5}'""", shell, tmp_path)
            app.wait_for("charged 2.5 for order 4")
            app.signal(signal.SIGINT)
            assert app.wait() == 0, app.output
