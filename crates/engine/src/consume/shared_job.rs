//! A job that several objects refer to until it ends.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::progress::{Progress, Turns};
use super::{Job, PartitionQueue};
use crate::{Error, Result};

/// A job until it ends: it keeps no memory of librdkafka's then. Its clones are the same job.
#[derive(Clone)]
pub struct SharedJob(Arc<Shared>);

struct Shared {
    job: Mutex<Option<Job>>,
    /// The number of messages that were left to a later job.
    left: AtomicUsize,
    /// The progress of the worker, where that tells which messages are done.
    progress: Mutex<Option<Arc<Progress>>>,
}

impl SharedJob {
    /// Shares a job.
    pub fn new(job: Job) -> Self {
        let job = Mutex::new(Some(job));
        Self(Arc::new(Shared { job, left: AtomicUsize::new(0), progress: Mutex::default() }))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Job>> {
        self.0.job.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Begins the turn of a worker that handles the messages one by one, all or those at the picked places.
    ///
    /// With `is_done_when_passed` a message is done when the next one is asked for: see [`Self::store_passed`].
    ///
    /// # Errors
    /// [`Error::Closed`]: the job has ended.
    pub fn turns(&self, picked: Option<Arc<[usize]>>, is_done_when_passed: bool) -> Result<Turns> {
        let begun = self.map(|job| job.turn().map(|turn| (turn, job.first()))).flatten();
        let (turn, first) = begun.ok_or(Error::Closed { what: "job" })?;
        let progress = Arc::new(Progress::new(first, picked));
        if is_done_when_passed {
            *self.progress() = Some(Arc::clone(&progress));
        }
        Ok(Turns::new(self.clone(), turn, progress))
    }

    fn progress(&self) -> MutexGuard<'_, Option<Arc<Progress>>> {
        self.0.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores the offset behind the messages that the worker has passed, if they are done then. Any thread.
    ///
    /// # Errors
    /// [`Error::Fenced`]: the partition was taken away.
    pub fn store_passed(&self) -> Result<()> {
        let progress = self.progress().clone();
        let passed = progress.map_or(0, |progress| progress.passed());
        self.map(|job| job.done(passed)).unwrap_or(Ok(()))
    }

    /// Leaves the messages from this offset on to a later job, and counts them.
    pub fn leave_from(&self, offset: i64) {
        self.map(|job| {
            let end = job.end();
            job.truncate_before(offset);
            self.0.left.store(end - job.end(), Ordering::Relaxed);
        });
    }

    /// Returns the number of messages that were left to a later job.
    pub fn left(&self) -> usize {
        self.0.left.load(Ordering::Relaxed)
    }
}
