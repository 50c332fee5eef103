"""The options that name an app, by whose types a command decodes messages and masks their secret fields."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from awoke.errors import ConfigError
from awoke.text.printable import harmless_json
from awoke.text.secrets import HIDDEN

if TYPE_CHECKING:
    import awoke
    from awoke.console.explorer.parts import DecodedParts
    from awoke.payloads.decoding.registered import ShownPart

HIDDEN_BECAUSE = "it has secret fields, and is hidden because it can't be decoded by the app's types"
KEEP_SECRETS = "--keep-secrets"

OfApp = Annotated[
    str | None,
    typer.Option(
        "--app",
        metavar="MODULE:APP",
        help="The app whose types decode keys and values, and whose fields that awoke.Secret marks are masked.",
    ),
]
KeepSecrets = Annotated[bool, typer.Option(KEEP_SECRETS, help="Print the app's secret fields as they are.")]


def check_keeps(target: str | None, keeps_secrets: bool) -> None:
    """Checks that an app is named where secret fields are to be kept.

    Raises:
        ConfigError: None is.
    """
    if keeps_secrets and target is None:
        raise ConfigError(f"{KEEP_SECRETS} is about the fields of an app: name it with --app", KEEP_SECRETS)


def check_with_app(target: str | None, decode: bool, registry_url: str | None) -> None:
    """Checks that no other registry is named beside an app, whose own settings name one.

    Raises:
        BadParameter: One is.
    """
    if target is not None and (decode or registry_url is not None):
        text = "decodes by the app's types and the registry of its settings: leave out --decode and --registry-url"
        raise typer.BadParameter(text, param_hint="--app")


@contextlib.contextmanager
def types_of(target: str, keeps_secrets: bool) -> Iterator[DecodedParts]:
    """Yields what decodes messages by the types of an app, inside the block.

    Raises:
        AppNotFound: There is no such app.
    """
    from awoke.app.application import find_app  # Here and below: they load the Kafka client.
    from awoke.console.explorer.parts import DecodedParts
    from awoke.console.web.code import Code
    from awoke.declare.secret_topics import NO_SECRETS

    app = find_app(target)
    code = Code.of(app)
    secrets = NO_SECRETS if keeps_secrets or code.secrets is None else code.secrets
    with DecodedParts(app.settings, code.decoders, secrets, reveals=True) as parts:
        yield parts


def shown_by(parts: DecodedParts, message: awoke.Message[Any], *names: Literal["key", "value"]) -> list[ShownPart]:
    """Returns these parts of a message as the app's types show them. Blocks for schemas that are not there yet.

    Raises:
        RegistryError: The registry does not answer, or does not let the command in.
    """
    return [_shown(parts, message, name) for name in names]


def _shown(parts: DecodedParts, message: awoke.Message[Any], name: Literal["key", "value"]) -> ShownPart:
    from awoke.payloads.decoding.registered import Decoded, ShownPart, is_of_all, reason

    raw = message.raw_key if name == "key" else message.raw_value
    if raw is None:
        return ShownPart(name, None)
    note = None
    try:
        found = parts.document(message.topic, name, raw, message.headers)
    except Exception as error:  # The decoders are user code, and libraries that read foreign bytes.
        cause = error.__cause__ or error
        if is_of_all(cause):
            raise cause from None
        found, note = None, reason(cause)
    if found is not None:
        return ShownPart(name, raw, Decoded(harmless_json(found.json), found.schema))
    if parts.is_masked(message.topic, name):
        return ShownPart(name, HIDDEN.encode(), note=HIDDEN_BECAUSE)  # The text of an error may quote a secret.
    return ShownPart(name, raw, note=note)
