"""Serves the console of an app that runs elsewhere: `python -m tests.support.swarm_console APP SERVERS SECRET`.

It writes its address to standard output, and ends with its standard input.
"""

from __future__ import annotations

import sys

from awoke.console import Role, asgi
from awoke.console.web.serving import Server
from awoke.settings import load


def main(app: str, servers: str, secret: str) -> None:
    """Serves the console until the input ends."""
    settings = load({"bootstrap_servers": servers, "console_secret": secret}).values
    server = Server(asgi(app, policy=lambda scope: Role.ADMIN, verbs=["*"], settings=settings), "127.0.0.1", 0)
    server.start()
    sys.stdout.write(f"{server.url}\n")
    sys.stdout.flush()
    sys.stdin.read()
    server.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
