//! The experiment of Apache `IoTDB`'s page on its log manager: producers take the next index, append it in order, and
//! think.

use std::sync::{Arc, Mutex};

use awoke_wake::Sequencer;
use awoke_wake::clock::Deadline;

use crate::cell::{Gaps, Measured, measure};
use crate::references::{OneCondition, Striped};

const CONDITIONS: [u64; 3] = [10, 100, 1_000];
const CAPACITY: usize = 65_536;

pub fn run(seconds: f64, producers: &[u64], think_ms: &[u64]) {
    for &think_ms in think_ms {
        for &producers in producers {
            one_condition(producers, think_ms, seconds);
            CONDITIONS.iter().for_each(|conditions| striped(*conditions, producers, think_ms, seconds));
            awoke(true, producers, think_ms, seconds);
            awoke(false, producers, think_ms, seconds);
        }
    }
}

fn report(design: &str, conditions: u64, producers: u64, think_ms: u64, measured: &Measured, gaps: Gaps) {
    let Measured { per_s, switches_per_append, cpu_us_per_append } = measured;
    let p99_us = gaps.p99_us();
    let p99 = if p99_us.is_nan() { "null".to_owned() } else { format!("{p99_us:.3}") };
    println!(
        "{{\"design\": \"{design}\", \"conditions\": {conditions}, \"producers\": {producers}, \
         \"think_ms\": {think_ms}, \"per_s\": {per_s:.1}, \"switches_per_append\": {switches_per_append:.4}, \
         \"cpu_us_per_append\": {cpu_us_per_append:.3}, \"p99_us\": {p99}}}"
    );
}

fn one_condition(producers: u64, think_ms: u64, seconds: f64) {
    let log = Arc::new(OneCondition::new());
    let append = Arc::new({
        let log = Arc::clone(&log);
        move |index| log.append(index)
    });
    let measured = measure(producers, think_ms, seconds, &append);
    drop(append);
    let gaps = Arc::into_inner(log).expect("the threads have ended").gaps();
    report("striped", 1, producers, think_ms, &measured, gaps);
}

fn striped(conditions: u64, producers: u64, think_ms: u64, seconds: f64) {
    let log = Arc::new(Striped::new(conditions));
    let append = Arc::new({
        let log = Arc::clone(&log);
        move |index| log.append(index)
    });
    let measured = measure(producers, think_ms, seconds, &append);
    drop(append);
    let gaps = Arc::into_inner(log).expect("the threads have ended").gaps();
    report("striped", conditions, producers, think_ms, &measured, gaps);
}

fn awoke(waits: bool, producers: u64, think_ms: u64, seconds: f64) {
    let found: Arc<Mutex<Gaps>> = Arc::default();
    let mut sink = Log { gaps: Gaps::default(), found: Arc::clone(&found) };
    let log = Arc::new(Sequencer::new(CAPACITY, move |index, ()| sink.gaps.note(index)));
    let append = Arc::new(move |index| {
        let permit = log.take(index, &Deadline::NEVER).expect("open");
        if waits {
            permit.append((), &Deadline::NEVER).expect("open");
        } else {
            permit.claim_run(());
        }
    });
    let measured = measure(producers, think_ms, seconds, &append);
    drop(append); // Drops the sequencer, too, whose sink has the figures.
    let gaps = std::mem::take(&mut *found.lock().expect("no panic"));
    report(if waits { "awoke, waits" } else { "awoke, deposits" }, 0, producers, think_ms, &measured, gaps);
}

/// The sink's measurements, which it hands out when the sequencer is dropped.
struct Log {
    gaps: Gaps,
    found: Arc<Mutex<Gaps>>,
}

impl Drop for Log {
    fn drop(&mut self) {
        *self.found.lock().expect("no panic") = std::mem::take(&mut self.gaps);
    }
}
