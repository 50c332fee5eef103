"""The reference of the settings has each of them, with its type, its default and its meaning."""

from __future__ import annotations

import pytest

import docs_reference
import docs_settings
from awoke.settings.fields import RunSettings, Settings


@pytest.mark.parametrize("settings", [Settings, RunSettings])
def test_every_setting_has_a_row(settings: type[Settings | RunSettings]) -> None:
    rows = docs_settings.table(settings).splitlines()[2:]
    assert [row.split("`")[1] for row in rows] == list(settings.__struct_fields__)


@pytest.mark.parametrize(
    "row",
    [
        "| `fetch_batch_max_mb` | `int` | `256` | `AWOKE_FETCH_BATCH_MAX_MB` | The maximum of memory for one fetched ",
        "| `group` | `str \\| None` | `None` | `AWOKE_GROUP` | The consumer group; ",
        "| `log_format` | `Literal['console', 'json']` | `'console'` | `AWOKE_LOG_FORMAT` | ",
        "| `kafka` | `dict[str, str]` | `{}` | - | librdkafka's properties",
    ],
)
def test_a_row_tells_type_default_variable_and_meaning(row: str) -> None:
    assert row in docs_settings.page()


def test_the_page_stands_in_the_reference() -> None:
    assert docs_reference.pages()["docs/settings_reference.md"] == docs_settings.page()
