//! Messages for which the route's function has to name the lanes.

use std::sync::Arc;

use super::PartitionQueue;
use super::job::UnitLease;
use super::scheduler::Outcome;
use crate::kafka::Batch;
use crate::{Error, Result};

/// Messages for which the route's function has to name the lanes. Dropped without `finish`, they go by their keys.
pub struct LaneAssignment {
    /// `None` when it has ended.
    unit: Option<UnitLease>,
    batch: Arc<Batch>,
    outcome: Outcome,
}

impl LaneAssignment {
    pub(super) const fn new(unit: UnitLease, batch: Arc<Batch>, outcome: Outcome) -> Self {
        Self { unit: Some(unit), batch, outcome }
    }

    /// Returns the messages. They may not be kept beyond `finish`, except as copies.
    pub const fn batch(&self) -> &Arc<Batch> {
        &self.batch
    }

    /// Returns the partition; `None` when it has ended.
    pub fn partition(&self) -> Option<&Arc<PartitionQueue>> {
        self.unit.as_ref().map(|unit| &unit.partition)
    }

    /// Gives each message to the lane of its number (`None`: of its key), and the partition back.
    ///
    /// # Errors
    /// [`Error::Invalid`]: the batch is still in use.
    pub fn finish(mut self, lane_numbers: Option<&[u64]>) -> Result<()> {
        self.give_back(lane_numbers)
    }

    fn give_back(&mut self, lane_numbers: Option<&[u64]>) -> Result<()> {
        let Some(unit) = self.unit.take() else { return Ok(()) };
        if unit.partition.check_process().is_err() {
            return Ok(());
        }
        let empty = Arc::new(unit.partition.empty_batch());
        let whole = Arc::into_inner(std::mem::replace(&mut self.batch, empty));
        let slots = whole.map(|batch| unit.partition.admit(batch, lane_numbers));
        let scheduler = Arc::clone(unit.partition.scheduler());
        unit.finish(self.outcome);
        let invalid = || Error::Invalid { reason: "messages are still in use whose lanes are being assigned".into() };
        slots.ok_or_else(invalid)?.into_iter().for_each(|slot| scheduler.announce(slot));
        Ok(())
    }
}

impl Drop for LaneAssignment {
    fn drop(&mut self) {
        drop(self.give_back(None));
    }
}
