"""The checkable part of the wording rules of docs/internals/glossary.md, over every file of the repository."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.support.language import READERS, Text, faults, markdown_texts, python_texts, rust_texts

REPOSITORY = Path(__file__).resolve().parents[2]
OWN = {"tests/unit/test_language.py", "tests/support/language.py"}


def files() -> list[str]:
    """Returns the files under version control that hold prose, comments or docstrings."""
    listed = subprocess.run(["git", "ls-files"], capture_output=True, text=True, cwd=REPOSITORY, check=True).stdout
    return [name for name in listed.splitlines() if Path(name).suffix in READERS and name not in OWN]


def test_every_file_keeps_the_wording_rules() -> None:
    present = [(name, REPOSITORY / name) for name in files() if (REPOSITORY / name).exists()]
    assert [f"{name}:{line}" for name, file in present for line in faults(Path(name), file.read_text())] == []


SUBJECT = re.compile(r"[a-z][a-z_, -]*: \S")
SUBJECT_WIDTH = 72


def git(*arguments: str) -> str:
    """Returns the output of a git command, empty if it fails: not every clone has a main branch."""
    return subprocess.run(["git", *arguments], capture_output=True, text=True, cwd=REPOSITORY).stdout


def test_the_subjects_of_the_branch_keep_the_form() -> None:
    base = git("merge-base", "HEAD", "origin/main").strip() or git("merge-base", "HEAD", "main").strip()
    subjects = git("log", "--no-merges", "--format=%s", f"{base}..HEAD").splitlines() if base else []
    assert [text for text in subjects if len(text) > SUBJECT_WIDTH or not SUBJECT.match(text)] == []


def test_comments_of_rust_are_told_from_strings() -> None:
    source = """//! First.
//! Second.

/// What it is.
fn of<'a>(x: &'a str) -> char { let _ = "// no"; let _ = r#"/* " no */"#; '"' } // why
/* a /* nested */ block */ const QUOTE: char = '\\''; // end
"""
    assert list(rust_texts(source)) == [
        Text(1, "First. Second.", True),
        Text(4, "What it is.", True),
        Text(5, "why", False),
        Text(6, "a /* nested */ block */", False),
        Text(6, "end", False),
    ]


def test_comments_of_python_are_told_from_strings() -> None:
    source = '"""Module."""\nx = "# no"  # yes\n"""What x is."""\n'
    assert sorted(python_texts(source)) == [
        Text(1, "Module.", True),
        Text(2, "yes", False),
        Text(3, "What x is.", True),
    ]


def test_code_and_quotations_of_markdown_are_left_out() -> None:
    source = "One\ntwo.\n\n```\ncode\n```\n> quoted\n\nthree\n"
    assert list(markdown_texts(source)) == [Text(1, "One two.", False), Text(9, "three", False)]


@pytest.mark.parametrize(
    ("name", "source", "expected"),
    [
        ("a.md", "It is so\nmany.\n", 1),
        ("a.md", 'The word "whoever" and `so long` are quoted.\n', 0),
        ("a.md", "It concerns nobody.\n", 1),
        ("a.md", "**Nobody there.** The group is empty.\n", 0),
        ("a.md", "word " * 21, 1),
        ("a.md", "| " + "cell " * 30 + "|\n", 0),
        ("a.py", '"""Tells whether it is."""\nx = "whoever"\n', 0),
        ("a.rs", "// How it is: carried out\nfn f() {}\n", 1),
        ("a.rs", f"// {'x' * 120}\n", 1),
    ],
)
def test_faults_are_found(name: str, source: str, expected: int) -> None:
    assert len(faults(Path(name), source)) == expected
