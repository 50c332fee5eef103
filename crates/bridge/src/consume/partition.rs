//! One assignment of a partition, as its consumer uses it between and beside its jobs.

use std::sync::{Arc, Weak};

use awoke_engine::Error;
use awoke_engine::consume::PartitionQueue;
use awoke_engine::kafka::TopicPartition;
use pyo3::prelude::*;

use crate::errors::Result;

/// One assignment of a partition; when it has ended, all methods raise FencedError. Any thread.
#[pyclass(frozen, module = "awoke._native")]
pub struct Partition {
    inner: Weak<PartitionQueue>,
    at: TopicPartition,
}

impl Partition {
    pub fn new(partition: &Arc<PartitionQueue>) -> Self {
        Self { inner: Arc::downgrade(partition), at: partition.topic_partition().clone() }
    }

    /// Returns the engine's partition, as long as it is assigned.
    pub fn queue(&self) -> Result<Arc<PartitionQueue>, Error> {
        let ended = || Error::Fenced { topic: self.at.topic.to_string(), partition: self.at.partition };
        self.inner.upgrade().ok_or_else(ended)
    }

    fn with<T>(&self, call: impl FnOnce(&PartitionQueue) -> Result<T, Error>) -> Result<T> {
        Ok(self.queue().and_then(|partition| call(&partition))?)
    }
}

#[pymethods]
impl Partition {
    /// True if it is still assigned. Does not block.
    #[getter]
    fn is_current(&self) -> bool {
        self.inner.upgrade().is_some_and(|partition| partition.check_current().is_ok())
    }

    /// Returns the stored and the committed offset. Does not block.
    fn offsets(&self) -> Result<(Option<i64>, Option<i64>)> {
        self.with(|partition| Ok(partition.stored_and_committed()))
    }

    /// Pauses the partition: no job begins until `resume`. Does not block.
    fn pause(&self) -> Result<()> {
        self.with(PartitionQueue::pause)
    }

    /// Ends a pause. Does not block.
    fn resume(&self) -> Result<()> {
        self.with(PartitionQueue::resume)
    }

    /// Ends the back-off of messages that wait to be tried again. Does not block.
    fn clear_backoff(&self) -> Result<()> {
        self.with(PartitionQueue::clear_backoff)
    }

    /// Goes on from this offset (-2 the first, -1 the end) after the job that runs now. Does not block.
    fn seek(&self, offset: i64) -> Result<()> {
        self.with(|partition| partition.seek(offset))
    }

    /// Returns the first offset at or after a time in milliseconds since 1970; -1 for the end. Blocks with the GIL
    /// released.
    fn offset_at(&self, py: Python<'_>, timestamp_ms: i64) -> Result<i64> {
        py.detach(|| self.with(|partition| partition.offset_at(timestamp_ms)))
    }

    /// Returns what the group has committed: offset and metadata, or `None`. Blocks with the GIL released.
    fn committed(&self, py: Python<'_>) -> Result<Option<(i64, Option<String>)>> {
        let committed = py.detach(|| self.with(PartitionQueue::committed))?;
        Ok(committed.map(|found| (found.offset, found.metadata.map(|text| text.to_string()))))
    }

    /// Stores an offset and its metadata text, for the next commit. Does not block.
    #[pyo3(signature = (offset, metadata))]
    fn annotate(&self, offset: i64, metadata: Option<&str>) -> Result<()> {
        self.with(|partition| partition.annotate(offset, metadata.map(Arc::from)))
    }
}
