//! Entries that come from any thread in any order, and go to a Python function in order.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use awoke_engine::clock::Deadline;
use awoke_engine::wake::Sequencer as EngineSequencer;
use pyo3::exceptions::PyValueError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::errors::Result;
use crate::values::duration;
use crate::waiting::wait_until_ready;

mod permit;
mod sink;

use sink::{Entries, Function, PythonSink};

pub use permit::{SequencerPermit, SequencerTicket};

/// Entries with the indexes 0, 1, 2, … that come from any thread in any order and are given to a function in order.
///
/// The thread that brings the missing entry calls `sink` with a list of all contiguous entries (up to 512 at a time);
/// no other thread is woken for it. One thread at a time is in `sink`, and no lock is held. `sink` may bring entries
/// itself, but must not wait for one, nor for room. Its errors are raised to the thread that called it, and break the
/// sequencer.
///
/// There is room for `capacity` entries (rounded up to a power of two) from the first missing one on. Any thread may
/// call any method. See `docs/ordered.md`.
#[pyclass(frozen, module = "awoke._native")]
pub struct Sequencer {
    pub inner: Arc<Entries>,
    shared: Arc<Function>,
}

impl Sequencer {
    /// Takes an index: at once where there is room, and waiting with the GIL released where there is none.
    #[inline]
    fn take(&self, py: Python<'_>, index: u64, timeout_s: Option<f64>) -> Result<u64> {
        if let Some(room) = self.inner.room_for(index) {
            wait_until_ready(py, &room, &Deadline::after(duration(timeout_s)?))?;
        }
        // An index without room does not wait here: the deadline has passed.
        let permit = self.inner.take(index, &Deadline::at(Instant::now()));
        Ok(permit.map(awoke_engine::wake::Permit::into_index)?)
    }

    #[inline]
    pub fn deposit_at(&self, index: u64, entry: Py<PyAny>) -> Result<()> {
        // SAFETY: the index was taken by the caller, and its permit forgotten there.
        unsafe { self.inner.permit_of(index) }.deposit(entry);
        self.raise_failure()
    }

    pub fn void_at(&self, index: u64) -> Result<()> {
        // SAFETY: as above.
        unsafe { self.inner.permit_of(index) }.void();
        self.raise_failure()
    }

    /// Raises the exception of the function in the thread that called it.
    #[inline]
    pub fn raise_failure(&self) -> Result<()> {
        if self.inner.check_open().is_ok() {
            return Ok(());
        }
        let failure = self.shared.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        Ok(failure.map_or(Ok(()), Err)?)
    }

    #[inline]
    pub fn wait_count(&self, py: Python<'_>, count: u64, timeout_s: Option<f64>) -> Result<()> {
        if self.inner.appended() >= count {
            return Ok(());
        }
        let began = Instant::now();
        let count = self.inner.count(count);
        wait_until_ready(py, &count, &Deadline::after(duration(timeout_s)?))?;
        Ok(count.check(began)?)
    }

    pub fn append_at(&self, py: Python<'_>, index: u64, entry: Py<PyAny>, timeout_s: Option<f64>) -> Result<()> {
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
    fn new(sink: Py<PyAny>, capacity: usize) -> Result<Self> {
        if capacity == 0 || capacity > 1 << 30 {
            Err(PyValueError::new_err(format!("a sequencer has room for 1 to 2**30 entries, not {capacity}")))?;
        }
        let shared = Arc::new(Function { function: Mutex::new(Some(sink)), failure: Mutex::new(None) });
        let sink = PythonSink { shared: Arc::clone(&shared), run: Vec::new() };
        Ok(Self { inner: Arc::new(EngineSequencer::new(capacity, sink)), shared })
    }

    /// Deposits the entry of an index and waits until it has been appended. Blocks.
    ///
    /// Raises:
    ///     OperationTimeout: not in time; the entry is taken back and its index skipped, unless it was being appended
    ///         at that moment. ValueError: the index has been there before. ClosedError, SequencerBroken.
    #[pyo3(signature = (index, entry, timeout_s=None))]
    fn append(&self, py: Python<'_>, index: u64, entry: Py<PyAny>, timeout_s: Option<f64>) -> Result<()> {
        let index = self.take(py, index, timeout_s)?;
        self.append_at(py, index, entry, timeout_s)
    }

    /// Deposits the entry of an index, and does not wait for it. Blocks only while there is no room for its index.
    ///
    /// Raises:
    ///     OperationTimeout: no room in time; ValueError, ClosedError, SequencerBroken: as `append`.
    #[pyo3(signature = (index, entry, timeout_s=None))]
    fn deposit(slf: &Bound<'_, Self>, index: u64, entry: Py<PyAny>, timeout_s: Option<f64>) -> Result<SequencerTicket> {
        let sequencer = slf.get();
        let index = sequencer.take(slf.py(), index, timeout_s)?;
        sequencer.deposit_at(index, entry)?;
        Ok(SequencerTicket::new(slf.clone().unbind(), index))
    }

    /// Skips an index whose entry will never come. Blocks and raises as `deposit`.
    #[pyo3(signature = (index, timeout_s=None))]
    fn void(&self, py: Python<'_>, index: u64, timeout_s: Option<f64>) -> Result<()> {
        let index = self.take(py, index, timeout_s)?;
        self.void_at(index)
    }

    /// Claims the next free index. Blocks while there is no room.
    ///
    /// Raises:
    ///     OperationTimeout: no room in time; ClosedError, SequencerBroken.
    #[pyo3(signature = (timeout_s=None))]
    fn claim(slf: &Bound<'_, Self>, timeout_s: Option<f64>) -> Result<SequencerPermit> {
        let (py, sequencer) = (slf.py(), slf.get());
        let permit = loop {
            match sequencer.inner.try_claim()? {
                Some(permit) => break permit,
                None => sequencer.wait_count(py, sequencer.inner.appended() + 1, timeout_s)?,
            }
        };
        let index = permit.into_index();
        Ok(SequencerPermit::new(slf.clone().unbind(), index))
    }

    /// Waits until `count` entries have been appended or skipped. Blocks.
    ///
    /// Raises:
    ///     OperationTimeout: not in time; names the entry that is missing. ClosedError, SequencerBroken.
    #[pyo3(signature = (count, timeout_s=None))]
    fn wait_for(&self, py: Python<'_>, count: u64, timeout_s: Option<f64>) -> Result<()> {
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

    /// Ends every wait, now and later, with `ClosedError`. Does not block.
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
