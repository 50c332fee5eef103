//! A job that several objects refer to until it ends.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::lanes::{GIVE_ON_AFTER, LaneLease, LaneMessages};
use super::progress::{Progress, Turns};
use super::{Job, PartitionQueue};
use crate::clock;
use crate::{Error, Result};

/// A job until it ends: it keeps no memory of librdkafka's then. Its clones are the same job.
#[derive(Clone)]
pub struct SharedJob(Arc<Shared>);

struct Shared {
    job: Mutex<Option<Job>>,
    /// The number of messages that were left to a later job.
    left: AtomicUsize,
    progress: Mutex<Option<Arc<Progress>>>,
    /// The progress of the worker tells which messages are done.
    is_done_when_passed: AtomicBool,
}

/// A job of several lanes, as its partition knows it: after a moment, other jobs take its lanes.
pub(super) struct SharedLanes {
    pub(super) since: Instant,
    job: Weak<Shared>,
}

impl SharedLanes {
    /// Takes the lanes away that the worker has not come to, and stores which messages it has passed. Returns the
    /// messages of those lanes; `None` if there are none.
    pub(super) fn take_rest(&self) -> Option<(LaneLease, LaneMessages)> {
        let shared = SharedJob(self.job.upgrade()?);
        let progress = shared.progress().clone()?;
        drop(shared.store_passed()); // If the partition was taken away, nothing is to be stored.
        let rest = shared.map(|job| job.take_rest(&progress)).flatten()?;
        shared.0.left.fetch_add(rest.1.end - rest.1.first, Ordering::Relaxed);
        Some(rest)
    }
}

impl SharedJob {
    /// Shares a job.
    pub fn new(job: Job) -> Self {
        let job = Mutex::new(Some(job));
        let (left, progress, is_done_when_passed) = (AtomicUsize::new(0), Mutex::default(), AtomicBool::new(false));
        Self(Arc::new(Shared { job, left, progress, is_done_when_passed }))
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
        *self.progress() = Some(Arc::clone(&progress));
        self.0.is_done_when_passed.store(is_done_when_passed, Ordering::Release);
        if self.map(|job| job.has_several_lanes()).unwrap_or_default() {
            // While a test has the clock, no key waits for it: other jobs take the lanes at once.
            let before = if clock::is_virtual() { GIVE_ON_AFTER } else { Duration::ZERO };
            let since = clock::now().checked_sub(before).unwrap_or_else(clock::now);
            self.partition()?.watch_lanes(SharedLanes { since, job: Arc::downgrade(&self.0) });
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
        let progress = self.progress().clone().filter(|_| self.0.is_done_when_passed.load(Ordering::Acquire));
        let passed = progress.map_or(0, |progress| progress.passed());
        self.map(|job| job.done(passed)).unwrap_or(Ok(()))
    }

    /// Leaves the messages from this offset on to a later job, and counts them.
    pub fn leave_from(&self, offset: i64) {
        self.map(|job| {
            let end = job.end();
            job.truncate_before(offset);
            self.0.left.fetch_add(end - job.end(), Ordering::Relaxed);
        });
    }

    /// Returns the number of messages that were left to a later job.
    pub fn left(&self) -> usize {
        self.0.left.load(Ordering::Relaxed)
    }
}
