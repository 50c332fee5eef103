//! Messages for which the route's function has to name the lanes.

use std::sync::{Arc, Mutex, PoisonError};

use awoke_engine::Error;
use awoke_engine::consume as engine;
use awoke_engine::kafka::{Batch as EngineBatch, TopicPartition};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::consume::{Batch, Decoders};
use crate::errors::Result;

/// Messages for which the route's function has to name the lanes.
#[pyclass(frozen, module = "awoke._native")]
pub struct LaneAssignment {
    at: TopicPartition,
    /// The number of its route.
    #[pyo3(get)]
    route_number: u64,
    /// `None` when it has ended.
    inner: Mutex<Option<engine::LaneAssignment>>,
    lent: PyOnceLock<Py<Batch>>,
}

impl LaneAssignment {
    pub fn new(assignment: engine::LaneAssignment) -> Self {
        let at = assignment.batch().topic_partition().clone();
        let route_number = assignment.partition().map_or(0, |partition| partition.route_number());
        Self { at, route_number, inner: Mutex::new(Some(assignment)), lent: PyOnceLock::new() }
    }

    /// Returns the engine's batch; `None` when the assignment has ended.
    fn native(&self) -> Option<Arc<EngineBatch>> {
        let assignment = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        assignment.as_ref().map(|assignment| Arc::clone(assignment.batch()))
    }
}

#[pymethods]
impl LaneAssignment {
    /// The topic.
    #[getter]
    fn topic(&self) -> &str {
        &self.at.topic
    }

    /// The partition.
    #[getter]
    fn partition(&self) -> i32 {
        self.at.partition
    }

    /// Returns the messages, decoded by these functions. Raises `ClosedError` when the assignment has ended.
    #[pyo3(signature = (decoders=None))]
    fn batch(&self, py: Python<'_>, decoders: Option<Py<Decoders>>) -> Result<Py<Batch>> {
        let make = || -> Result<_> {
            let native = self.native().ok_or(Error::Closed { what: "job" })?;
            let length = native.len();
            Ok(Py::new(py, Batch::new(native, 0, length, 1, decoders))?)
        };
        Ok(self.lent.get_or_try_init(py, make)?.clone_ref(py))
    }

    /// Gives each message to the lane of its number, in the order of `batch`. Does not block.
    fn finish(&self, py: Python<'_>, numbers: Vec<u64>) -> Result<()> {
        if let Some(lent) = self.lent.get(py) {
            // A message that was kept becomes a copy; the bytes themselves go to the lanes.
            lent.get().detach(py);
        }
        let assignment = self.inner.lock().unwrap_or_else(PoisonError::into_inner).take();
        Ok(assignment.map_or(Ok(()), |assignment| assignment.finish(Some(&numbers)))?)
    }
}
