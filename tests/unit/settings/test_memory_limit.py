"""Defaults for memory fit the limit that the system sets for the process; what was set explicitly stays."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from awoke import settings
from awoke.settings.loading import MEGABYTE, fitting_mb, memory_limit_bytes


def system(root: Path, groups: str, **limits: str) -> Path:
    """Makes a system whose process has these control groups, and limits by the path of their file (`__` for `/`)."""
    for path, text in {"proc__self__cgroup": groups, **limits}.items():
        file = root / path.replace("__", "/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


@pytest.fixture(autouse=True)
def no_address_space_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def file_of(path: str, name: str) -> str:
    return f"sys/fs/cgroup/{path}/{name}".replace("//", "/")


def test_the_smallest_limit_of_a_group_and_its_parents_counts(tmp_path: Path) -> None:
    limits = {
        file_of("a/b", "memory.max"): "max\n",
        file_of("a", "memory.max"): "1000\n",
        file_of("", "memory.max"): "5000\n",
    }
    assert memory_limit_bytes(system(tmp_path, "0::/a/b\n", **limits)) == 1000


def test_a_group_whose_path_is_not_seen_in_its_container_has_the_containers_limit(tmp_path: Path) -> None:
    groups = "5:cpu,cpuacct:/docker/1\n4:memory:/docker/1\n0::/\n"
    limits = {file_of("memory", "memory.limit_in_bytes"): "2000\n", file_of("", "memory.max"): "3000\n"}
    assert memory_limit_bytes(system(tmp_path, groups, **limits)) == 2000


def test_there_is_no_limit_without_control_groups(tmp_path: Path) -> None:
    assert memory_limit_bytes(tmp_path) is None
    assert memory_limit_bytes(system(tmp_path, "0::/\n", **{file_of("", "memory.max"): "max\n"})) is None


def test_the_address_space_is_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (700, resource.RLIM_INFINITY))
    assert memory_limit_bytes(tmp_path) == 700
    assert memory_limit_bytes(system(tmp_path, "0::/\n", **{file_of("", "memory.max"): "600\n"})) == 600


@pytest.mark.parametrize(
    ("limit_mb", "batch_mb", "queues_mb"), [(None, 256, 64), (4096, 256, 64), (400, 100, 50), (40, 10, 8), (4, 8, 8)]
)
def test_defaults_are_a_part_of_the_limit_and_not_too_small(
    limit_mb: int | None, batch_mb: int, queues_mb: int
) -> None:
    limit_bytes = None if limit_mb is None else limit_mb * MEGABYTE
    assert (fitting_mb(256, 4, limit_bytes), fitting_mb(64, 8, limit_bytes)) == (batch_mb, queues_mb)


def test_what_was_set_stays_and_a_default_names_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("awoke.settings.loading.memory_limit_bytes", lambda: 400 * MEGABYTE)
    loaded = settings.load({"fetch_memory_mb": 64}, tmp_path)
    found = {each.name: (each.value, each.origin) for each in loaded.explain()}
    assert found["fetch_memory_mb"] == ("64", "argument")
    assert found["fetch_batch_max_mb"] == ("100", "default: a quarter of the memory limit, 400 MB")


def test_defaults_stay_where_the_limit_is_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("awoke.settings.loading.memory_limit_bytes", lambda: 64 * 1024 * MEGABYTE)
    found = {each.name: (each.value, each.origin) for each in settings.load({}, tmp_path).explain()}
    assert (found["fetch_memory_mb"], found["fetch_batch_max_mb"]) == (("64", "default"), ("256", "default"))
