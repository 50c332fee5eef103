//! A transaction of a producer, as Python sees it.

use std::time::Duration;

use awoke_engine::clock::Deadline;
use awoke_engine::produce as engine;
use pyo3::prelude::*;

use crate::errors::Result;
use crate::produce::{DeliveryHandle, Outgoing};
use crate::values::duration;

/// An open transaction. Dropped without an end, it is aborted.
#[pyclass(frozen, module = "awoke._native")]
pub struct Transaction {
    pub(super) inner: engine::Transaction,
    pub(super) encoder: Py<PyAny>,
    pub(super) produce_timeout: Option<Duration>,
}

impl Drop for Transaction {
    fn drop(&mut self) {
        // It was not ended: the abort does not hold the GIL.
        Python::try_attach(|py| py.detach(|| self.inner.abort_unended()));
    }
}

#[pymethods]
impl Transaction {
    /// Sends a record in the transaction; waits and errors are those of `Producer.produce`.
    ///
    /// Raises:
    ///     KafkaError: only an abort is possible then; ProducerFenced; else as `Producer.produce`.
    #[pyo3(signature = (topic, record, timeout_s=None))]
    fn produce(
        &self,
        py: Python<'_>,
        topic: &str,
        record: &Bound<'_, PyAny>,
        timeout_s: Option<f64>,
    ) -> Result<Py<DeliveryHandle>> {
        let timeout = duration(timeout_s)?.or(self.produce_timeout);
        let sent = Outgoing::of_record(self.encoder.bind(py), record)?.with(None, |record| {
            if let Some(handle) = self.inner.try_produce(topic, record)? {
                return Ok(handle);
            }
            py.detach(|| self.inner.produce(topic, record, &Deadline::after(timeout)))
        });
        DeliveryHandle::make(py, sent?)
    }

    /// Commits. Blocks with the GIL released.
    #[pyo3(signature = (timeout_s=None))]
    fn commit(&self, py: Python<'_>, timeout_s: Option<f64>) -> Result<()> {
        let timeout = duration(timeout_s)?.unwrap_or_else(|| self.inner.timeout());
        Ok(py.detach(|| self.inner.commit(&Deadline::after(Some(timeout))))?)
    }

    /// Aborts. Blocks with the GIL released.
    #[pyo3(signature = (timeout_s=None))]
    fn abort(&self, py: Python<'_>, timeout_s: Option<f64>) -> Result<()> {
        let timeout = duration(timeout_s)?.unwrap_or_else(|| self.inner.timeout());
        py.detach(|| self.inner.abort(&Deadline::after(Some(timeout))));
        Ok(())
    }
}
