//! A job that several objects refer to until it ends.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Job, PartitionQueue};
use crate::{Error, Result};

/// A job until it ends: it keeps no memory of librdkafka's then. Its clones are the same job.
#[derive(Clone)]
pub struct SharedJob(Arc<Mutex<Option<Job>>>);

impl SharedJob {
    /// Shares a job.
    pub fn new(job: Job) -> Self {
        Self(Arc::new(Mutex::new(Some(job))))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Job>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the job out, to end it; `None` when it has ended. Does not block.
    pub fn take(&self) -> Option<Job> {
        self.lock().take()
    }

    /// Calls `read` with the job; returns `None` when it has ended. Does not block.
    pub fn map<T>(&self, read: impl FnOnce(&mut Job) -> T) -> Option<T> {
        self.lock().as_mut().map(read)
    }

    /// Calls `read` with the job. Does not block.
    ///
    /// # Errors
    /// [`Error::Closed`]: it has ended.
    pub fn with<T>(&self, read: impl FnOnce(&mut Job) -> T) -> Result<T> {
        self.map(read).ok_or(Error::Closed { what: "job" })
    }

    /// Returns the partition. Does not block.
    ///
    /// # Errors
    /// [`Error::Closed`]: the job has ended.
    pub fn partition(&self) -> Result<Arc<PartitionQueue>> {
        let partition = self.map(|job| job.partition().map(Arc::clone)).flatten();
        partition.ok_or(Error::Closed { what: "job" })
    }
}
