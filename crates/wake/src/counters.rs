//! What the engine counts about itself, so that "one wake-up per job" is a number that a test can read.

use std::sync::atomic::{AtomicU64, Ordering};

/// A count that only grows. Relaxed: it orders nothing, it is read for people.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds one.
    pub fn increment(&self) {
        self.add(1);
    }

    /// Adds `amount`.
    pub fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Ordering::Relaxed);
    }

    /// The count now.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
