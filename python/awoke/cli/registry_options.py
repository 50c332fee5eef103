"""The option for the schema registry of a command, and the client for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from awoke.cli.arguments import USERINFO
from awoke.cli.output import say
from awoke.errors import ConfigError
from awoke.settings import load

if TYPE_CHECKING:
    from awoke.payloads.registry.client import SchemaRegistry

RegistryUrl = Annotated[
    str | None,
    typer.Option(
        "--registry-url",
        help="The schema registry: http://host:port. For its login use AWOKE_REGISTRY_USER and so on.",
    ),
]

NONE_SET = (
    "no schema registry is set: say --registry-url http://host:8081, or set AWOKE_REGISTRY_URL, "
    "or registry_url in awoke.toml"
)
VISIBLE = (
    "other users can see the arguments of this process, and so the password in --registry-url: "
    "use AWOKE_REGISTRY_USER and AWOKE_REGISTRY_PASSWORD instead"
)


def registry_at(url: str | None) -> SchemaRegistry:
    """Returns a client of the registry that the option names, or else the settings. Opens no connection.

    Raises:
        ConfigError: None is named; a setting of it is wrong; httpx2 is not installed.
    """
    from awoke.payloads.registry.schemas import open_registry  # Here, because it loads HTTP, and `--help` needs none.

    if url is not None and USERINFO.search(url):
        say(f"warning: {VISIBLE}", err=True)
    settings = load({"registry_url": url}).values
    if settings.registry_url is None:
        raise ConfigError(NONE_SET, "registry_url")
    return open_registry(settings)
