"""A description of a workspace as cargo gives it, with packages in a folder of the test's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


class Workspace:
    """Packages and their dependencies. The first one that is added is the extension module."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._packages: list[dict[str, Any]] = []
        self._nodes: list[dict[str, Any]] = []

    def add(
        self,
        name: str,
        version: str = "1.0.0",
        *,
        license: str = "MIT",
        linked: Sequence[str] = (),
        built_with: Sequence[str] = (),
        files: Mapping[str, str] | None = None,
        **other: Any,
    ) -> Path:
        """Adds a package with these files, and returns its folder. `linked` and `built_with` name its dependencies."""
        folder = self._folder / name
        for file, text in ({"LICENSE": f"the licence of {name}"} if files is None else files).items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text(text)
        folder.mkdir(exist_ok=True)
        described = {
            "id": name,
            "name": name,
            "version": version,
            "license": license,
            "authors": [],
            "source": None if name.startswith("awoke-") else "registry",
            "manifest_path": str(folder / "Cargo.toml"),
            "targets": [{"kind": ["lib"]}],
        }
        self._packages.append(described | other)
        deps = [{"pkg": each, "dep_kinds": [{"kind": None}]} for each in linked]
        deps += [{"pkg": each, "dep_kinds": [{"kind": "build"}]} for each in built_with]
        self._nodes.append({"id": name, "features": [], "deps": deps})
        return folder

    @property
    def metadata(self) -> dict[str, Any]:
        """The description."""
        return {"packages": self._packages, "resolve": {"nodes": self._nodes}}
