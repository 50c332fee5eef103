"""`awoke threads`: the threads of a running app, by owner."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from awoke.cli.commands import Section, command
from awoke.cli.options import AsJson, Socket
from awoke.cli.output import say_json, show_table
from awoke.cli.swarm import ask
from awoke.errors import AwokeError, ConfigError
from awoke.observe.web.http import authority
from awoke.text.printable import printable

TIMEOUT_S = 5.0
PORT_MAX = 65_535
FORBIDDEN = 403


class ThreadLine(msgspec.Struct, omit_defaults=True):
    """A thread, as the app reports it."""

    owner: str
    name: str
    started_at: str
    node: int | None = None
    """The node of a swarm that it belongs to; `None` for a single process."""


@command(Section.WATCH)
def threads(
    target: Annotated[
        str, typer.Argument(metavar="MODULE:APP|PORT", help="The app, as in shop:app, or its metrics_port.")
    ],
    host: Annotated[str, typer.Option(help="The app's metrics_host, if a port is given.")] = "127.0.0.1",
    socket: Socket = None,
    as_json: AsJson = False,
) -> None:
    """Show the threads of a running app or swarm: the owner of each, and the place where it was started."""
    if ":" in target or socket is not None:
        entries = msgspec.convert(ask(target, socket, "threads")["threads"], list[ThreadLine])
    else:
        entries = served_at(host, port_of(target))
    if as_json:
        for each in entries:
            say_json(msgspec.json.encode(each).decode())
        return
    has_nodes = any(each.node is not None for each in entries)
    nodes = [[str(each.node)] if has_nodes else [] for each in entries]
    rows = [
        [*node, *map(printable, (each.owner or "(unknown)", each.name, each.started_at))]
        for node, each in zip(nodes, entries, strict=True)
    ]
    show_table([*(["node"] if has_nodes else []), "owner", "thread", "started at"], rows)


def port_of(word: str) -> int:
    """Returns a port.

    Raises:
        ConfigError: The word is no port.
    """
    if not word.isdecimal() or not 1 <= int(word) <= PORT_MAX:
        raise ConfigError(f"{word!r} is neither MODULE:APP nor a port from 1 to {PORT_MAX}", "target")
    return int(word)


def served_at(host: str, port: int) -> list[ThreadLine]:
    """Returns the threads of an app or a swarm, asked over HTTP. Blocks.

    Raises:
        AwokeError: No app answers there.
    """
    import http.client  # Here, because only this command speaks HTTP.
    import urllib.error
    import urllib.request

    url = f"http://{authority(host, port)}/threads"
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:
            return msgspec.json.decode(answer.read(), type=list[ThreadLine])
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise AwokeError(f"what answers at {url} is no app: it does not list threads") from None
    except urllib.error.HTTPError as error:
        with error:
            if error.code != FORBIDDEN:
                raise AwokeError(f"no app answers at {url}: {error.reason}") from None
        text = f"the app at {url} does not answer by this name: use its IP address, or add it to metrics_allowed_hosts"
        raise AwokeError(text) from None
    except (OSError, http.client.HTTPException) as error:
        cause = getattr(error, "reason", None) or str(error) or type(error).__name__
        raise AwokeError(f"no app answers at {url}: {cause}; does it run with --metrics-port {port}?") from None
