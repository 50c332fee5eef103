"""Opens the registry that the settings name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from awoke.errors import ConfigError
from awoke.payloads.registry.schemas import Schemas
from awoke.settings import Settings

if TYPE_CHECKING:
    from awoke.payloads.registry.client import SchemaRegistry


def open_registry(settings: Settings) -> SchemaRegistry:
    """Returns a client of the registry in the settings. Opens no connection.

    Raises:
        ConfigError: No registry is set; a setting is wrong; httpx2 is not installed.
    """
    if settings.registry_url is None:
        text = "a format reads and writes schemas of a registry, and none is set: say registry_url='http://…'"
        text = f"{text}, or set AWOKE_REGISTRY_URL"
        raise ConfigError(text, "registry_url")
    from awoke.payloads.registry.access import BasicAuth, BearerToken, OAuth, Tls
    from awoke.payloads.registry.client import SchemaRegistry
    from awoke.payloads.registry.options import RegistryOptions

    options = RegistryOptions(timeout_s=settings.registry_timeout_s, cache_max=settings.registry_cache_max)
    if settings.registry_token is not None:
        options["auth"] = BearerToken(settings.registry_token)
    elif settings.registry_oauth_url is not None:
        options["auth"] = OAuth(
            settings.registry_oauth_url,
            settings.registry_user or "",
            settings.registry_password or "",
            settings.registry_oauth_scope,
        )
    elif settings.registry_user is not None:
        options["auth"] = BasicAuth(settings.registry_user, settings.registry_password or "")
    if settings.registry_ca or settings.registry_certificate:
        options["tls"] = Tls(
            settings.registry_ca,
            settings.registry_certificate,
            settings.registry_key,
            settings.registry_key_password,
        )
    return SchemaRegistry(settings.registry_url, **options)


def schemas_of(settings: Settings) -> Schemas:
    """Returns the schemas of the registry in the settings. Opens no connection."""
    return Schemas(lambda: open_registry(settings), lambda: settings.registry_register)
