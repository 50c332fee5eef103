//! Counters of the engine's own work, so that "one wake-up per job" is a number that a test can read.

use std::sync::atomic::{AtomicU64, Ordering};

/// A count that only grows. Relaxed: it is read for reports and orders no other access.
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

    /// Returns the count.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
