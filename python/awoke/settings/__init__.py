"""Settings from arguments, the environment, a file and defaults, in this order, each with its origin.

Environment: `AWOKE_WORKERS=8`; librdkafka's properties as `AWOKE_KAFKA_SASL_USERNAME=…` (underscores become dots).
File: `awoke.toml`, or `[tool.awoke]` in `pyproject.toml`, in the working directory; properties under `[kafka]`.
`Settings` are those of an app, `RunSettings` those of `awoke run`, which it needs before it imports the app, and
`EngineSettings` the part of `Settings` that reaches the engine.
"""

from awoke.settings.fields import EngineSettings, RunSettings, Settings
from awoke.settings.files import files
from awoke.settings.kafka import (
    METADATA_REFRESH_MS,
    SESSION_TIMEOUT,
    SESSION_TIMEOUT_MS,
    KafkaValue,
    client_properties,
    embedded,
    number,
    properties_of,
)
from awoke.settings.loading import ARGUMENT, Loaded, LoadedRun, load, load_run, place_of, unknown_variables

__all__ = [
    "ARGUMENT",
    "METADATA_REFRESH_MS",
    "SESSION_TIMEOUT",
    "SESSION_TIMEOUT_MS",
    "EngineSettings",
    "KafkaValue",
    "Loaded",
    "LoadedRun",
    "RunSettings",
    "Settings",
    "client_properties",
    "embedded",
    "files",
    "load",
    "load_run",
    "number",
    "place_of",
    "properties_of",
    "unknown_variables",
]
