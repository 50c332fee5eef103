//! Models of the primitives: loom tries every interleaving of the threads below.
//!
//! Run by `make models`. A lost wake-up shows as a deadlock,
//! which loom reports. A model has no time: "the deadline passes" is a thread of its own.

mod leadership;
mod sequencer;
mod waiting;

use std::sync::Arc;

use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

use crate::Parker;
use crate::clock::Deadline;

/// Checks every interleaving with at most three preemptions: no bug of this kind is known to need more.
fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// A deadline, and the thread that makes it pass.
fn time(parker: &Arc<Parker>) -> (Deadline, thread::JoinHandle<()>) {
    let passed = Arc::new(AtomicBool::new(false));
    let clock = thread::spawn({
        let (parker, passed) = (Arc::clone(parker), Arc::clone(&passed));
        move || {
            passed.store(true, Ordering::SeqCst);
            parker.look_at_the_clock();
        }
    });
    (Deadline::flag(passed), clock)
}
