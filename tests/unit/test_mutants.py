"""The mutants of the engine fit its sources: `make mutants`, which takes long, would stop at one that does not."""

from __future__ import annotations

import pytest

from tests.mutants import CONSUME, MUTANTS, REPOSITORY, Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=[each.name for each in MUTANTS])
def test_a_mutant_changes_one_place(mutant: Mutant) -> None:
    source = (REPOSITORY / CONSUME / mutant.file).read_text()
    assert source.count(mutant.before) == 1
