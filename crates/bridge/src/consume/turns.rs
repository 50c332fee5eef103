//! An iterator over the messages of a job.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};

use awoke_engine::Error;
use awoke_engine::consume as engine;
use pyo3::prelude::*;

use crate::consume::{Batch, Job, Message};
use crate::errors::Result;

/// An iterator over the messages of a job, which ends with the job's turn. One thread at a time.
#[pyclass(frozen, module = "awoke._native")]
pub struct Turns {
    job: Py<Job>,
    batch: Py<Batch>,
    turn: engine::Turn,
    progress: Arc<Progress>,
}

/// The progress of the iterator. Written by the thread that iterates, read by any.
pub struct Progress {
    /// The number of messages that were given; `OVER` when the turn has ended before the last one.
    given: AtomicUsize,
    /// The place of the job's first message in the engine's batch.
    first: usize,
    /// The places in the job of the messages that are given; `None` if they are all of its messages.
    picked: Option<Arc<[usize]>>,
}

const OVER: usize = usize::MAX;

impl Progress {
    /// Returns how many messages of the engine's batch are done: those before the one that was given last. 0 at the
    /// end of the turn, where the worker records it.
    pub fn passed(&self) -> usize {
        let given = self.given.load(Ordering::Acquire);
        match given.checked_sub(2).filter(|_| given != OVER) {
            None => 0,
            Some(last) => self.first + self.picked.as_ref().map_or(last, |picked| picked[last]) + 1,
        }
    }
}

impl Turns {
    /// Begins the turn of a job with the messages of this batch. Raises `ClosedError` when the job has ended.
    pub fn begin(job: &Bound<'_, Job>, batch: Py<Batch>, is_done_when_passed: bool) -> Result<Self> {
        let begun = job.get().inner.map(|job| job.turn().map(|turn| (turn, job.first()))).flatten();
        let (turn, first) = begun.ok_or(Error::Closed { what: "job" })?;
        let progress = Arc::new(Progress { given: AtomicUsize::new(0), first, picked: batch.get().picked() });
        if is_done_when_passed {
            *job.get().progress.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&progress));
        }
        Ok(Self { job: job.clone().unbind(), batch, turn, progress })
    }

    /// Leaves the messages from this offset on to a later job, and counts them.
    fn leave_from(&self, offset: i64) {
        let job = self.job.get();
        job.inner.map(|inner| {
            let end = inner.end();
            inner.truncate_before(offset);
            job.left.store(end - inner.end(), Ordering::Relaxed);
        });
    }
}

#[pymethods]
impl Turns {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> Option<Message> {
        let (given, batch) = (&self.progress.given, self.batch.get());
        let index = given.load(Ordering::Relaxed);
        if index >= batch.len() {
            return None;
        }
        if index > 0 && self.turn.is_over(index) {
            given.store(OVER, Ordering::Relaxed);
            self.leave_from(batch.offset_of(index));
            return None;
        }
        given.store(index + 1, Ordering::Release); // The effects of the handler come before it.
        Some(Message::new(self.batch.clone_ref(py), index))
    }
}
