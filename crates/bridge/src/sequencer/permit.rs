//! Permits and tickets of a sequencer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use awoke_engine::Error;
use awoke_engine::wake::Awaited;
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};

use crate::errors::Result;
use crate::sequencer::Sequencer;
use crate::waiting::{Mailbox, resolve};

/// A claimed index, which its holder alone may use. At the end of a `with`, or dropped without an entry, it is skipped.
#[pyclass(frozen, module = "awoke._native")]
pub struct SequencerPermit {
    sequencer: Py<Sequencer>,
    /// The index.
    #[pyo3(get)]
    index: u64,
    is_open: AtomicBool,
}

impl SequencerPermit {
    pub const fn new(sequencer: Py<Sequencer>, index: u64) -> Self {
        Self { sequencer, index, is_open: AtomicBool::new(true) }
    }

    /// Uses the permit up; `None` when it was used before.
    fn spend(&self) -> Option<u64> {
        self.is_open.swap(false, Ordering::Relaxed).then_some(self.index)
    }

    fn spend_once(&self) -> Result<u64> {
        let again = || Error::Invalid { reason: format!("entry {} has been there before", self.index) };
        Ok(self.spend().ok_or_else(again)?)
    }
}

#[pymethods]
impl SequencerPermit {
    /// Deposits the entry and waits until it has been appended. Blocks, and raises as `Sequencer.append`.
    #[pyo3(signature = (entry, timeout_s=None))]
    fn append(&self, py: Python<'_>, entry: Py<PyAny>, timeout_s: Option<f64>) -> Result<()> {
        let index = self.spend_once()?;
        self.sequencer.get().append_at(py, index, entry, timeout_s)
    }

    /// Deposits the entry, and does not wait.
    fn deposit(&self, py: Python<'_>, entry: Py<PyAny>) -> Result<SequencerTicket> {
        let index = self.spend_once()?;
        self.sequencer.get().deposit_at(index, entry)?;
        Ok(SequencerTicket::new(self.sequencer.clone_ref(py), index))
    }

    /// Marks the index as one without an entry.
    fn void(&self) -> Result<()> {
        let index = self.spend_once()?;
        self.sequencer.get().void_at(index)
    }

    const fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    /// Makes the index void if it has no entry.
    #[pyo3(signature = (*_why))]
    fn __exit__(&self, _why: &Bound<'_, PyTuple>) -> Result<()> {
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

/// A deposited entry: `wait`, or `await` it, until it has been appended.
#[pyclass(frozen, module = "awoke._native")]
pub struct SequencerTicket {
    sequencer: Py<Sequencer>,
    /// The index of the entry.
    #[pyo3(get)]
    index: u64,
}

impl SequencerTicket {
    pub const fn new(sequencer: Py<Sequencer>, index: u64) -> Self {
        Self { sequencer, index }
    }
}

#[pymethods]
impl SequencerTicket {
    /// Returns whether it was appended, or never will be. Does not block.
    fn done(&self) -> bool {
        self.sequencer.get().inner.count(self.index + 1).is_ready()
    }

    /// Waits until it was appended.
    #[pyo3(signature = (timeout_s=None))]
    fn wait(&self, py: Python<'_>, timeout_s: Option<f64>) -> Result<()> {
        self.sequencer.get().wait_count(py, self.index + 1, timeout_s)
    }

    /// Returns if it was appended, raises if it never will be. Does not block: call it when `done`.
    fn result(&self) -> Result<()> {
        Ok(self.sequencer.get().inner.count(self.index + 1).check(Instant::now())?)
    }

    /// Takes the entry back, whose index is void then. Returns whether it was not appended yet.
    fn cancel(&self) -> Result<bool> {
        let sequencer = self.sequencer.get();
        // SAFETY: tickets of one entry are clones of this object's reference, and a second cancel finds nothing.
        let entry = unsafe { sequencer.inner.ticket_of(self.index) }.cancel();
        sequencer.raise_failure()?;
        Ok(entry.is_some())
    }

    /// Has `token` posted to the mailbox when it is done. Returns `False` when it is done now.
    fn notify(&self, mailbox: &Mailbox, token: u64) -> bool {
        let waker = mailbox.waker(token);
        self.sequencer.get().inner.register(self.index + 1, waker).is_some()
    }

    fn __await__<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, PyAny>> {
        resolve(slf)
    }
}
