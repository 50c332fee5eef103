"""Mutants of the engine that the simulation has to kill: `python -m tests.mutants [NAME …]`, or `make mutants`.

Each mutant changes one line of a copy of the sources. The simulation of the copy runs until a seed fails. A mutant that
survives all seeds shows a check that is missing.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).parents[1]
COPY = REPOSITORY / "target/mutants"
CONSUME = "crates/engine/src/consume"
TEST = ["cargo", "test", "--release", "-p", "awoke-engine", "--no-default-features", "--features", "simulated"]
FAILED = re.compile(r"^seed (\d+): (.*)$", re.MULTILINE)


class Mutant(NamedTuple):
    """One change of one file; `before` occurs in it."""

    name: str
    file: str
    before: str
    after: str


MUTANTS = [
    Mutant("stores one offset too far", "job.rs", "last.offset() + 1, leader", "last.offset() + 2, leader"),
    Mutant(
        "moves the watermark over messages that are not done", "watermark.rs", "|entry| entry.is_done) {", "|_| true) {"
    ),
    Mutant("runs a lane that a job leases", "lanes/state.rs", "lane.is_leased = true;", "lane.is_leased = false;"),
    Mutant(
        "forgets a released lane",
        "lanes/state.rs",
        "            self.ready.push_back(number);\n        }\n    }\n\n    /// Takes a job",
        "        }\n    }\n\n    /// Takes a job",
    ),
    Mutant("lets a fenced job store", "offsets.rs", ".filter(|entry| entry.generation == generation)", ""),
    Mutant(
        "takes the committer for woken after a loss",
        "offsets.rs",
        "        state.end_announcement();\n    }\n\n    /// Stores the next offset to read. Returns",
        "    }\n\n    /// Stores the next offset to read. Returns",
    ),
    Mutant("never ends a back-off", "scheduler/state.rs", "unit.not_before = None,", "(),"),
    Mutant(
        "leaves the clock unwatched", "scheduler/mod.rs", "if watched_the_clock {", "if watched_the_clock && false {"
    ),
    Mutant(
        "forgets that a unit has more",
        "scheduler/mod.rs",
        "Outcome::MaybeMore => unit.has_messages = true,",
        "Outcome::MaybeMore => (),",
    ),
    Mutant(
        "does not end a commit",
        "committer.rs",
        "        self.times.set_under_way(false);\n        let (code",
        "        let (code",
    ),
    Mutant(
        "gives partitions back while jobs run",
        "group_member/rebalance.rs",
        "        self.assignment.withdraw(partitions);\n        self.wait_released(partitions, deadline);\n",
        "        self.assignment.withdraw(partitions);\n",
    ),
    Mutant(
        "keeps lanes over a seek",
        "partition_queue/seek.rs",
        "            lanes.reset();\n",
        "            let _ = lanes;\n",
    ),
    Mutant(
        "takes repeated messages for new",
        "fetch_history.rs",
        "if !self.is_in_order(batch) {",
        "if !self.is_in_order(batch) && false {",
    ),
    Mutant("wakes no slot for a retry", "lanes/state.rs", "messages_max()) + due;", "messages_max()) + 0 * due;"),
    Mutant(
        "takes a commit in doubt for one that failed",
        "../transact/attempt.rs",
        "Error::InDoubt { .. } => true,",
        "Error::InDoubt { .. } => false,",
    ),
    Mutant(
        "goes on with a producer whose commit is in doubt",
        "../produce/transaction.rs",
        '            self.spend(format!("a commit is in doubt: {}", failure.text));\n',
        "",
    ),
    Mutant(
        "goes on after an entry has failed whose offset is recorded",
        "../transact/batcher.rs",
        ".then_some(error);",
        ".then_some(error).filter(|_| false);",
    ),
    Mutant(
        "forgets entries that get a transaction of their own",
        "../transact/queue.rs",
        "alone.into_iter().rev().for_each(|entry| waiting.push_front(entry));",
        "drop((alone, &mut waiting));",
    ),
    Mutant(
        "loses messages beyond the capacity",
        "partition_queue/pull.rs",
        "            self.park(Parked { batch: Arc::new(rest), first: 0, attempts: 0 });\n",
        "",
    ),
    Mutant("ends a dropped job without a retry", "job.rs", "        self.retry(Duration::ZERO, true);\n", ""),
    Mutant(
        "never asks for capacity",
        "lanes/mod.rs",
        "state.wants_capacity = capacity == 0;",
        "state.wants_capacity = false;",
    ),
    Mutant(
        "tells no waiting thread of a release",
        "scheduler/mod.rs",
        "        unit.pending = unit.pending.saturating_sub(1);\n        state.wake_if_released(id);",
        "        unit.pending = unit.pending.saturating_sub(1);",
    ),
]


def copy_sources() -> None:
    for name in ("Cargo.toml", "Cargo.lock"):
        (COPY / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(REPOSITORY / name, COPY / name)
    for name in ("crates", "bench/ordered"):
        shutil.copytree(REPOSITORY / name, COPY / name, dirs_exist_ok=True)


def mutate(mutant: Mutant) -> tuple[Path, str]:
    """Changes the copy; returns the file and its text of before."""
    path = COPY / CONSUME / mutant.file
    text = path.read_text()
    assert text.count(mutant.before) == 1, f"{mutant.name}: {mutant.file} has {text.count(mutant.before)} such places"
    path.write_text(text.replace(mutant.before, mutant.after))
    return path, text


def run(seeds: int) -> str:
    """Runs the simulation of the copy; returns what a seed says that failed, or that none did."""
    environment = {**os.environ, "SEEDS": str(seeds), "CARGO_TARGET_DIR": str(COPY / "target")}
    command = [*TEST, "--test", "simulation", "every_seed", "--", "--nocapture"]
    done = subprocess.run(command, cwd=COPY, env=environment, capture_output=True, text=True, check=False)
    if found := FAILED.search(done.stderr):
        return f"killed by seed {found[1]}: {found[2]}"
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-2_000:])
    return "SURVIVED"


def main(names: list[str]) -> int:
    copy_sources()
    survivors = 0
    for mutant in MUTANTS:
        if names and mutant.name not in names:
            continue
        path, before = mutate(mutant)
        try:
            result = run(int(os.environ.get("SEEDS", "10000")))
        finally:
            path.write_text(before)
        survivors += result == "SURVIVED"
        print(f"| {mutant.name} | {result} |", flush=True)
    return survivors


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
