"""`awoke threads`: the threads of a running app, by owner."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from awoke.errors import AwokeError

TIMEOUT_S = 5.0


def threads(
    port: Annotated[int, typer.Argument(help="The app's metrics_port.", min=1, max=65535)],
    host: Annotated[str, typer.Option(help="The app's metrics_host.")] = "127.0.0.1",
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Show the threads of a running app: who owns each, and where it was started."""
    url = f"http://{host}:{port}/threads"
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:
            entries = json.load(answer)
    except (urllib.error.URLError, TimeoutError, ValueError) as error:
        cause = getattr(error, "reason", error)
        raise AwokeError(f"no app answers at {url}: {cause}; does it run with --metrics-port {port}?") from None
    if as_json:
        typer.echo(json.dumps(entries))
        return
    table = Table("owner", "thread", "started at")
    for entry in entries:
        table.add_row(entry["owner"] or "(nobody)", entry["name"], entry["started_at"])
    Console().print(table)
