"""`awoke threads`: the threads of a running app, by owner."""

from __future__ import annotations

import http.client
import urllib.request
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from awoke.errors import AwokeError

TIMEOUT_S = 5.0


class Entry(msgspec.Struct):
    """A thread as the app shows it."""

    owner: str
    name: str
    started_at: str


def threads(
    port: Annotated[int, typer.Argument(help="The app's metrics_port.", min=1, max=65535)],
    host: Annotated[str, typer.Option(help="The app's metrics_host.")] = "127.0.0.1",
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Show the threads of a running app: who owns each, and where it was started."""
    url = f"http://{host}:{port}/threads"
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:
            body = answer.read()
        entries = msgspec.json.decode(body, type=list[Entry])
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise AwokeError(f"what answers at {url} is no app: it does not list threads") from None
    except (OSError, http.client.HTTPException) as error:
        cause = getattr(error, "reason", None) or str(error) or type(error).__name__
        raise AwokeError(f"no app answers at {url}: {cause}; does it run with --metrics-port {port}?") from None
    if as_json:
        typer.echo(body.decode())
        return
    table = Table("owner", "thread", "started at")
    for entry in entries:
        # As text, for what stands in brackets would vanish as markup; folded, for a place that is cut tells nothing.
        cells = (entry.owner or "(nobody)", entry.name, entry.started_at)
        table.add_row(*(Text(each, overflow="fold") for each in cells))
    Console().print(table)
