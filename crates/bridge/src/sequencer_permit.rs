//! Permits and tickets of a sequencer.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use awoke_engine::Error;
use awoke_engine::wake::Waker;
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};

use crate::errors::to_python;
use crate::sequencer::Sequencer;
use crate::sequencer_sink::Count;
use crate::waiting::{Awaited, Mailbox};

/// An index that its holder alone may use; dropped without an entry it is void.
#[pyclass(frozen, module = "awoke._native")]
pub struct SequencerPermit {
    sequencer: Py<Sequencer>,
    index: u64,
    is_open: Mutex<bool>,
}

impl SequencerPermit {
    pub const fn new(sequencer: Py<Sequencer>, index: u64) -> Self {
        Self { sequencer, index, is_open: Mutex::new(true) }
    }

    /// Uses the permit up; `None` when it was used before.
    fn spend(&self) -> Option<u64> {
        let mut is_open = self.is_open.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *is_open, false).then_some(self.index)
    }

    fn spend_once(&self) -> PyResult<u64> {
        let again = || to_python(&Error::Invalid { reason: format!("entry {} has been there before", self.index) });
        self.spend().ok_or_else(again)
    }
}

#[pymethods]
impl SequencerPermit {
    /// The index.
    #[getter]
    const fn index(&self) -> u64 {
        self.index
    }

    /// Deposits the entry and waits until it was appended.
    #[pyo3(signature = (entry, timeout_s=None))]
    fn append(&self, py: Python<'_>, entry: Py<PyAny>, timeout_s: Option<f64>) -> PyResult<()> {
        let index = self.spend_once()?;
        self.sequencer.get().append_at(py, index, entry, timeout_s)
    }

    /// Deposits the entry, and does not wait.
    fn deposit(&self, py: Python<'_>, entry: Py<PyAny>) -> PyResult<SequencerTicket> {
        let index = self.spend_once()?;
        self.sequencer.get().deposit_at(index, entry)?;
        Ok(SequencerTicket::new(self.sequencer.clone_ref(py), index))
    }

    /// Marks the index as one without an entry.
    fn void(&self) -> PyResult<()> {
        let index = self.spend_once()?;
        self.sequencer.get().void_at(index)
    }

    const fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    /// Makes the index void if it has no entry.
    #[pyo3(signature = (*_why))]
    fn __exit__(&self, _why: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.spend().map_or(Ok(()), |index| self.sequencer.get().void_at(index))
    }

    #[classmethod]
    fn __class_getitem__(cls: &Bound<'_, PyType>, _item: &Bound<'_, PyAny>) -> Py<PyType> {
        cls.clone().unbind()
    }
}

impl Drop for SequencerPermit {
    fn drop(&mut self) {
        let Some(index) = self.spend() else { return };
        Python::attach(|py| {
            // An exception may be in flight here; the function that is called must not see it.
            let on_its_way = PyErr::take(py);
            // An exception of the function has no caller here; the sequencer is broken, and later calls raise.
            drop(self.sequencer.get().void_at(index));
            if let Some(error) = on_its_way {
                error.restore(py);
            }
        });
    }
}

/// A deposited entry, and whether it was appended.
#[pyclass(frozen, module = "awoke._native")]
pub struct SequencerTicket {
    sequencer: Py<Sequencer>,
    index: u64,
}

impl SequencerTicket {
    pub const fn new(sequencer: Py<Sequencer>, index: u64) -> Self {
        Self { sequencer, index }
    }
}

#[pymethods]
impl SequencerTicket {
    /// The index of the entry.
    #[getter]
    const fn index(&self) -> u64 {
        self.index
    }

    /// Returns whether it was appended, or never will be. Does not block.
    fn done(&self) -> bool {
        let entries = &*self.sequencer.get().inner;
        Count { entries, count: self.index + 1 }.is_ready()
    }

    /// Waits until it was appended.
    #[pyo3(signature = (timeout_s=None))]
    fn wait(&self, py: Python<'_>, timeout_s: Option<f64>) -> PyResult<()> {
        self.sequencer.get().wait_count(py, self.index + 1, timeout_s)
    }

    /// Returns if it was appended, raises if it never will be. Does not block: call it when `done`.
    fn result(&self) -> PyResult<()> {
        self.sequencer.get().answer(self.index + 1, Instant::now()).map_err(|error| to_python(&error))
    }

    /// Takes the entry back, whose index is void then. Returns whether it was not appended yet.
    fn cancel(&self) -> PyResult<bool> {
        let sequencer = self.sequencer.get();
        // SAFETY: tickets of one entry are clones of this object's reference, and a second cancel finds nothing.
        let entry = unsafe { sequencer.inner.ticket_of(self.index) }.cancel();
        sequencer.raise_failure()?;
        Ok(entry.is_some())
    }

    /// Has `token` posted to the mailbox when it is done. Returns `False` when it is done now.
    fn notify(&self, mailbox: &Mailbox, token: u64) -> bool {
        let waker = Waker::Mailbox { mailbox: Arc::clone(&mailbox.inner), token };
        self.sequencer.get().inner.register(self.index + 1, waker).is_some()
    }

    fn __await__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let resolve = slf.py().import("awoke._waiting")?.getattr("resolve")?;
        resolve.call1((slf,))?.call_method0("__await__")
    }
}
