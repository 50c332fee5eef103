"""What README and guides show runs as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
PROGRAMS = [(page, code) for page in PAGES for code in BLOCK.findall(page.read_text()) if "import awoke" in code]


@pytest.mark.parametrize(("page", "code"), PROGRAMS, ids=[page.name for page, _ in PROGRAMS])
def test_a_program_in_the_documentation_runs(page: Path, code: str) -> None:
    exec(compile(code, str(page), "exec"), {"__name__": "documentation"})


def test_there_are_programs() -> None:
    assert {page.name for page, _ in PROGRAMS} >= {"README.md", "testing.md"}


def test_every_setting_is_documented() -> None:
    from awoke.settings import RunSettings, Settings

    text = (REPOSITORY / "docs" / "settings.md").read_text()
    assert [
        name
        for name in (*Settings.__struct_fields__, *RunSettings.__struct_fields__)
        if name != "kafka" and f"`{name}`" not in text
    ] == []


def test_every_exit_code_is_documented() -> None:
    from awoke import exit_codes

    text = (REPOSITORY / "docs" / "swarm.md").read_text()
    documented = [int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)]
    assert documented == sorted(value for name, value in vars(exit_codes).items() if name.startswith("EXIT_"))
