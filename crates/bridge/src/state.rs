//! Tables, and their rows as one job sees them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use awoke_engine::Error;
use awoke_engine::state as engine;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::Result;

/// A table: the committed rows of the partitions that this process has.
#[pyclass(frozen, module = "awoke._native")]
pub struct Table {
    pub inner: Arc<engine::Table>,
}

#[pymethods]
impl Table {
    /// Makes a table whose changes go to this topic; or, with `is_followed`, whose rows are those that others write
    /// there. A row is gone `ttl_s` after it was written; None: never. Opens nothing.
    #[new]
    #[pyo3(signature = (name, changelog, is_followed=false, ttl_s=None))]
    fn new(name: String, changelog: &str, is_followed: bool, ttl_s: Option<f64>) -> Self {
        let ttl = ttl_s.map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX));
        Self { inner: Arc::new(engine::Table::new(name, changelog, is_followed, ttl)) }
    }

    /// Returns for each partition that this process has its number, its rows, the bytes of their keys and values, the
    /// memory that they take, and whether they are restored, in the order of the numbers. Does not block.
    fn partitions(&self) -> Vec<(i32, usize, usize, usize, bool)> {
        let describe = |each: &Arc<engine::TablePartition>| {
            let (rows, size, memory) = each.sizes();
            (each.number(), rows, size, memory, each.is_restored())
        };
        self.inner.partitions().iter().map(describe).collect()
    }

    /// Returns the committed value of a key; None where there is none. Does not block.
    ///
    /// Raises:
    ///     ClosedError: this process does not have the partition.
    fn committed<'py>(&self, py: Python<'py>, partition: i32, key: &[u8]) -> Result<Option<Bound<'py, PyBytes>>> {
        let table = self.inner.partition(partition).ok_or(Error::Closed { what: "partition of the table" })?;
        Ok(table.get(key, |value| PyBytes::new(py, value)))
    }

    /// Returns the committed rows of a partition, in no order. Does not block.
    fn committed_items<'py>(&self, py: Python<'py>, partition: i32) -> Vec<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
        let Some(table) = self.inner.partition(partition) else { return Vec::new() };
        let mut items = Vec::new();
        table.each(|key, value| items.push((PyBytes::new(py, key), PyBytes::new(py, value))));
        items
    }
}

/// The rows of one partition of a table as one job sees them: the committed ones, and above them what the job wrote.
#[pyclass(frozen, module = "awoke._native")]
pub struct JobRows {
    pub table: Arc<engine::TablePartition>,
    /// True if other jobs of the partition may run at the same time.
    #[pyo3(get)]
    is_of_lane: bool,
    /// `None` when they were taken: the job has ended.
    writes: Mutex<Option<engine::Writes>>,
}

impl JobRows {
    pub fn new(table: Arc<engine::TablePartition>, is_of_lane: bool) -> Self {
        Self { table, is_of_lane, writes: Mutex::new(Some(engine::Writes::default())) }
    }

    /// Takes what was written.
    pub fn take(&self) -> Vec<engine::Written> {
        self.writes().take().map_or_else(Vec::new, engine::Writes::into_written)
    }

    fn writes(&self) -> MutexGuard<'_, Option<engine::Writes>> {
        self.writes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl JobRows {
    /// Returns the value of a key; None where there is no row. Does not block.
    fn get<'py>(&self, py: Python<'py>, key: &[u8]) -> Option<Bound<'py, PyBytes>> {
        if let Some(written) = self.writes().as_ref().and_then(|writes| writes.get(key)) {
            return written.map(|value| PyBytes::new(py, value));
        }
        self.table.get(key, |value| PyBytes::new(py, value))
    }

    /// True if the job has written any row.
    #[getter]
    fn is_written(&self) -> bool {
        self.writes().as_ref().is_some_and(|writes| writes.iter().next().is_some())
    }

    /// Writes a row for the message of this offset; a value of None deletes it. Does not block.
    ///
    /// Raises:
    ///     ClosedError: the job has ended.
    fn set(&self, offset: i64, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        self.writes().as_mut().ok_or(Error::Closed { what: "job" })?.set(offset, key, value);
        Ok(())
    }

    /// Notes an id for the message of this offset, under the key of the message. Returns whether it was noted before.
    /// Does not block.
    ///
    /// Raises:
    ///     ClosedError: the job has ended.
    fn sees(&self, offset: i64, key: Option<&[u8]>, id: &[u8]) -> Result<bool> {
        let key = key.unwrap_or_default();
        let row = [&(key.len() as u32).to_le_bytes(), key, id].concat();
        let mut writes = self.writes();
        let writes = writes.as_mut().ok_or(Error::Closed { what: "job" })?;
        if writes.get(&row).is_some() || self.table.get(&row, |_| ()).is_some() {
            return Ok(true);
        }
        writes.set(offset, &row, Some(&[]));
        Ok(false)
    }

    /// Forgets what the message of this offset has written: it has failed. Does not block.
    fn forget(&self, offset: i64) {
        if let Some(writes) = self.writes().as_mut() {
            writes.forget(offset);
        }
    }

    /// Returns all rows of the partition, in no order. Does not block.
    fn items<'py>(&self, py: Python<'py>) -> Vec<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
        let writes = self.writes();
        let pair = |(key, value): (&[u8], &[u8])| (PyBytes::new(py, key), PyBytes::new(py, value));
        let written = writes.iter().flat_map(engine::Writes::iter).filter_map(|(key, value)| Some((key, value?)));
        let mut items: Vec<_> = written.map(pair).collect();
        self.table.each(|key, value| {
            if writes.as_ref().is_none_or(|writes| writes.get(key).is_none()) {
                items.push(pair((key, value)));
            }
        });
        items
    }
}
