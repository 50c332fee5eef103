"""The documentation that comes with awoke: pages are found by the names that users give them."""

from __future__ import annotations

from pathlib import Path

import pytest

import awoke
from awoke.cli.docs_pages import Documentation, installed

NAMES = ("README.md", "docs/README.md", "docs/rpc.md", "docs/errors/UnknownTopic.md", "docs/how_to/retry.md")
DOCUMENTATION = Documentation(dict.fromkeys(NAMES, b"# Page\n"))


@pytest.mark.parametrize(
    ("name", "page", "path"),
    [
        ("errors/UnknownTopic", "docs/errors/UnknownTopic.md", "/docs/errors/UnknownTopic/"),
        ("docs/errors/unknowntopic.md", "docs/errors/UnknownTopic.md", "/docs/errors/UnknownTopic/"),
        ("how_to/retry/", "docs/how_to/retry.md", "/docs/how_to/retry/"),
        ("rpc", "docs/rpc.md", "/docs/rpc/"),
        ("README", "README.md", "/"),
        ("docs/README.md", "docs/README.md", "/docs/"),
    ],
)
def test_a_page_is_found_by_its_name(name: str, page: str, path: str) -> None:
    assert DOCUMENTATION.page(name) == page
    assert DOCUMENTATION.path(page) == path


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("errors/UnknownTopc", "there is no page 'errors/UnknownTopc': did you mean errors/UnknownTopic?"),
        ("zzz", "there is no page 'zzz'; `awoke docs --text` lists all pages"),
    ],
)
def test_a_page_that_does_not_exist_is_refused_with_similar_ones(name: str, said: str) -> None:
    with pytest.raises(awoke.ConfigError) as refused:
        DOCUMENTATION.page(name)
    assert str(refused.value) == said


def test_an_awoke_without_documentation_says_how_to_make_it(tmp_path: Path) -> None:
    with pytest.raises(awoke.ConfigError, match="make docs"):
        installed(tmp_path / "none")
    (tmp_path / "broken").write_bytes(b"no archive")
    with pytest.raises(awoke.ConfigError, match="can't be read"):
        installed(tmp_path / "broken")
