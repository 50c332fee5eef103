//! The transactor and contributions to its transactions, as the runtime sees them.

use std::sync::{Arc, Mutex, PoisonError};

use awoke_engine::Error;
use awoke_engine::consume as engine;
use awoke_engine::produce::OwnedRecord;
use pyo3::prelude::*;

use crate::errors::to_python;
use crate::events::EventBox;
use crate::group_member::PendingCommit;
use crate::open::Open;
use crate::properties::Properties;
use crate::record::Outgoing;
use crate::scheduler::Job;
use crate::settings::EngineSettings;

/// Commits what came of messages together with their offsets.
#[pyclass(frozen, module = "awoke._native")]
pub struct Transactor {
    inner: Open<engine::Transactor>,
    encoder: Py<PyAny>,
}

impl Transactor {
    /// The transactor itself, as long as it is open.
    pub fn weak(&self) -> Result<std::sync::Weak<engine::Transactor>, Error> {
        Ok(Arc::downgrade(&self.inner.get()?))
    }
}

#[pymethods]
impl Transactor {
    #[new]
    fn new(
        py: Python<'_>,
        properties: Properties,
        is_alone: bool,
        settings: EngineSettings,
        encoder: Py<PyAny>,
        events: &EventBox,
    ) -> PyResult<Self> {
        let limits = settings.transactions()?;
        let events = Arc::clone(&events.inner);
        let made = py.detach(|| engine::Transactor::new(&properties.config(), is_alone, limits, &events));
        Ok(Self { inner: Open::new("transactor", made.map_err(|error| to_python(&error))?), encoder })
    }

    /// Commits what a contribution holds, and that its job is done up to this offset (`None`: that nothing more of it is). Does not
    /// block; the answer is in what is returned.
    #[pyo3(signature = (contribution, job, offset))]
    fn submit(&self, contribution: &Contribution, job: &Job, offset: Option<i64>) -> PyResult<PendingCommit> {
        let records = std::mem::take(&mut *contribution.records());
        let submitted = job.contribution(records, offset).and_then(|contribution| {
            let transactor = self.inner.get()?;
            transactor.submit(contribution)
        });
        submitted.map(PendingCommit::new).map_err(|error| to_python(&error))
    }

    /// Commits what is stored for a hook's partition, with the text beside it. Does not block.
    fn commit(&self, partition: &crate::partition::Partition) -> PyResult<PendingCommit> {
        let submitted = partition.queue().and_then(|partition| {
            let transactor = self.inner.get()?;
            transactor.submit(engine::Contribution::new(partition, Vec::new(), Box::new(|| Ok(()))))
        });
        submitted.map(PendingCommit::new).map_err(|error| to_python(&error))
    }

    /// Ends: what has not been committed is not. Blocks with the GIL released.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let closed = py.detach(|| self.inner.take()?.map_or(Ok(()), |transactor| transactor.close()));
        closed.map_err(|error: Error| to_python(&error))
    }

    /// An empty contribution.
    fn contribution(&self, py: Python<'_>) -> Contribution {
        Contribution { encoder: self.encoder.clone_ref(py), records: Mutex::default() }
    }
}

/// What a job wants to send. Nothing leaves before it is submitted.
#[pyclass(frozen, module = "awoke._native")]
pub struct Contribution {
    encoder: Py<PyAny>,
    records: Mutex<Vec<OwnedRecord>>,
}

impl Contribution {
    fn records(&self) -> std::sync::MutexGuard<'_, Vec<OwnedRecord>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Contribution {
    /// Adds a message. Does not block.
    #[pyo3(signature = (topic, value, *, key=None, headers=None, partition=None, timestamp_ms=None))]
    #[allow(clippy::too_many_arguments)] // The parts that a Kafka message has; all but two by name.
    fn produce(
        &self,
        py: Python<'_>,
        topic: &str,
        value: &Bound<'_, PyAny>,
        key: Option<&Bound<'_, PyAny>>,
        headers: Option<&Bound<'_, PyAny>>,
        partition: Option<i32>,
        timestamp_ms: Option<i64>,
    ) -> PyResult<()> {
        let record = Outgoing::new(self.encoder.bind(py), value, key, headers, partition, timestamp_ms)?;
        self.records().push(record.to_owned(topic));
        Ok(())
    }

    fn __len__(&self) -> usize {
        self.records().len()
    }
}
