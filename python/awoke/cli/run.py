"""`awoke run module:app`: runs an app until a signal comes, in this process or in a swarm of processes."""

from __future__ import annotations

import ast
import functools
import inspect
import logging
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import typer

from awoke.cli import failures
from awoke.cli.commands import Section, command
from awoke.cli.options import BootstrapServers, Kafka, Target, pairs
from awoke.errors import AwokeError, ConfigError
from awoke.operate.commands.socket_paths import note_at, socket_path
from awoke.preconditions.extras import needs
from awoke.settings import LoadedRun, RunSettings, Settings, load, load_run, place_of, unknown_variables
from awoke.settings.fields import PORT_MAX
from awoke.swarm.options import SwarmOptions, bytes_of
from awoke.text.exit_codes import EXIT_LATE

Function = TypeVar("Function", bound=Callable[..., Any])


@functools.cache
def texts_of(kind: type[Settings] | type[RunSettings]) -> dict[str, str]:
    """Returns the text below each field of a class of settings, on one line."""
    source = Path(sys.modules[kind.__module__].__file__ or "").read_text()
    tables = (each for each in ast.parse(source).body if isinstance(each, ast.ClassDef))
    table = next(each for each in tables if each.name == kind.__name__)
    found = {}
    for field, text in zip(table.body, table.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Expr):
            found[field.target.id] = " ".join(str(ast.literal_eval(text.value)).split())
    return found


def option(kind: type[Settings] | type[RunSettings], name: str) -> Any:
    """Returns the option for a setting, with the setting's text and default."""
    default = getattr(kind(), name)
    is_number = isinstance(default, int | float) and not isinstance(default, bool)
    shown = f"{default:g}" if is_number else str(default).lower()
    text = texts_of(kind)[name].replace("`", "").replace("None", "unset").removeprefix("True: ")
    text = text[0].upper() + text[1:] if isinstance(default, bool) else text
    ports: dict[str, Any] = {"min": 0, "max": PORT_MAX} if name.endswith("_port") else {}
    return typer.Option(help=text, show_default=False if default is None else shown, **ports)


def type_of(annotation: Any) -> Any:
    """Returns the type that an option takes for a setting; the settings themselves check which words a text may be."""
    if get_origin(annotation) is Literal:
        return str
    given = [each for each in get_args(annotation) if each is not type(None)]
    return given[0] if given else annotation


def takes_run_settings(function: Function) -> Function:
    """Gives a command an option for each setting of `awoke run`, in place of its parameter `**settings`.

    An option that is not given is `None`: the environment, the file or the default decides.
    """
    signature = inspect.signature(function)
    own = [each for each in signature.parameters.values() if each.kind is not inspect.Parameter.VAR_KEYWORD]
    types = {name: type_of(each) for name, each in get_type_hints(RunSettings).items()}
    settings = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[types[name] | None, option(RunSettings, name)],
        )
        for name in RunSettings.__struct_fields__
    ]
    hints = get_type_hints(function, include_extras=True)
    own = [each.replace(annotation=hints[each.name]) for each in own]
    function.__signature__ = signature.replace(parameters=[*own, *settings])  # type: ignore[attr-defined]
    function.__annotations__ = {each.name: each.annotation for each in (*own, *settings)}
    return function


logger = logging.getLogger(__name__)


@command(Section.RUN)
@takes_run_settings
def run(
    target: Target,
    workers: Annotated[int | None, option(Settings, "workers")] = None,
    metrics_port: Annotated[int | None, option(Settings, "metrics_port")] = None,
    embedded: Annotated[bool, typer.Option("--embedded", help="Run on Kafka brokers inside the process.")] = False,
    with_console: Annotated[
        bool, typer.Option("--console", help="Serve the app's console on 127.0.0.1:8686; in a single process.")
    ] = False,
    bootstrap_servers: BootstrapServers = None,
    kafka: Kafka = None,
    with_traceback: Annotated[bool, typer.Option("--traceback", hidden=True)] = False,
    **given: Any,
) -> None:
    """Run an app, in this process or in a swarm of processes.

    SIGINT and SIGTERM let running jobs finish, commit their offsets and exit with 0. A second signal does not wait for
    jobs. Options take precedence over the environment (AWOKE_NODES=4), and the environment over awoke.toml.
    """
    of_app = {
        "bootstrap_servers": bootstrap_servers,
        "workers": workers,
        "metrics_port": metrics_port,
        "kafka": pairs(kafka, "--kafka"),
    }
    from awoke.observe import logs  # Here, because every page of help loads this module.

    try:
        settings = _load(given)
        logs.set_up(settings.log_level, settings.log_format)
        for variable in unknown_variables():
            logger.warning("the environment variable %s is no setting of awoke's", variable)
        if settings.nodes is None and not settings.watch:
            code = _run_alone(target, settings, of_app, embedded, with_console)
        elif with_console:
            raise typer.BadParameter("a swarm is shown by `awoke console APP` beside it", param_hint="--console")
        else:
            code = _run_swarm(target, settings, of_app, embedded)
    except AwokeError as error:
        failures.show(error)
        raise typer.Exit(failures.code_of_run(error)) from None
    raise typer.Exit(code)


def _load(given: Mapping[str, Any]) -> RunSettings:
    """Returns the settings of the run.

    Raises:
        typer.BadParameter: An option is wrong.
        ConfigError: The environment or the file is wrong.
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
        if loaded.values.nodes is None and not loaded.values.watch:
            raise ConfigError(f"{place}: needs --nodes: a single process has no supervisor that watches it", name)


def _run_swarm(target: str, settings: RunSettings, of_app: Mapping[str, Any], embedded: bool) -> int:
    from awoke.swarm.supervisor import Supervisor

    if embedded:
        raise typer.BadParameter("brokers inside a process are not seen by others", param_hint="--embedded")
    soft, hard = settings.memory_limit, settings.memory_hard_limit
    app_settings = load(of_app).values
    both = set(SwarmOptions.__struct_fields__) & set(RunSettings.__struct_fields__) - {"socket"}
    socket = settings.socket or socket_path(target)
    options = SwarmOptions(
        **{**{name: getattr(settings, name) for name in both}, "nodes": settings.nodes or 1},
        target=target,
        workers=of_app["workers"],
        bootstrap_servers=of_app["bootstrap_servers"],
        kafka=of_app["kafka"],
        memory_soft_bytes=None if soft is None else bytes_of(soft),
        memory_hard_bytes=None if hard is None else bytes_of(hard),
        path=sys.path,
        arguments=sys.argv,
        socket=socket,
        name=note_at(socket, target).name,
        metrics_port=app_settings.metrics_port,
        metrics_host=app_settings.metrics_host,
        metrics_allowed_hosts=app_settings.metrics_allowed_hosts,
    )
    return Supervisor(options).run()


def _run_alone(
    target: str, settings: RunSettings, of_app: Mapping[str, Any], embedded: bool, with_console: bool
) -> int:
    from awoke.app.application import find_app, import_failed
    from awoke.operate.commands.process_socket import open_process_socket
    from awoke.runtime.process.ending import LATE_S, ProcessEnd, end_process, limit_end

    try:
        app = find_app(target)
    except AwokeError:
        raise
    except Exception as error:
        raise import_failed(target.partition(":")[0], error) from error
    app.use(metrics_port=of_app["metrics_port"])
    if with_console:
        for module in ("starlette", "jinja2", "uvicorn"):
            needs(module, "console")
        from awoke.console.web.serving import show_beside

        show_beside(app)
    with open_process_socket(app, settings.socket, target):
        code = app.run(
            bootstrap_servers=of_app["bootstrap_servers"],
            workers=of_app["workers"],
            embedded=embedded,
            kafka=of_app["kafka"],
        )
    if code == EXIT_LATE or any(thread.name.startswith("awoke-") for thread in threading.enumerate()):
        end_process(ProcessEnd(code, LATE_S))  # A handler that does not end must not delay the end of the process.
    limit_end(ProcessEnd(code, app.settings.shutdown_timeout_s))
    return code
