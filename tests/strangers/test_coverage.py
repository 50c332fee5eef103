"""coverage: the lines that each process has run are in its report."""

from __future__ import annotations

from pathlib import Path

import coverage

from tests.support.clusters import MockCluster
from tests.support.three_modes import in_three_modes, stop_all

APP = """
@app.on(TOPIC)
def handle(message: awoke.Message[bytes]) -> None:
    number = int(message.value)  # measured
    note("handled", value=number)
"""
SETTINGS = "[run]\nparallel = true\nsource_pkgs = shop\npatch = fork\n"


def test_lines_of_nodes_are_measured(mock_cluster: MockCluster, tmp_path: Path) -> None:
    (tmp_path / "coveragerc").write_text(SETTINGS)
    (tmp_path / "sitecustomize.py").write_text("import coverage\n\ncoverage.process_startup()\n")
    env = {"COVERAGE_PROCESS_START": str(tmp_path / "coveragerc"), "PYTHONPATH": str(tmp_path)}
    with in_three_modes(tmp_path, mock_cluster, APP, env=env) as runs:
        stop_all(runs)
    for run in runs:
        files = sorted(map(str, run.folder.glob(".coverage.*")))
        found = coverage.Coverage(data_file=str(run.folder / "all"), config_file=False)
        found.combine(files)
        source = run.folder / "shop.py"
        measured = 1 + source.read_text().splitlines().index("    number = int(message.value)  # measured")
        assert measured in (found.get_data().lines(str(source)) or []), f"{run.mode}: {files}"
