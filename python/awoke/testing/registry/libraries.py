"""The optional libraries of the embedded schema registry, imported on first use."""

from __future__ import annotations

import importlib
from typing import Any

from awoke.errors import ConfigError


def library(name: str) -> Any:
    """Returns an imported library: `fastavro` or `jsonschema`. Blocks for the import.

    Raises:
        ConfigError: It is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError:
        text = f"the embedded schema registry needs {name}: pip install 'awoke[registry]'"
        raise ConfigError(text, "registry") from None
