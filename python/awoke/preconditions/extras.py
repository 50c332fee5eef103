"""Libraries that only some parts need: they are extras, and are imported when such a part is used first."""

from __future__ import annotations

import importlib
from typing import Any

from awoke.errors import ConfigError


def needs(module: str, extra: str) -> Any:
    """Returns a module that is an extra of awoke.

    Raises:
        ConfigError: It is not installed; says how to install it.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        text = f"this needs the library {error.name!r}: install it with pip install 'awoke[{extra}]'"
        raise ConfigError(text, extra) from None
