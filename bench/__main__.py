"""Runs every benchmark on one broker; `--quick` makes them small, to check that they work."""

from __future__ import annotations

import argparse
import subprocess
import sys

from bench.harness import REPOSITORY, brokers

FULL: dict[str, list[str]] = {
    "consume": [],
    "produce": [],
    "sync_produce": [],
    "lone_message": [],
    "idle": [],
    "fetch_memory": [],
    "waiting": [],
    "rebalances": [],
    "ordered_append": [],
    "lanes": [],
    "handles": [],
    "exactly_once": [],
    "state": [],
    "handlers": [],
    "formats": [],
    "swarm": [],
    "rpc": [],
    "rpc_load": [],
    "start_up": [],
    "free_threading": [],
    "peers": [],
    "growth": [],
    "testing": [],
    "web_console": [],
    "live_update": [],
    "console_price": [],
    "watch": [],
}
QUICK: dict[str, list[str]] = {
    "consume": ["--messages", "100000", "--runs", "1"],
    "produce": ["--messages", "100000", "--runs", "1"],
    "sync_produce": ["--messages", "200", "--runs", "1"],
    "lone_message": ["--messages", "200", "--runs", "1"],
    "idle": ["--seconds", "5"],
    "fetch_memory": ["--seconds", "2", "--runs", "1", "--messages", "100000"],
    "waiting": ["--quick"],
    "rebalances": ["--rebalances", "20"],
    "ordered_append": ["--quick"],
    "lanes": ["--messages", "10000"],
    "handles": ["--messages", "50"],
    "exactly_once": ["--messages", "20000", "--runs", "1"],
    "state": ["--messages", "20000", "--runs", "1"],
    "handlers": ["--messages", "20000", "--runs", "1"],
    "formats": ["--messages", "2000", "--runs", "1"],
    "swarm": ["--kills", "5", "--messages", "2000"],
    "rpc": ["--messages", "200", "--runs", "1"],
    "rpc_load": ["--calls", "2000", "--seconds", "2"],
    "start_up": ["--runs", "1"],
    "free_threading": ["--messages", "1000", "--runs", "1"],
    "peers": ["--messages", "5000", "--runs", "1"],
    "growth": ["--quick"],
    "testing": [],
    "web_console": ["--quick"],
    "live_update": ["--messages", "8"],
    "console_price": ["--messages", "20000", "--runs", "1", "--seconds", "5"],
    "watch": ["--saves", "2"],
}


def main() -> int:
    """Runs all benchmarks in turn. Returns the exit code, which is not 0 if one failed."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure awoke beside its rivals")
    parser.add_argument("--quick", action="store_true", help="small sizes and one run: no figures to quote")
    parser.add_argument("--bootstrap-servers", help="brokers to use instead of starting one")
    options = parser.parse_args()
    failed = []
    with brokers(options.bootstrap_servers) as bootstrap_servers:
        for name, arguments in (QUICK if options.quick else FULL).items():
            command = [
                sys.executable,
                "-m",
                f"bench.{name}",
                "--bootstrap-servers",
                bootstrap_servers,
                *arguments,
            ]
            if subprocess.run(command, cwd=REPOSITORY, check=False).returncode != 0:
                failed.append(name)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
