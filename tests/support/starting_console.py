"""Serves the console of an app that starts, for tests in a browser: `python -m tests.support.starting_console`.

Its argument is the time in seconds that the app has been starting for, by default two hours. It writes its address to
standard output. Each line of its standard input is the name of a process that reports, or
empty: browsers are told of a change, and there is none. It ends with its input.
"""

from __future__ import annotations

import sys
from typing import Any

from awoke.console.web.application import application
from awoke.console.web.grants import Rights, Role
from awoke.console.web.serving import Server
from awoke.console.web.steps import Step, StepState
from awoke.settings import load
from awoke.waiting.clock import wall_ms
from tests.unit.console.web.fakes import FakeLive, report

TWO_HOURS_S = 7_200


def steps(age_s: int) -> list[Step]:
    """A start that has had its brokers and topics, and waits for its first report since this many seconds."""
    now_ms = wall_ms()
    text = "supervisor 4711 starts, and imports the app for 2 nodes"
    done: dict[str, Any] = {"state": StepState.DONE, "since_ms": now_ms - 9_000}
    waiting: dict[str, Any] = {"state": StepState.WAITING, "since_ms": now_ms - age_s * 1_000}
    return [
        Step(name="Topics", text="8 topics are there", ended_ms=now_ms - 8_600, **done),
        Step(name="Swarm", text=text, **waiting),
        Step(name="Brokers", text="127.0.0.1:33981 has answered", ended_ms=now_ms - 8_990, **done),
        Step(name="Reports", text="__awoke-flights.reports was read to its end", ended_ms=now_ms - 8_000, **done),
        Step(name="First report", text="no process has reported yet", **waiting),
    ]


def main() -> None:
    """Serves the console until the input ends."""
    live: Any = FakeLive()
    live.steps = steps(int(sys.argv[1]) if len(sys.argv) > 1 else TWO_HOURS_S)
    rights = Rights(lambda scope: Role.ADMIN, ["*"], True)
    server = Server(application("flights", load({}).values, live, rights, ()), "127.0.0.1", 0)
    server.start()
    print(server.url, flush=True)
    for line in sys.stdin:
        if line.strip():
            live.add(report(line.strip(), app="flights"))
        else:
            for call in list(live.told):
                call()
    server.close()


if __name__ == "__main__":
    main()
