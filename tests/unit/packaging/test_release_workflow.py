"""The release workflow, which has never run here, is valid and names only what exists."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]
WORKFLOW = REPOSITORY / ".github" / "workflows" / "release.yml"
TEXT = WORKFLOW.read_text()


def targets() -> set[str]:
    """Returns the targets of the Makefile."""
    return set(re.findall(r"^([a-z][a-z-]*):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE))


def test_every_target_that_it_makes_exists() -> None:
    code = "\n".join(line.partition("#")[0] for line in TEXT.splitlines())
    made = set(re.findall(r"\bmake ([a-z][a-z-]*)", code))
    assert made >= {"changelog-check", "sdist", "test", "wheels"}
    assert sorted(made - targets()) == []


def test_every_script_that_it_runs_exists() -> None:
    scripts = set(re.findall(r"packaging/\w+\.py", TEXT))
    assert scripts
    assert [name for name in scripts if not (REPOSITORY / name).exists()] == []


def test_it_says_that_it_has_not_run() -> None:
    assert "has not been run" in TEXT.partition("\nname:")[0]


@pytest.fixture
def jobs() -> dict[str, Any]:
    yaml = pytest.importorskip("yaml")
    document = yaml.safe_load(TEXT)
    assert True in document, "YAML 1.1 reads the key `on` as true"
    found: dict[str, Any] = document["jobs"]
    return found


def test_every_step_does_one_thing(jobs: dict[str, Any]) -> None:
    steps = [step for job in jobs.values() for step in job["steps"]]
    assert [step for step in steps if ("run" in step) == ("uses" in step)] == []


def test_every_job_waits_for_jobs_that_exist(jobs: dict[str, Any]) -> None:
    needed = {name: job.get("needs", []) for name, job in jobs.items()}
    assert [(name, each) for name, of in needed.items() for each in of if each not in jobs] == []


def test_only_the_job_that_publishes_may_prove_its_identity(jobs: dict[str, Any]) -> None:
    trusted = {name for name, job in jobs.items() if "id-token" in job.get("permissions", {})}
    assert trusted == {"publish"}
    assert jobs["publish"]["permissions"] == {"id-token": "write", "attestations": "write", "contents": "read"}
    assert set(jobs["publish"]["needs"]) == jobs.keys() - {"publish"}
