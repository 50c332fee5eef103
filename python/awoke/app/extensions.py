"""The extensions of an app, loaded when it runs: the one place that knows the runtime and all that is added to it.

The metrics of a process are counted from its events, given to OpenTelemetry, and served with its health over HTTP. The
other extensions are those of the console, the answers to queries of tables, and the watch over jobs that take too
long.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from awoke.console.process_commands import ProcessCommands
from awoke.console.reporter import Reporter
from awoke.console.secret_names import names_of
from awoke.declare.lifecycle import Runner
from awoke.observe.metrics.recorder import Recorder
from awoke.observe.process import ThisProcess
from awoke.observe.web import http
from awoke.observe.web.endpoint import Endpoint
from awoke.operate.commands.actions import Actions
from awoke.runtime.extension import Extension
from awoke.runtime.process.runner import AppRunner
from awoke.runtime.process.table_queries import TableQueries

logger = logging.getLogger(__name__)


def extensions_of(runner: AppRunner) -> list[Extension]:
    """Makes the extensions that the settings ask for, in the order of their start."""
    app, found = runner.app, list[Extension]()
    if runner.metrics is not None:
        found.append(ServedMetrics(runner, runner.metrics))
    reporter = None
    if runner.settings.console:
        reporter = Reporter(runner, app.name, app.events, runner.loaded, ThisProcess.node, names_of(app))
        found.append(reporter)
    found.append(ProcessCommands(runner, reporter))
    queries = TableQueries(runner)
    if queries.is_needed and runner.settings.table_queries:
        found.append(queries)
    found.append(runner.overdue)
    return found


def actions_of(runner: Runner) -> Actions | None:
    """Returns what executes the commands of operators in a process."""
    commands = runner.extension(ProcessCommands)
    return None if commands is None else commands.actions


class ServedMetrics(Extension):
    """Fills a recorder, which jobs and calls fill, too, and opens the ways out that the settings ask for."""

    def __init__(self, runner: AppRunner, recorder: Recorder) -> None:
        self._runner, self._recorder = runner, recorder
        self.endpoint: Endpoint | None = None
        """Serves metrics and health, where this process listens at a port."""
        self._end_listening: Callable[[], None] | None = None

    def start(self) -> None:
        """Begins to count and to serve.

        Raises:
            ConfigError: The port is taken; OpenTelemetry is asked for and not installed.
        """
        settings = self._runner.settings
        self._end_listening = self._runner.events.subscribe("*", self._recorder.on_event)
        self._recorder.attach(self._runner)
        if settings.metrics_otel:
            self._recorder.open_instruments({} if ThisProcess.node is None else {"node": str(ThisProcess.node)})
        if settings.metrics_port is not None and self._runner.serves_metrics:
            host, names = settings.metrics_host, settings.metrics_allowed_hosts
            self.endpoint = Endpoint(settings.metrics_port, self._runner, host, names)
            self.endpoint.start()
            logger.info("metrics, health and threads at http://%s", http.authority(host, self.endpoint.port))

    def stop(self, timeout_s: float) -> None:
        """Closes the port, and gives OpenTelemetry no more values. Blocks while an answer is written, at most."""
        if self.endpoint is not None:
            self.endpoint.close()
        self._recorder.close()
        if self._end_listening is not None:
            self._end_listening()
