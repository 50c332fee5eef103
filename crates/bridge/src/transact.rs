//! The transaction batcher, as the runtime sees it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use awoke_engine::Error;
use awoke_engine::produce::OwnedRecord;
use awoke_engine::transact as engine;
use pyo3::prelude::*;

use crate::consume::{Job, Message, Partition, PendingStep};
use crate::errors::Result;
use crate::events::EventBox;
use crate::open::Open;
use crate::produce::{Outgoing, value_bytes};
use crate::properties::Properties;
use crate::settings::EngineSettings;
use crate::state::{JobRows, Table};

/// Commits the records that jobs produce together with the jobs' offsets.
#[pyclass(frozen, module = "awoke._native")]
pub struct TransactionBatcher {
    pub inner: Open<engine::TransactionBatcher>,
    encoder: Py<PyAny>,
}

impl TransactionBatcher {
    fn submit_entry(&self, entry: Result<engine::TransactionEntry, Error>) -> Result<PendingStep> {
        Ok(PendingStep {
            completion: entry.and_then(|entry| self.inner.get()?.submit(entry))?,
            operation: "commit offsets",
            limit: None,
        })
    }
}

#[pymethods]
impl TransactionBatcher {
    #[new]
    fn new(
        py: Python<'_>,
        properties: Properties,
        is_alone: bool,
        settings: EngineSettings,
        encoder: Py<PyAny>,
        events: &EventBox,
    ) -> Result<Self> {
        let limits = settings.transactions()?;
        let events = Arc::clone(&events.inner);
        let made = py.detach(|| engine::TransactionBatcher::new(&properties.config(), is_alone, limits, &events));
        Ok(Self { inner: Open::new("transaction batcher", made?), encoder })
    }

    /// Makes an empty entry.
    fn entry(&self, py: Python<'_>) -> TransactionEntry {
        TransactionEntry { encoder: self.encoder.clone_ref(py), records: Mutex::default(), rows: Mutex::default() }
    }

    /// Commits the records of an entry, and that its job is done up to this offset (`None`: to its end). Does not
    /// block; the returned object has the answer.
    #[pyo3(signature = (entry, job, offset))]
    fn submit(&self, entry: &TransactionEntry, job: &Job, offset: Option<i64>) -> Result<PendingStep> {
        let made = engine::TransactionEntry::of_job(&job.inner, std::mem::take(&mut *entry.records()), offset);
        self.submit_entry(made.map(|mut made| {
            for rows in entry.rows.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
                made.add_rows(Arc::clone(&rows.get().table), rows.get().take());
            }
            made
        }))
    }

    /// Commits the stored offset of a hook's partition, with its metadata text. Does not block.
    fn commit(&self, partition: &Partition) -> Result<PendingStep> {
        self.submit_entry(partition.queue().map(engine::TransactionEntry::of_stored_offset))
    }

    /// Ends the batcher; entries that are not committed fail. Blocks with the GIL released.
    fn close(&self, py: Python<'_>) -> Result<()> {
        let closed = py.detach(|| self.inner.take()?.map_or(Ok(()), |batcher| batcher.close()));
        Ok(closed?)
    }
}

/// The records that one job sends. None is sent before the entry is submitted.
#[pyclass(frozen, module = "awoke._native")]
pub struct TransactionEntry {
    encoder: Py<PyAny>,
    records: Mutex<Vec<OwnedRecord>>,
    /// Of each table, what the job writes.
    rows: Mutex<Vec<Py<JobRows>>>,
}

impl TransactionEntry {
    fn records(&self) -> MutexGuard<'_, Vec<OwnedRecord>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the name of a topic, which the last record shares if it goes there, too.
    fn topic(&self, name: &str) -> Arc<str> {
        self.records().last().filter(|last| *last.topic == *name).map_or_else(|| name.into(), |last| last.topic.clone())
    }
}

#[pymethods]
impl TransactionEntry {
    /// Adds a record: an `awoke.Record`, a pair of value and key, or a value alone. Does not block.
    fn add(&self, py: Python<'_>, topic: &str, record: &Bound<'_, PyAny>) -> Result<()> {
        let record = Outgoing::of_record(self.encoder.bind(py), record)?;
        let record = record.to_owned(self.topic(topic));
        self.records().push(record);
        Ok(())
    }

    /// Returns the rows of a table as the job sees them, of the job's partition; None where its route does not name the
    /// table. What is written there is committed with the entry. Does not block.
    ///
    /// Raises:
    ///     ClosedError: the job has ended.
    fn rows_of(&self, py: Python<'_>, table: &Table, job: &Job) -> Result<Option<Py<JobRows>>> {
        let partition = job.inner.partition()?;
        let Some(found) = partition.table(&table.inner) else { return Ok(None) };
        let rows = Py::new(py, JobRows::new(Arc::clone(found), partition.has_lanes()))?;
        self.rows.lock().unwrap_or_else(PoisonError::into_inner).push(rows.clone_ref(py));
        Ok(Some(rows))
    }

    /// Adds a value under the key of its message. Does not block.
    fn add_result(&self, py: Python<'_>, topic: &str, message: &Message, value: &Bound<'_, PyAny>) -> Result<()> {
        let value = value_bytes(self.encoder.bind(py), value)?.map(|bytes| bytes.as_slice().to_vec());
        let record = OwnedRecord::plain(self.topic(topic), value, message.copy_key().map(Vec::from));
        self.records().push(record);
        Ok(())
    }
}
