"""A schema registry inside the process, for tests: Confluent's REST API, memory only. Needs `awoke[registry]`."""

from __future__ import annotations

from awoke.testing.registry.server import EmbeddedRegistry

__all__ = ["EmbeddedRegistry"]
