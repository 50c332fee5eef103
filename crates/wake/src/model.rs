//! Helpers for models, in this crate and in those above it: loom tries every interleaving of a model's threads.
//!
//! A model has no time: "the deadline passes" is a thread of its own.

use std::sync::Arc;

use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

use crate::Parker;
use crate::clock::Deadline;

/// Checks every interleaving with at most three preemptions: no bug of this kind is known to need more.
pub fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// Returns a deadline, and the thread that makes it pass.
pub fn time(parker: &Arc<Parker>) -> (Deadline, thread::JoinHandle<()>) {
    let passed = Arc::new(AtomicBool::new(false));
    let clock = thread::spawn({
        let (parker, passed) = (Arc::clone(parker), Arc::clone(&passed));
        move || {
            passed.store(true, Ordering::SeqCst);
            parker.recheck_deadline();
        }
    });
    (Deadline::flag(passed), clock)
}
