"""`awoke run module:app`: runs an app until a signal comes, in this process or in a swarm of several."""

from __future__ import annotations

import logging
import os
import threading
from typing import Annotated

import typer

from awoke import logs
from awoke.cli.options import BootstrapServers, Kafka, Socket, pairs


def run(
    target: Annotated[str, typer.Argument(metavar="MODULE:APP", help="The app, as in shop:app.")],
    workers: Annotated[int | None, typer.Option(help="Threads that run handlers, in each process.")] = None,
    nodes: Annotated[
        int | None, typer.Option(min=1, help="Run in so many processes, which a supervisor starts and watches.")
    ] = None,
    memory_limit: Annotated[
        str | None, typer.Option(help="With --nodes: replace a node that has more, as in 512M, in order.")
    ] = None,
    memory_hard_limit: Annotated[str | None, typer.Option(help="With --nodes: kill a node that has more.")] = None,
    hang_after_s: Annotated[
        float, typer.Option(help="With --nodes: replace a node that works on one job for longer.")
    ] = 300.0,
    silent_after_s: Annotated[
        float, typer.Option(help="With --nodes: replace a node that gives no sign of life for so long.")
    ] = 10.0,
    drain_timeout_s: Annotated[float, typer.Option(help="With --nodes: kill a node that takes longer to stop.")] = 35.0,
    restarts_max: Annotated[
        int, typer.Option(min=0, help="With --nodes: more restarts in a minute end the swarm.")
    ] = 5,
    restart_backoff_s: Annotated[
        float, typer.Option(min=0, help="With --nodes: before the second restart in a row; doubled each time.")
    ] = 1.0,
    static_members: Annotated[
        bool, typer.Option(help="With --nodes: each node keeps its name in the group, and so its partitions.")
    ] = True,
    socket: Socket = None,
    metrics_port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Serve metrics, health and threads there; 0 for a free port.")
    ] = None,
    embedded: Annotated[bool, typer.Option("--embedded", help="Run on brokers inside the process.")] = False,
    bootstrap_servers: BootstrapServers = None,
    kafka: Kafka = None,
    log_format: Annotated[str, typer.Option(help="text, or json: one document a line.")] = "text",
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "info",
    traceback: Annotated[bool, typer.Option("--traceback", hidden=True)] = False,
) -> None:
    """Run an app. SIGINT and SIGTERM finish running jobs, commit and end with 0; a second signal hurries."""
    if log_level.upper() not in logging.getLevelNamesMapping():
        raise typer.BadParameter(f"{log_level!r} is no level: debug, info, warning or error", param_hint="--log-level")
    if log_format not in logs.FORMATS:
        raise typer.BadParameter(f"{log_format!r} is no format: text or json", param_hint="--log-format")
    logs.set_up(log_level, log_format)
    from awoke.swarm.options import Options, bytes_of, socket_path

    if nodes is not None:
        if embedded:
            raise typer.BadParameter("brokers inside a process are not seen by others", param_hint="--embedded")
        from awoke.swarm.supervisor import Supervisor

        options = Options(
            target=target,
            nodes=nodes,
            workers=workers,
            bootstrap_servers=bootstrap_servers,
            kafka=pairs(kafka, "--kafka"),
            log_level=log_level,
            log_format=log_format,
            memory_soft_bytes=None if memory_limit is None else bytes_of(memory_limit),
            memory_hard_bytes=None if memory_hard_limit is None else bytes_of(memory_hard_limit),
            hang_after_s=hang_after_s,
            silent_after_s=silent_after_s,
            drain_timeout_s=drain_timeout_s,
            restarts_max=restarts_max,
            restart_backoff_s=restart_backoff_s,
            static_members=static_members,
            socket=socket or socket_path(target),
            metrics_port=metrics_port,
        )
        raise typer.Exit(Supervisor(options).run())
    if memory_limit is not None or memory_hard_limit is not None:
        raise typer.BadParameter("needs --nodes: nobody watches a process that runs alone", param_hint="--memory-limit")
    from awoke.application import find_app
    from awoke.runtime.signals import EXIT_LATE
    from awoke.swarm.app_socket import open_app_socket

    app = find_app(target)
    app.use(metrics_port=metrics_port)
    with open_app_socket(app, socket or socket_path(target)):
        code = app.run(
            bootstrap_servers=bootstrap_servers, workers=workers, embedded=embedded, kafka=pairs(kafka, "--kafka")
        )
    if code == EXIT_LATE or any(thread.name.startswith("awoke-") for thread in threading.enumerate()):
        logging.shutdown()
        os._exit(code)  # A handler that does not end must not hold up the process's end.
    raise typer.Exit(code)
