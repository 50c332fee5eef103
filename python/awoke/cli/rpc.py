"""`awoke rpc`: calls methods of a service, and lists them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

import awoke
from awoke.cli.commands import Section, group
from awoke.cli.options import AsJson, BootstrapServers, Kafka, pairs
from awoke.cli.output import say_json, show_table
from awoke.cli.registry_options import RegistryUrl, registry_at
from awoke.errors import ConfigError, RpcError, page_command
from awoke.text.printable import printable

if TYPE_CHECKING:
    from awoke.cli.encoding.calls import ArgumentFormat
    from awoke.payloads.formats.format import Payload

app = group("rpc", "Call methods of a service over Kafka.", Section.MESSAGES)

Service = Annotated[str, typer.Argument(help="The service's name.")]
Timeout = Annotated[float, typer.Option(help="The longest wait for the result.")]
Group = Annotated[str | None, typer.Option(help="The responders' group, if it is not the service's name.")]
Secret = Annotated[
    str | None, typer.Option(envvar="AWOKE_RPC_SECRET", help="The secret that signs calls; better in the environment.")
]


@app.command("call")
def call(
    service: Service,
    method: Annotated[str, typer.Argument(help="The method's name.")],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="NAME=VALUE", help="An argument; the value is JSON, or else text.")
    ] = None,
    timeout_s: Timeout = 5.0,
    key: Annotated[str | None, typer.Option(help="Calls with the same key are executed in order.")] = None,
    group: Group = None,
    secret: Secret = None,
    registry_url: RegistryUrl = None,
    bootstrap_servers: BootstrapServers = None,
    kafka: Kafka = None,
) -> None:
    """Call a method, and print its result as JSON: `awoke rpc call shop quote sku=A1 quantity=3`.

    Each result of a stream is one line, printed when it comes. An argument in a format of a schema registry is written
    by the schema that the registry has for it, and a result is read by the schema that it names.
    """
    from awoke.cli.encoding.calls import ResultTexts  # Here, because it loads formats, and `--help` needs none.
    from awoke.payloads.registry.schemas import Schemas

    named = {name: value_of(text) for name, text in pairs(arguments, "an argument").items()}
    schemas = Schemas(lambda: registry_at(registry_url))
    options = {"timeout_s": timeout_s, "group": group, "schemas": schemas}
    with (
        contextlib.closing(schemas),
        open_caller(service, bootstrap_servers, secret, kafka, **options) as caller,
    ):
        results = ResultTexts(service, method, schemas)
        try:
            for result in called(caller, method, key, named):
                say_json(results.json(result))
        except TypeError as error:
            raise ConfigError(f"{method}: {error}", "arguments") from None
        except RpcError as error:
            raise with_advice(caller, error) from None


@app.command("methods")
def methods(
    service: Service,
    timeout_s: Timeout = 5.0,
    group: Group = None,
    secret: Secret = None,
    bootstrap_servers: BootstrapServers = None,
    kafka: Kafka = None,
    as_json: AsJson = False,
) -> None:
    """List the methods of a service: signature, description, and whether a call may be repeated."""
    with open_caller(service, bootstrap_servers, secret, kafka, timeout_s=timeout_s, group=group) as caller:
        found = caller.methods()
    if as_json:
        for method in found:
            say_json(msgspec.json.encode(method).decode())
    else:
        show_table(("method", "idempotent", "returns", "what it does"), map(cells, found))


def called(caller: awoke.rpc.Caller, method: str, key: str | None, named: dict[str, Any]) -> Iterator[Payload | None]:
    """Calls a method with JSON, or in its format if it refuses JSON; yields its results as they come.

    So a method that takes JSON costs one request. A method in a format can't have been executed: its argument was not
    read. No parameter may be named as an option of calls, but a field of a record may.

    Raises:
        TypeError: The arguments can't be sent. RpcError: The method's, or the caller's. ConfigError: No registry is
        set. AwokeError: The registry gives no schema, or the arguments do not fit it.
    """
    from awoke.cli.encoding.calls import RawFormat
    from awoke.rpc.call_options import CALLER_WORDS

    raw = RawFormat()
    form = argument_format(caller, method) if CALLER_WORDS & named.keys() else None
    if form is None:
        has_results = False
        try:
            # A method with one result answers with a stream of that one.
            for result in caller.stream(method, key=key, returns=raw, **named):
                has_results = True
                yield result
        except awoke.rpc.InvalidArgument:
            form = None if has_results else argument_format(caller, method)
            if form is None:
                raise
        else:
            return
    try:
        results = caller.stream(method, named, key=key, argument=form, returns=raw)
    except (ConfigError, awoke.registry.RegistryError) as error:
        raise form.explained(error) from None
    yield from results


def argument_format(caller: awoke.rpc.Caller, method: str) -> ArgumentFormat | None:
    """Returns the format of a method's argument; None if it is JSON, or if the service does not tell.

    Raises:
        AwokeError: It can't be written at the shell.
    """
    try:
        found = next((each for each in caller.methods() if each["name"] == method), None)
    except RpcError:  # The error of the call says more.
        return None
    if found is None or found.get("argument_format") is None:
        return None
    from awoke.cli.encoding.calls import ArgumentFormat

    return ArgumentFormat(found)


def cells(method: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns a method as a row of a table. The responder chooses the texts, so they are made harmless."""
    is_idempotent = "yes" if method["is_idempotent"] else "no"
    returns = f"stream of {method['result_type']}" if method["is_stream"] else method["result_type"]
    signature = method["signature"] + form(method.get("argument_format"))
    returns += form(method.get("result_format"))
    return printable(signature), is_idempotent, printable(returns), printable(method["doc"], keep="\n")


def form(name: str | None) -> str:
    """Returns the format of an argument or a result, to stand behind its type; nothing for JSON."""
    return "" if name is None else f" as {name}"


def open_caller(
    service: str,
    bootstrap_servers: str | None,
    secret: str | None,
    kafka: list[str] | None,
    **options: Any,
) -> awoke.rpc.Caller:
    """Returns a caller with these options; the others are those of `Caller`."""
    key = None if secret is None else secret.encode()
    properties = pairs(kafka, "--kafka")
    return awoke.rpc.Caller(service, bootstrap_servers, name="awoke rpc", secret=key, kafka=properties, **options)


def value_of(text: str) -> Any:
    """Returns the value of a JSON text, or the text itself if it is no JSON."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


def with_advice(caller: awoke.rpc.Caller, error: RpcError) -> RpcError:
    """Returns an error with advice for the command line."""
    words = printable(f"{error.code}: {error}")
    if isinstance(error, awoke.rpc.Unimplemented):
        words += f"; see: awoke rpc methods {caller.service}"
    elif isinstance(error, awoke.rpc.DeadlineExceeded):
        words += "; wait longer with --timeout-s"
    if error.remote_traceback:
        words += "\n" + printable(error.remote_traceback, keep="\n")
    # A class of the caller's own may take other arguments, and has no page.
    kind = type(error) if page_command(type(error)) else RpcError
    return kind(words)
