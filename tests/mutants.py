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
OF_CALLS = "../rpc/"
"""Files of mutants that the seeds of calls have to kill. Those of routes have to kill the others."""
FAILED = re.compile(r"^seed (\d+): (.*)$", re.MULTILINE)
ABORTED = re.compile(r"\(signal: \d+, (SIG\w+)")
"""The end of a process by a signal, in the words of cargo: a mutant may ask for all memory."""


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
        "        self.report_overdue(self.wait_released(partitions, deadline));\n",
        "",
    ),
    Mutant(
        "lets a static member end between two rebalances",
        "group_member/rebalance.rs",
        "        self.await_rebalance(deadline);\n",
        "",
    ),
    Mutant(
        "does not join again when a static member is back and a partition has no owner",
        "group_member/ownership.rs",
        "            if !unowned.is_empty() {\n",
        "            if !unowned.is_empty() && false {\n",
    ),
    Mutant(
        "takes a commit of a topic that was made again for one of the new topic",
        "group_member/starts.rs",
        "(Some(before), Some(now)) => *now != before,",
        "(Some(before), Some(now)) => *now != before && false,",
    ),
    Mutant(
        "takes an offset beyond the end for one of this log",
        "group_member/starts.rs",
        "    committed.offset > end.offset ||",
        "    (committed.offset > end.offset && false) ||",
    ),
    Mutant(
        "does not subscribe to a topic that a pattern has matched",
        "group_member/thread.rs",
        "        self.report(self.shared.client.subscribe(&self.assignment.topics()));\n",
        "",
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
        "takes a message without an offset for delivered",
        "../produce/delivery_reports.rs",
        "let is_missing = delivery.has_answer &&",
        "let is_missing = !delivery.has_answer &&",
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
    Mutant(
        "ends a call late that no thread waits for",
        "../rpc/caller/calls.rs",
        "for call in expired {",
        "for call in expired.into_iter().skip(1) {",
    ),
    Mutant(
        "does not end the wait of a leader whose call has ended",
        "../rpc/caller/replies.rs",
        "if !serves_for(token) {",
        "if !serves_for(token) && false {",
    ),
    Mutant(
        "does not register a woken follower again",
        "../rpc/caller/waiting.rs",
        "if self.is_follower() { !call.keep_registered",
        "if false { !call.keep_registered",
    ),
    Mutant(
        "keeps the room of calls that have ended",
        "../rpc/caller/calls.rs",
        "        self.budget.release(1, call.size_bytes);\n",
        "",
    ),
    Mutant(
        "goes on with a call whose request was not delivered",
        "../rpc/caller/caller.rs",
        "if let Some(Err(error)) = delivery.result() {",
        "if let Some(Err(error)) = delivery.result().filter(|_| false) {",
    ),
    Mutant(
        "admits one call too many",
        "../rpc/responder/limiter.rs",
        "if self.running >= self.running_max || !",
        "if self.running > self.running_max || !",
    ),
    Mutant(
        "leaves the last queued call in its queue",
        "../rpc/responder/limiter.rs",
        "if self.queued == 0 ||",
        "if self.queued < 2 ||",
    ),
    Mutant(
        "forgets the result of a call with an idempotency key",
        "../rpc/responder/idempotency.rs",
        "self.known.insert(Arc::clone(key), State::Cached(Arc::new(answer)));",
        "drop((self.known.remove(key), answer));",
    ),
    Mutant(
        "lets a rejected duplicate end the call that runs",
        "../rpc/responder/idempotency.rs",
        "if owner != call {",
        "if owner != call && false {",
    ),
    Mutant(
        "completes a call whose reply was not delivered",
        "../rpc/responder/settlement.rs",
        "if is_over { JobEnd::Complete }",
        "if is_over || true { JobEnd::Complete }",
    ),
    Mutant(
        "wakes no stream that waits for credit",
        "../rpc/responder/credit.rs",
        "let waiting = if inner.is_ready() {",
        "let waiting = if inner.is_ready() && false {",
    ),
    Mutant(
        "begins before a table is restored",
        "partition_queue/mod.rs",
        "if !partition.tables.is_empty() {",
        "if !partition.tables.is_empty() && false {",
    ),
    Mutant(
        "restores a table up to its first open transaction",
        "restore.rs",
        "Some(until) if position >= until => true,",
        "Some(until) if position >= 0 && until >= 0 => true,",
    ),
    Mutant(
        "repeats a transaction that no message has caused, after a commit in doubt",
        "../transact/entry.rs",
        "self.partition.set_rows_until(table, delivery.offset + 1);",
        "let _ = (table, delivery);",
    ),
    Mutant(
        "sends no generation where nothing is stored",
        "../transact/entry.rs",
        "None if !self.has_message => {",
        "None if self.has_message && !self.has_message => {",
    ),
    Mutant(
        "forgets to wake lanes whose back-off ends while they are parked",
        "job.rs",
        "        if waits {",
        "        if waits && moment > clock::now() {",
    ),
    Mutant("restores no rows", "restore.rs", "reading.table.restore(&batch);", "let _ = reading;"),
    Mutant(
        "forgets the rows of a transaction",
        "../transact/entry.rs",
        "table.commit(&self.records[places.clone()]);",
        "let _ = (table, places);",
    ),
    Mutant(
        "adds rows before they are committed",
        "../transact/entry.rs",
        "self.rows.push((table, first..self.records.len()));",
        "table.commit(&self.records[first..]);\n        self.rows.push((table, first..self.records.len()));",
    ),
    Mutant(
        "writes rows into another partition", "../state/table.rs", "partition: Some(self.number()),", "partition: None,"
    ),
    Mutant(
        "never begins with a table that is restored",
        "partition_queue/mod.rs",
        "if self.tables().all(|table| table.is_restored()) {",
        "if self.tables().all(|table| table.is_closed()) {",
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


def run(mutant: Mutant, seeds: int) -> str:
    """Runs the simulation of the copy; returns what a seed says that failed, or that none did."""
    environment = {**os.environ, "SEEDS": str(seeds), "CARGO_TARGET_DIR": str(COPY / "target")}
    world = "calls" if mutant.file.startswith(OF_CALLS) else "routes"
    command = [*TEST, "--test", "simulation", f"every_seed_of_{world}", "--", "--nocapture"]
    done = subprocess.run(command, cwd=COPY, env=environment, capture_output=True, text=True, check=False)
    if found := FAILED.search(done.stderr):
        return f"killed by seed {found[1]}: {found[2]}"
    if found := ABORTED.search(done.stderr):
        return f"killed: {found[1]} ended the simulation"
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
            result = run(mutant, int(os.environ.get("SEEDS", "10000")))
        finally:
            path.write_text(before)
        survivors += result == "SURVIVED"
        print(f"| {mutant.name} | {result} |", flush=True)
    return survivors


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
