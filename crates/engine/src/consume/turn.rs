//! The turn of a job of single messages: the job ends between two messages when something else waits for its partition.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use super::PartitionQueue;
use crate::clock::coarse_ns;

/// Where messages take no time that the coarse clock shows, it is read once for this many.
const FAST_MESSAGES: usize = 16;

/// The turn of one job. Its worker checks between two messages whether the turn is over.
pub struct Turn {
    partition: Arc<PartitionQueue>,
    /// On the coarse clock; `None` without a limit.
    until_ns: Option<u64>,
    /// The last reading of the clock, and the message before which it is read again. Used only by the job's worker.
    read_ns: AtomicU64,
    read_at: AtomicUsize,
}

impl Turn {
    /// Begins a turn.
    pub(super) fn new(partition: &Arc<PartitionQueue>, limit: Option<Duration>) -> Self {
        let now = coarse_ns();
        let nanoseconds = |limit: Duration| u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        Self {
            partition: Arc::clone(partition),
            until_ns: limit.map(|limit| now.saturating_add(nanoseconds(limit))),
            read_ns: AtomicU64::new(now),
            read_at: AtomicUsize::new(1),
        }
    }

    /// Returns whether the partition is to be given back or paused, a seek waits, the process stops, or the time is up.
    /// Does not block.
    ///
    /// `index` is the place of the next message in the job.
    pub fn is_over(&self, index: usize) -> bool {
        self.partition.is_interrupted() || self.until_ns.is_some_and(|until| self.has_passed(until, index))
    }

    fn has_passed(&self, until_ns: u64, index: usize) -> bool {
        if index < self.read_at.load(Ordering::Relaxed) {
            return false;
        }
        let now = coarse_ns();
        let is_fast = self.read_ns.swap(now, Ordering::Relaxed) == now;
        self.read_at.store(index + if is_fast { FAST_MESSAGES } else { 1 }, Ordering::Relaxed);
        now >= until_ns
    }
}
