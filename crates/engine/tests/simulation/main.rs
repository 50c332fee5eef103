//! Deterministic simulation: the real engine, in one thread, before a cluster inside the process.
//!
//! A seed decides everything: the routes, the members, the order in which tasks run, the faults. `SEEDS` says how many
//! seeds are tried, from `FIRST_SEED` on. `SEED` runs a single one and prints its steps. See
//! docs/internals/simulation.md.

mod calls;
mod chaos;
mod checks;
mod handlers;
mod process;
mod results;
mod transactions;
mod world;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use awoke_engine::wake::simulation::{Failure, Run, run};

/// Seeds of a plain test run.
const SEEDS: u64 = 500;
const STEPS_MAX: u64 = 200_000;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().and_then(|text| text.parse().ok())
}

/// Lives through one seed.
type Live = fn();

/// Runs one seed. Returns the number of steps.
fn try_seed(live: Live, seed: u64, is_traced: bool) -> Result<u64, Failure> {
    let slow_one_in = [0, 0, 200, 50][(seed % 4) as usize];
    run(Run { seed, steps_max: STEPS_MAX, slow_one_in, is_traced }, live)
}

fn explain(live: Live, seed: u64, failure: &Failure) -> ! {
    let Failure { reason, .. } = failure;
    let again = std::thread::spawn(move || try_seed(live, seed, true)).join().expect("no panic");
    let traced = again.expect_err("a seed fails each time");
    eprintln!("{}", traced.trace.join("\n"));
    assert_eq!(traced.reason, *reason, "a seed fails each time in the same way");
    panic!("seed {seed}: {reason}\nmake simulate SEED={seed} runs it again");
}

#[test]
fn every_seed_of_routes_keeps_the_invariants() {
    try_seeds(world::live);
}

#[test]
fn every_seed_of_calls_keeps_the_invariants() {
    try_seeds(calls::live);
}

fn try_seeds(live: Live) {
    let failed = Mutex::new(None);
    let (first, count) = match number("SEED") {
        Some(seed) => (seed, 1),
        None => (number("FIRST_SEED").unwrap_or(0), number("SEEDS").unwrap_or(SEEDS)),
    };
    let (next, steps) = (AtomicU64::new(first), AtomicU64::new(0));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while failed.lock().expect("no panic under it").is_none() {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + count {
                        return;
                    }
                    match try_seed(live, seed, false) {
                        Ok(count) => drop(steps.fetch_add(count, Ordering::Relaxed)),
                        Err(failure) => *failed.lock().expect("no panic under it") = Some((seed, failure)),
                    }
                }
            });
        }
    });
    let tried = next.load(Ordering::Relaxed).min(first + count) - first;
    eprintln!("{tried} seeds, {} steps", steps.load(Ordering::Relaxed));
    if let Some((seed, failure)) = failed.into_inner().expect("no panic under it") {
        explain(live, seed, &failure);
    }
}

/// Leaves out the number of an assignment, which goes on from one run of the process to the next.
fn without_generation(line: &str) -> String {
    line.split(", generation ").next().unwrap_or_default().to_owned()
}

#[test]
fn a_seed_of_routes_runs_in_the_same_way_each_time() {
    try_twice(world::live);
}

#[test]
fn a_seed_of_calls_runs_in_the_same_way_each_time() {
    try_twice(calls::live);
}

fn try_twice(live: Live) {
    let trace = |seed| {
        let lines = std::sync::Arc::new(Mutex::new(Vec::new()));
        let kept = std::sync::Arc::clone(&lines);
        let settings = Run { seed, steps_max: STEPS_MAX, slow_one_in: 50, is_traced: true };
        let steps = run(settings, move || {
            live();
            let lines = awoke_engine::wake::simulation::traced();
            *kept.lock().expect("no panic under it") = lines.iter().map(|line| without_generation(line)).collect();
        });
        (steps.expect("the seed keeps the invariants"), std::mem::take(&mut *lines.lock().expect("no panic under it")))
    };
    let (mut steps, mut lines) = (0, 0);
    for seed in 0..20 {
        let (first, second) = (trace(seed), trace(seed));
        assert_eq!(first, second);
        steps += first.0;
        lines += first.1.len();
    }
    assert!(steps > 4_000 && lines > 800, "something happens");
}
