"""`awoke rpc`: calls methods of a service, and lists them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
import typer

import awoke
from awoke.cli.commands import group
from awoke.cli.options import BootstrapServers, Kafka, pairs
from awoke.cli.output import say_json, show_table
from awoke.errors import ConfigError, RpcError
from awoke.printable import printable

app = group("rpc", "Call methods of a service over Kafka.")

Service = Annotated[str, typer.Argument(help="The service's name.")]
Timeout = Annotated[float, typer.Option(help="Seconds to wait for the result.")]
Group = Annotated[str | None, typer.Option(help="The responders' group, if it is not the service's name.")]
Secret = Annotated[
    str | None, typer.Option(envvar="AWOKE_RPC_SECRET", help="The secret that signs calls; better in the environment.")
]


@app.command("call")
def call(
    service: Service,
    method: Annotated[str, typer.Argument(help="The method's name.")],
    arguments: Annotated[list[str] | None, typer.Argument(help="name=value; the value is JSON, or else text.")] = None,
    timeout_s: Timeout = 5.0,
    key: Annotated[str | None, typer.Option(help="Calls with the same key are executed in order.")] = None,
    # Results of a stream are always printed as they come. Scripts may still have this option.
    stream: Annotated[bool, typer.Option("--stream", hidden=True)] = False,
    group: Group = None,
    secret: Secret = None,
    bootstrap_servers: BootstrapServers = None,
    kafka: Kafka = None,
) -> None:
    """Call a method, and print its result as JSON: `awoke rpc call shop quote sku=A1 quantity=3`.

    Each result of a stream is one line, printed when it comes.
    """
    named = {name: value_of(text) for name, text in pairs(arguments, "an argument").items()}
    with open_caller(service, timeout_s, group, secret, bootstrap_servers, kafka) as caller:
        try:
            # A method with one result answers with a stream of that one.
            for result in caller.stream(method, key=key, **named):
                say_json(json.dumps(result, ensure_ascii=False))
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
) -> None:
    """Show the methods of a service: signature, description, and whether a call may be repeated."""
    with open_caller(service, timeout_s, group, secret, bootstrap_servers, kafka) as caller:
        found = caller.methods()
    show_table(("method", "idempotent", "returns", "what it does"), map(cells, found), title=service)


def cells(method: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns a method as a row of a table. The responder chooses the texts, so they are made harmless."""
    is_idempotent = "yes" if method["is_idempotent"] else "no"
    returns = f"stream of {method['result_type']}" if method["is_stream"] else method["result_type"]
    return printable(method["signature"]), is_idempotent, printable(returns), printable(method["doc"], keep="\n")


def open_caller(
    service: str,
    timeout_s: float,
    group: str | None,
    secret: str | None,
    bootstrap_servers: str | None,
    kafka: list[str] | None,
) -> awoke.rpc.Caller:
    """Returns a caller with these options."""
    return awoke.rpc.Caller(
        service,
        bootstrap_servers,
        name="awoke rpc",
        group=group,
        timeout_s=timeout_s,
        secret=None if secret is None else secret.encode(),
        kafka=pairs(kafka, "--kafka"),
    )


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
    return RpcError(words)
