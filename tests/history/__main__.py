"""The command line: `python -m tests.history --mode lanes --protocol kip848 --seconds 300 --seed 7`.

Exits with 0 when all is well and with 1 when the history shows a fault.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.history.run import run
from tests.history.settings import FAULTS, MODES, PROTOCOLS, Run


def settings_of(words: list[str] | None = None) -> Run:
    """Returns the settings of the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.history", description=__doc__)
    parser.add_argument("--mode", choices=MODES, default="plain")
    parser.add_argument("--protocol", choices=PROTOCOLS, default="classic")
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--per-s", type=int, default=Run.per_s, help="messages produced each second")
    parser.add_argument("--faults", nargs="*", choices=FAULTS, default=list(FAULTS), help="what the nemesis may choose")
    parser.add_argument("--keep", type=Path, help="a folder for what the members log")
    found = parser.parse_args(words)
    return Run(found.mode, found.protocol, found.seconds, found.seed, found.per_s, tuple(found.faults), found.keep)


def main() -> int:
    """Run once; the exit code."""
    settings = settings_of()
    print(
        f"mode {settings.mode}, protocol {settings.protocol}, {settings.seconds:g} s, seed {settings.seed}", flush=True
    )
    return 1 if run(settings).faults else 0


if __name__ == "__main__":
    sys.exit(main())
