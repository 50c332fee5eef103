"""`awoke run module:app`: runs an app until a signal comes, in this process or in a swarm of several."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from awoke import logs
from awoke.cli import failures
from awoke.cli.options import BootstrapServers, Kafka, Socket, pairs
from awoke.errors import AwokeError, ConfigError
from awoke.exit_codes import EXIT_LATE
from awoke.settings import LoadedRun, RunSettings, load, load_run, place_of, unknown_variables
from awoke.swarm.options import Options, bytes_of, socket_path

logger = logging.getLogger(__name__)


def run(
    target: Annotated[str, typer.Argument(metavar="MODULE:APP", help="The app, as in shop:app.")],
    workers: Annotated[int | None, typer.Option(help="Threads that run handlers, in each process.")] = None,
    nodes: Annotated[
        int | None, typer.Option(min=1, help="Run in this many processes, which a supervisor starts and watches.")
    ] = None,
    memory_limit: Annotated[
        str | None, typer.Option(help="With --nodes: replace a node that has more, as in 512M, in order.")
    ] = None,
    memory_hard_limit: Annotated[str | None, typer.Option(help="With --nodes: kill a node that has more.")] = None,
    hang_after_s: Annotated[
        float | None, typer.Option(help="With --nodes: replace a node that works on one job for longer (300).")
    ] = None,
    silent_after_s: Annotated[
        float | None, typer.Option(help="With --nodes: replace a node that gives no sign of life for this long (10).")
    ] = None,
    drain_timeout_s: Annotated[
        float | None, typer.Option(help="With --nodes: kill a node that takes longer to stop (35).")
    ] = None,
    restarts_max: Annotated[
        int | None, typer.Option(min=0, help="With --nodes: more restarts in a minute end the swarm (5).")
    ] = None,
    restart_backoff_s: Annotated[
        float | None,
        typer.Option(min=0, help="With --nodes: before the second restart in a row; doubled each time (1)."),
    ] = None,
    static_members: Annotated[
        bool | None,
        typer.Option(help="With --nodes: each node keeps its name in the group, and so its partitions (it does)."),
    ] = None,
    socket: Socket = None,
    metrics_port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Serve metrics, health and threads there; 0 for a free port.")
    ] = None,
    embedded: Annotated[bool, typer.Option("--embedded", help="Run on brokers inside the process.")] = False,
    bootstrap_servers: BootstrapServers = None,
    kafka: Kafka = None,
    log_format: Annotated[str | None, typer.Option(help="text (the default), or json: one document a line.")] = None,
    log_level: Annotated[str | None, typer.Option(help="debug, info (the default), warning or error.")] = None,
    with_traceback: Annotated[bool, typer.Option("--traceback", hidden=True)] = False,
) -> None:
    """Run an app. SIGINT and SIGTERM finish running jobs, commit and end with 0; a second signal waits for no job.

    Options win over the environment (AWOKE_NODES=4), that over awoke.toml.
    """
    given = {
        "nodes": nodes,
        "memory_limit": memory_limit,
        "memory_hard_limit": memory_hard_limit,
        "hang_after_s": hang_after_s,
        "silent_after_s": silent_after_s,
        "drain_timeout_s": drain_timeout_s,
        "restarts_max": restarts_max,
        "restart_backoff_s": restart_backoff_s,
        "static_members": static_members,
        "socket": socket,
        "log_format": log_format,
        "log_level": log_level,
    }
    of_app = {
        "bootstrap_servers": bootstrap_servers,
        "workers": workers,
        "metrics_port": metrics_port,
        "kafka": pairs(kafka, "--kafka"),
    }
    try:
        settings = _load(given)
        logs.set_up(settings.log_level, settings.log_format)
        for variable in unknown_variables():
            logger.warning("the environment variable %s is no setting of awoke's", variable)
        code = (_run_alone if settings.nodes is None else _run_swarm)(target, settings, of_app, embedded)
    except AwokeError as error:
        failures.show(error)
        raise typer.Exit(failures.code_of_run(error)) from None
    raise typer.Exit(code)


def _load(given: Mapping[str, Any]) -> RunSettings:
    """Returns the settings of the run.

    Raises:
        typer.BadParameter: an option is wrong; ConfigError: the environment or the file is.
    """
    try:
        loaded = load_run(given)
        _check_memory_limits(loaded)
    except ConfigError as error:
        if given.get(error.property) is None:
            raise
        raise typer.BadParameter(str(error), param_hint="--" + error.property.replace("_", "-")) from None
    return loaded.values


def _check_memory_limits(loaded: LoadedRun) -> None:
    for name in ("memory_limit", "memory_hard_limit"):
        text, place = getattr(loaded.values, name), place_of(name, loaded.origins.get(name, ""))
        if text is None:
            continue
        try:
            bytes_of(text)
        except ConfigError as error:
            raise ConfigError(f"{place}: {error}", name) from None
        if loaded.values.nodes is None:
            raise ConfigError(f"{place}: needs --nodes: a single process has no supervisor that watches it", name)


def _run_swarm(target: str, settings: RunSettings, of_app: Mapping[str, Any], embedded: bool) -> int:
    from awoke.swarm.supervisor import Supervisor

    if embedded:
        raise typer.BadParameter("brokers inside a process are not seen by others", param_hint="--embedded")
    assert settings.nodes is not None
    soft, hard = settings.memory_limit, settings.memory_hard_limit
    app_settings = load(of_app).values
    options = Options(
        target=target,
        nodes=settings.nodes,
        workers=of_app["workers"],
        bootstrap_servers=of_app["bootstrap_servers"],
        kafka=of_app["kafka"],
        log_level=settings.log_level,
        log_format=settings.log_format,
        memory_soft_bytes=None if soft is None else bytes_of(soft),
        memory_hard_bytes=None if hard is None else bytes_of(hard),
        hang_after_s=settings.hang_after_s,
        silent_after_s=settings.silent_after_s,
        drain_timeout_s=settings.drain_timeout_s,
        restarts_max=settings.restarts_max,
        restart_backoff_s=settings.restart_backoff_s,
        static_members=settings.static_members,
        socket=settings.socket or socket_path(target),
        metrics_port=app_settings.metrics_port,
        metrics_host=app_settings.metrics_host,
        metrics_allowed_hosts=app_settings.metrics_allowed_hosts,
    )
    return Supervisor(options).run()


def _run_alone(target: str, settings: RunSettings, of_app: Mapping[str, Any], embedded: bool) -> int:
    from awoke.application import find_app, import_failed
    from awoke.swarm.app_socket import open_app_socket

    try:
        app = find_app(target)
    except AwokeError:
        raise
    except Exception as error:
        raise import_failed(target.partition(":")[0], error) from error
    app.use(metrics_port=of_app["metrics_port"])
    with open_app_socket(app, settings.socket or socket_path(target)):
        code = app.run(
            bootstrap_servers=of_app["bootstrap_servers"],
            workers=of_app["workers"],
            embedded=embedded,
            kafka=of_app["kafka"],
        )
    if code == EXIT_LATE or any(thread.name.startswith("awoke-") for thread in threading.enumerate()):
        logging.shutdown()
        os._exit(code)  # A handler that does not end must not hold up the process's end.
    return code
