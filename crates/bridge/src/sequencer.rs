//! Entries that come from any thread in any order, and go to a Python function in order.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use awoke_engine::clock::Deadline;
use awoke_engine::wake::Sequencer as EngineSequencer;
use pyo3::exceptions::PyValueError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::errors::{duration, to_python};
use crate::sequencer_permit::{SequencerPermit, SequencerTicket};
use crate::sequencer_sink::{Count, Entries, Function, PythonSink};
use crate::waiting::wait_until_ready;

/// Entries that come from any thread in any order, and go to a function in order.
#[pyclass(frozen, module = "awoke._native")]
pub struct Sequencer {
    pub inner: Arc<Entries>,
    shared: Arc<Function>,
}

impl Sequencer {
    /// Takes an index: at once where there is room, and waiting with the GIL released where there is none.
    #[inline]
    fn take(&self, py: Python<'_>, index: u64, timeout_s: Option<f64>) -> PyResult<u64> {
        if index >= self.inner.appended() + self.inner.capacity() {
            let deadline = Deadline::after(duration(timeout_s)?);
            let count = index + 1 - self.inner.capacity();
            wait_until_ready(py, &Count { entries: &self.inner, count }, &deadline)?;
        }
        // An index without room does not wait here: the deadline has passed.
        let permit = self.inner.take(index, &Deadline::at(Instant::now()));
        permit.map(awoke_engine::wake::Permit::into_index).map_err(|error| to_python(&error))
    }

    #[inline]
    pub fn deposit_at(&self, index: u64, entry: Py<PyAny>) -> PyResult<()> {
        // SAFETY: the index was taken by the caller, and its permit forgotten there.
        unsafe { self.inner.permit_of(index) }.deposit(entry);
        self.raise_failure()
    }

    pub fn void_at(&self, index: u64) -> PyResult<()> {
        // SAFETY: as above.
        unsafe { self.inner.permit_of(index) }.void();
        self.raise_failure()
    }

    /// Raises the exception of the function in the thread that called it.
    #[inline]
    pub fn raise_failure(&self) -> PyResult<()> {
        if self.inner.check_open().is_ok() {
            return Ok(());
        }
        let failure = self.shared.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        failure.map_or(Ok(()), Err)
    }

    #[inline]
    pub fn wait_count(&self, py: Python<'_>, count: u64, timeout_s: Option<f64>) -> PyResult<()> {
        if self.inner.appended() >= count {
            return Ok(());
        }
        let began = Instant::now();
        wait_until_ready(py, &Count { entries: &self.inner, count }, &Deadline::after(duration(timeout_s)?))?;
        self.answer(count, began).map_err(|error| to_python(&error))
    }

    /// Checks that this number of entries was appended; returns why not otherwise.
    pub fn answer(&self, count: u64, began: Instant) -> Result<(), awoke_engine::wake::Error> {
        use awoke_engine::wake::Error;

        match self.inner.wait_for(count, &Deadline::at(Instant::now())) {
            Err(Error::TimedOut { operation, .. }) => Err(Error::TimedOut { operation, waited: began.elapsed() }),
            other => other,
        }
    }

    pub fn append_at(&self, py: Python<'_>, index: u64, entry: Py<PyAny>, timeout_s: Option<f64>) -> PyResult<()> {
        self.deposit_at(index, entry)?;
        let waited = self.wait_count(py, index + 1, timeout_s);
        if waited.is_err() {
            // SAFETY: there is no other ticket of this entry.
            drop(unsafe { self.inner.ticket_of(index) }.cancel());
        }
        waited
    }
}

#[pymethods]
impl Sequencer {
    #[new]
    #[pyo3(signature = (sink, capacity=65_536))]
    fn new(sink: Py<PyAny>, capacity: usize) -> PyResult<Self> {
        if capacity == 0 || capacity > 1 << 30 {
            return Err(PyValueError::new_err(format!("a sequencer has room for 1 to 2**30 entries, not {capacity}")));
        }
        let shared = Arc::new(Function { function: Mutex::new(Some(sink)), failure: Mutex::new(None) });
        let sink = PythonSink { shared: Arc::clone(&shared), run: Vec::new() };
        Ok(Self { inner: Arc::new(EngineSequencer::new(capacity, sink)), shared })
    }

    /// Deposits the entry of an index and waits until it was appended.
    #[pyo3(signature = (index, entry, timeout_s=None))]
    fn append(&self, py: Python<'_>, index: u64, entry: Py<PyAny>, timeout_s: Option<f64>) -> PyResult<()> {
        let index = self.take(py, index, timeout_s)?;
        self.append_at(py, index, entry, timeout_s)
    }

    /// Deposits the entry of an index, and does not wait.
    #[pyo3(signature = (index, entry, timeout_s=None))]
    fn deposit(
        slf: &Bound<'_, Self>,
        index: u64,
        entry: Py<PyAny>,
        timeout_s: Option<f64>,
    ) -> PyResult<SequencerTicket> {
        let sequencer = slf.get();
        let index = sequencer.take(slf.py(), index, timeout_s)?;
        sequencer.deposit_at(index, entry)?;
        Ok(SequencerTicket::new(slf.clone().unbind(), index))
    }

    /// Marks an index as one without an entry.
    #[pyo3(signature = (index, timeout_s=None))]
    fn void(&self, py: Python<'_>, index: u64, timeout_s: Option<f64>) -> PyResult<()> {
        let index = self.take(py, index, timeout_s)?;
        self.void_at(index)
    }

    /// Takes the next free index.
    #[pyo3(signature = (timeout_s=None))]
    fn claim(slf: &Bound<'_, Self>, timeout_s: Option<f64>) -> PyResult<SequencerPermit> {
        let (py, sequencer) = (slf.py(), slf.get());
        let permit = loop {
            match sequencer.inner.try_claim().map_err(|error| to_python(&error))? {
                Some(permit) => break permit,
                None => sequencer.wait_count(py, sequencer.inner.appended() + 1, timeout_s)?,
            }
        };
        let index = permit.into_index();
        Ok(SequencerPermit::new(slf.clone().unbind(), index))
    }

    /// Waits until this number of entries was appended or skipped.
    #[pyo3(signature = (count, timeout_s=None))]
    fn wait_for(&self, py: Python<'_>, count: u64, timeout_s: Option<f64>) -> PyResult<()> {
        self.wait_count(py, count, timeout_s)
    }

    /// The number of entries that were appended or skipped: all before this index.
    #[getter]
    fn appended(&self) -> u64 {
        self.inner.appended()
    }

    /// The number of entries that there is room for.
    #[getter]
    fn capacity(&self) -> u64 {
        self.inner.capacity()
    }

    /// The index that has not come though later ones have, and for how many seconds; `None` when there is none.
    #[getter]
    fn missing(&self) -> Option<(u64, f64)> {
        self.inner.missing().map(|missing| (missing.index, missing.since.elapsed().as_secs_f64()))
    }

    /// Ends every wait, now and later. Does not block.
    fn close(&self) {
        self.inner.close();
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // If another thread has locked it at this moment, it is in use and no garbage.
        self.shared.function.try_lock().map_or(Ok(()), |function| visit.call(&*function))
    }

    fn __clear__(&self) {
        let function = self.shared.function.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(function);
    }

    #[classmethod]
    fn __class_getitem__(cls: &Bound<'_, PyType>, _item: &Bound<'_, PyAny>) -> Py<PyType> {
        cls.clone().unbind()
    }
}
