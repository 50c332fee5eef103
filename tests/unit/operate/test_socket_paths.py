"""The paths of sockets: one for each target and user, and the process of a broker in memory behind its own."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from awoke.operate.socket_paths import own_folder, socket_path


def test_a_path_has_the_name_of_its_target_without_what_a_file_name_must_not_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert socket_path("a/b:c") == f"{tmp_path}/awoke-a-b-c.sock"


def test_without_a_runtime_folder_it_lies_in_the_users_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", "")
    assert own_folder() == Path(tempfile.gettempdir()) / f"awoke-{os.getuid()}"
    assert Path(socket_path("shop:app")).parent == own_folder()
