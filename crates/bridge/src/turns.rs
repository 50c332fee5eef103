//! An iterator over the messages of a job.

use std::sync::atomic::{AtomicUsize, Ordering};

use awoke_engine::consume as engine;
use pyo3::prelude::*;

use crate::batch::Batch;
use crate::job::Job;
use crate::message::Message;

/// An iterator over the messages of a job, which ends with the job's turn.
#[pyclass(frozen, module = "awoke._native")]
pub struct Turns {
    job: Py<Job>,
    batch: Py<Batch>,
    turn: engine::Turn,
    next: AtomicUsize,
}

impl Turns {
    pub const fn new(job: Py<Job>, batch: Py<Batch>, turn: engine::Turn) -> Self {
        Self { job, batch, turn, next: AtomicUsize::new(0) }
    }
}

#[pymethods]
impl Turns {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> Option<Message> {
        let (index, batch) = (self.next.load(Ordering::Relaxed), self.batch.get());
        if index >= batch.len() {
            return None;
        }
        if index > 0 && self.turn.is_over(index) {
            self.next.store(usize::MAX, Ordering::Relaxed);
            self.job.get().leave_from(batch.offset_of(index));
            return None;
        }
        self.next.store(index + 1, Ordering::Relaxed);
        Some(Message::new(self.batch.clone_ref(py), index))
    }
}
