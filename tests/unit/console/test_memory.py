"""The memory of a process: its own and the shared part, read once a minute."""

from __future__ import annotations

from pathlib import Path

import pytest

from awoke.console.memory import SAMPLES, MemoryReader, read_memory
from awoke.console.views import Memory

ROLLUP = """5581-7fff ---p 00000000 00:00 0    [rollup]
Rss:               31000 kB
Pss:               20000 kB
Shared_Clean:       9000 kB
Shared_Dirty:       6000 kB
Private_Clean:      1000 kB
Private_Dirty:     15000 kB
"""


@pytest.fixture
def rollup(tmp_path: Path) -> Path:
    file = tmp_path / "smaps_rollup"
    file.write_text(ROLLUP)
    return file


def test_own_and_shared_memory_are_told_apart(rollup: Path) -> None:
    expected = Memory(own_bytes=16_000 << 10, shared_bytes=15_000 << 10, proportional_bytes=20_000 << 10)
    assert read_memory(rollup) == expected


def test_the_memory_of_this_process_is_read() -> None:
    found = read_memory()
    assert found is not None
    assert 1 << 20 < found.own_bytes <= found.proportional_bytes <= found.own_bytes + found.shared_bytes


@pytest.mark.parametrize("text", ["", "Pss: x kB\n", "Pss: 1 kB\n"])
def test_a_system_that_does_not_tell_it_is_no_error(text: str, rollup: Path) -> None:
    rollup.write_text(text)
    assert read_memory(rollup) is None
    assert read_memory(rollup / "missing") is None


def test_it_is_read_once_a_minute(rollup: Path) -> None:
    reader = MemoryReader(rollup)
    first = reader.memory()
    rollup.write_text(ROLLUP.replace("15000", "99000"))
    seen = list[bool]()
    for _ in range(SAMPLES):
        seen.append(reader.memory() == first)
        reader.sample()
    assert (seen, reader.memory() == first) == ([True] * SAMPLES, False)
