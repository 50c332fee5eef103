"""`awoke docs` prints pages, which it finds by the names that users give them."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from awoke.cli import docs as docs_command
from awoke.cli.main import command_line

PAGES = ("README.md", "docs/README.md", "docs/rpc.md", "docs/errors/UnknownTopic.md", "docs/how_to/retry.md")


@pytest.fixture
def pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Pages that hold their own names."""
    for name in (*PAGES, docs_command.INDEX):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"# {name}\n")
    monkeypatch.setattr(docs_command, "PAGES", tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "page"),
    [
        ([], "llms.txt"),
        (["errors/UnknownTopic"], "docs/errors/UnknownTopic.md"),
        (["docs/errors/unknowntopic.md"], "docs/errors/UnknownTopic.md"),
        (["how_to/retry/"], "docs/how_to/retry.md"),
        (["rpc"], "docs/rpc.md"),
        (["README"], "README.md"),
        (["docs/README.md"], "docs/README.md"),
    ],
)
def test_a_page_is_printed(pages: Path, words: list[str], page: str) -> None:
    done = CliRunner().invoke(command_line(["docs"]), ["docs", *words])
    assert (done.exit_code, done.output) == (0, f"# {page}\n")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("errors/UnknownTopc", "there is no page 'errors/UnknownTopc': did you mean errors/UnknownTopic?"),
        ("zzz", "there is no page 'zzz'; `awoke docs` lists all pages"),
    ],
)
def test_a_page_that_does_not_exist_is_refused_with_similar_ones(pages: Path, name: str, said: str) -> None:
    done = CliRunner().invoke(command_line(["docs"]), ["docs", name])
    assert str(done.exception) == said


def test_an_awoke_without_documentation_says_how_to_make_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(docs_command, "PAGES", tmp_path / "none")
    done = CliRunner().invoke(command_line(["docs"]), ["docs"])
    assert "make docs" in str(done.exception)
