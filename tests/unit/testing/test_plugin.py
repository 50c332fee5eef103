"""The pytest plugin: what it imports, and what its fixtures do."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import awoke
from awoke.testing import Probe


def test_a_run_of_pytest_without_the_fixtures_loads_no_client(tmp_path: Path) -> None:
    program = (
        "import sys, pytest\n"
        "pytest.main(['--fixtures', '-q'])\n"
        "print('loaded', sorted(name for name in sys.modules if name.startswith('awoke.')))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.splitlines()[-1] == ("loaded ['awoke._installation', 'awoke.testing', 'awoke.testing.plugin']")


def test_an_app_runs_on_topics_that_the_fixture_created(awoke_run: Callable[..., Probe]) -> None:
    app = awoke.App("shop")
    app.on("orders", output="bills")(lambda message: message.value)
    probe = awoke_run(app)
    assert probe.send("orders", b"first").offset == 0
