//! An iterator over the messages of a job.

use awoke_engine::consume::{self as engine, Step};
use pyo3::prelude::*;

use crate::consume::{Batch, Message};

/// An iterator over the messages of a job, which ends with the job's turn. One thread at a time.
#[pyclass(frozen, module = "awoke._native")]
pub struct Turns {
    batch: Py<Batch>,
    inner: engine::Turns,
}

impl Turns {
    pub const fn new(batch: Py<Batch>, inner: engine::Turns) -> Self {
        Self { batch, inner }
    }
}

#[pymethods]
impl Turns {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> Option<Message> {
        let batch = self.batch.get();
        match self.inner.next(batch.len()) {
            Step::Handle(index) => Some(Message::new(self.batch.clone_ref(py), index)),
            Step::Leave(index) => {
                self.inner.leave_from(batch.offset_of(index));
                None
            }
            Step::End => None,
        }
    }
}
