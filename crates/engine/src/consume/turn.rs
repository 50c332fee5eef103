//! How long a job of single messages may go on: it ends between two messages when something else waits for its partition.

use std::sync::Arc;
use std::time::Duration;

use super::PartitionQueue;
use crate::clock::coarse_ns;

/// The turn of one job. Its worker asks between two messages whether the turn is over.
pub struct Turn {
    partition: Arc<PartitionQueue>,
    /// On the coarse clock; `None` without a limit.
    until_ns: Option<u64>,
}

impl Turn {
    /// A turn that begins now.
    pub(super) fn new(partition: &Arc<PartitionQueue>, limit: Option<Duration>) -> Self {
        let nanoseconds = |limit: Duration| u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        let until_ns = limit.map(|limit| coarse_ns().saturating_add(nanoseconds(limit)));
        Self { partition: Arc::clone(partition), until_ns }
    }

    /// Whether the partition is to be given back, paused or sought in, the process stops, or the time is up. Does not block.
    pub fn is_over(&self) -> bool {
        self.partition.is_wanted_back() || self.until_ns.is_some_and(|until| coarse_ns() >= until)
    }
}
