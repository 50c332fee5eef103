"""A swarm beside the other members of its group: its nodes are static members, where the group's protocol has them."""

from __future__ import annotations

import contextlib
import signal
import subprocess
from pathlib import Path

import awoke
from tests.history.settings import Copy, Run
from tests.support.processes import signal_process
from tests.support.swarms import Swarm, gone

ENDS_WITHIN_S = 60.0
ANSWERS_WITHIN_S = 5.0
LEFT_WITHIN_S = 15.0
NODES_MAX = 4


class Nodes:
    """The swarm of a group. Commands that it cannot obey now are said, and no fault."""

    def __init__(self, run: Run, servers: str, copy: Copy, env: dict[str, str], folder: Path) -> None:
        self._run, self._servers, self._copy, self._env, self._folder = run, servers, copy, env, folder
        self._swarm = self._start()

    def scale(self, which: int) -> str:
        """Change the number of nodes."""
        return self._ask("scale", nodes=1 + which % NODES_MAX)

    def reload(self) -> str:
        """Begin to replace all nodes; the next fault does not wait for its end."""
        return self._ask("reload")

    def end(self, which: int, number: signal.Signals) -> str:
        """Signal a node. A memory limit ends it by SIGTERM."""
        with contextlib.suppress(awoke.AwokeError, ProcessLookupError):  # It has ended by itself meanwhile.
            running = [node for node in self._swarm.status()["nodes"] if node["pid"]]
            if running:
                node = running[which % len(running)]
                signal_process(node["pid"], number)
                return f"node {node['node']} of {len(running)}"
        return "no node runs"

    def replace_ended(self) -> str | None:
        """Start the swarm again if it has ended; how it did."""
        if self._swarm.process.is_running:
            return None
        text = f"the swarm ended with {self._swarm.process.wait(ENDS_WITHIN_S)}:\n{self.last_lines()}"
        self._keep_output()
        self._swarm.process.__exit__(None, None, None)
        self._swarm = self._start()
        return text

    def heal(self) -> str:
        """Have as many nodes as in the beginning."""
        return self._ask("scale", nodes=self._copy.nodes)

    def stop(self) -> tuple[int | None, str]:
        """Stop the swarm in order; its exit code, None where it does not end, and its last lines."""
        pids = self._pids()
        self._swarm.process.signal(signal.SIGTERM)
        try:
            code: int | None = self._swarm.process.wait(ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            code = None
        self._end(pids)
        return code, self.last_lines()

    def last_lines(self, count: int = 60) -> str:
        """Returns the last lines of the swarm."""
        return "\n".join(self._swarm.process.output.splitlines()[-count:])

    def close(self) -> None:
        """Kill what still runs."""
        self._end(self._pids())

    def _pids(self) -> set[int]:
        """The processes of its nodes; none when it has ended."""
        with contextlib.suppress(awoke.AwokeError):
            return {node["pid"] for node in self._swarm.status()["nodes"] if node["pid"]}
        return set()

    def _end(self, pids: set[int]) -> None:
        """Nothing of the swarm may be left then."""
        self._keep_output()
        self._swarm.process.__exit__(None, None, None)
        assert gone(pids, LEFT_WITHIN_S) == set(), f"left: {gone(pids, 0)}"

    def _keep_output(self) -> None:
        self._run.keep_output(f"swarm {self._swarm.process.pid} of {self._copy.group}", self._swarm.process.output)

    def _start(self) -> Swarm:
        options = [word for name, value in self._run.kafka.items() for word in ("--kafka", f"{name}={value}")]
        return Swarm(
            self._servers,
            self._copy.group,
            self._folder,
            *options,
            "--restarts-max",
            "1000",
            nodes=self._copy.nodes,
            env=self._env,
            is_classic=False,
            target="tests.history.apps:app",
        )

    def _ask(self, command: str, **arguments: int) -> str:
        asked = " ".join([command, *map(str, arguments.values())])
        try:
            self._swarm.ask(command, ANSWERS_WITHIN_S, **arguments)
        except awoke.AwokeError as error:
            return f"{asked}: {error}"
        return asked
