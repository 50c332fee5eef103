"""The recipe for Jupyter: its cells run one after another inside a running event loop, and may be run again."""

from __future__ import annotations

import re
from typing import Any

import pytest

import awoke
from tests.support.processes import REPOSITORY
from tests.support.waiting import wait_until

PAGE = (REPOSITORY / "docs" / "recipes.md").read_text().partition("## Jupyter")[2]
(PROGRAM,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
IMPORTS, APP, BEGIN, SEND, END = PROGRAM.split("# A cell")


async def test_the_cells_of_a_notebook_run_beside_its_event_loop() -> None:
    notebook: dict[str, Any] = {"__name__": "__main__"}

    def run(cell: str) -> None:
        exec(compile(f"#{cell}", "cell", "exec"), notebook)

    def wait_for_clicks(count: int) -> None:
        wait_until(lambda: len(notebook["clicks"]) == count, "the messages of the notebook", 60)

    exec(IMPORTS, notebook)
    for count in (1, 2):
        run(APP)
        run(BEGIN)
        for _ in range(count):
            run(SEND)
        wait_for_clicks(count)
        run(END)
    with pytest.raises(awoke.AwokeError, match="event loop"):
        notebook["app"].run()
