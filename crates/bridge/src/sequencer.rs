//! Entries that come from any thread in any order, and go to a Python function in order.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use awoke_engine::Error;
use awoke_engine::clock::Deadline;
use awoke_engine::wake::{Registration, Sequencer as EngineSequencer, Sink, Waker};
use pyo3::exceptions::PyValueError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple, PyType};

use crate::errors::{duration, to_python};
use crate::waiting::{Awaited, Mailbox, wait_until_ready};

type Entries = EngineSequencer<Py<PyAny>, PythonSink>;

/// What the sink and the Python object share.
struct Function {
    /// `None` when Python's collector has taken it: it may refer to whoever refers to the sequencer.
    function: Mutex<Option<Py<PyAny>>>,
    /// What it raised, for the caller that it was called by.
    failure: Mutex<Option<PyErr>>,
}

impl Function {
    fn call(&self, run: Vec<Py<PyAny>>) -> PyResult<()> {
        Python::attach(|py| {
            let function =
                self.function.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|f| f.clone_ref(py));
            function.map_or(Ok(()), |function| function.call1(py, (PyList::new(py, run)?,)).map(drop))
        })
    }
}

/// Collects a run and gives it to Python in one call.
struct PythonSink {
    shared: Arc<Function>,
    run: Vec<Py<PyAny>>,
}

impl Sink<Py<PyAny>> for PythonSink {
    fn append(&mut self, _index: u64, entry: Py<PyAny>) {
        self.run.push(entry);
    }

    fn flush(&mut self) -> bool {
        if self.run.is_empty() {
            return true;
        }
        let called = self.shared.call(std::mem::take(&mut self.run));
        called
            .map_err(|error| *self.shared.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error))
            .is_ok()
    }
}

/// Entries that come from any thread in any order, and go to a function in order.
#[pyclass(frozen, module = "awoke._native")]
pub struct Sequencer {
    inner: Arc<Entries>,
    shared: Arc<Function>,
}

/// So many entries appended.
struct Count<'a> {
    entries: &'a Entries,
    count: u64,
}

impl Awaited for Count<'_> {
    type Registration = Registration;

    fn is_ready(&self) -> bool {
        self.entries.appended() >= self.count || self.entries.check_open().is_err()
    }

    fn register(&self, waker: Waker) -> Option<Registration> {
        self.entries.register(self.count, waker)
    }

    fn unregister(&self, registration: Registration) {
        self.entries.unregister(registration);
    }

    fn block(&self, deadline: &Deadline) {
        // Whatever ended it is found again by whoever asks.
        drop(self.entries.wait_for(self.count, deadline));
    }
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
        // What has no room now never waits: the deadline has passed.
        let permit = self.inner.take(index, &Deadline::at(Instant::now()));
        permit.map(awoke_engine::wake::Permit::into_index).map_err(|error| to_python(&error))
    }

    #[inline]
    fn deposit_at(&self, index: u64, entry: Py<PyAny>) -> PyResult<()> {
        // SAFETY: the index was taken by the caller, and its permit forgotten there.
        unsafe { self.inner.permit_of(index) }.deposit(entry);
        self.raise_failure()
    }

    fn void_at(&self, index: u64) -> PyResult<()> {
        // SAFETY: as above.
        unsafe { self.inner.permit_of(index) }.void();
        self.raise_failure()
    }

    /// Raises what the function raised, in the thread that called it.
    #[inline]
    fn raise_failure(&self) -> PyResult<()> {
        if self.inner.check_open().is_ok() {
            return Ok(());
        }
        let failure = self.shared.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        failure.map_or(Ok(()), Err)
    }

    #[inline]
    fn wait_count(&self, py: Python<'_>, count: u64, timeout_s: Option<f64>) -> PyResult<()> {
        if self.inner.appended() >= count {
            return Ok(());
        }
        let began = Instant::now();
        wait_until_ready(py, &Count { entries: &self.inner, count }, &Deadline::after(duration(timeout_s)?))?;
        self.answer(count, began).map_err(|error| to_python(&error))
    }

    /// Whether so many have been appended; otherwise why not.
    fn answer(&self, count: u64, began: Instant) -> Result<(), awoke_engine::wake::Error> {
        use awoke_engine::wake::Error;

        match self.inner.wait_for(count, &Deadline::at(Instant::now())) {
            Err(Error::TimedOut { operation, .. }) => Err(Error::TimedOut { operation, waited: began.elapsed() }),
            other => other,
        }
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

    /// Leaves the entry of an index and waits until it has been appended.
    #[pyo3(signature = (index, entry, timeout_s=None))]
    fn append(&self, py: Python<'_>, index: u64, entry: Py<PyAny>, timeout_s: Option<f64>) -> PyResult<()> {
        let index = self.take(py, index, timeout_s)?;
        self.append_at(py, index, entry, timeout_s)
    }

    /// Leaves the entry of an index and goes on.
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
        Ok(SequencerTicket { sequencer: slf.clone().unbind(), index })
    }

    /// Says that the entry of an index will never come.
    #[pyo3(signature = (index, timeout_s=None))]
    fn void(&self, py: Python<'_>, index: u64, timeout_s: Option<f64>) -> PyResult<()> {
        let index = self.take(py, index, timeout_s)?;
        self.void_at(index)
    }

    /// The next index that nobody has.
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
        Ok(SequencerPermit { sequencer: slf.clone().unbind(), index, is_open: Mutex::new(true) })
    }

    /// Waits until so many entries have been appended or passed over.
    #[pyo3(signature = (count, timeout_s=None))]
    fn wait_for(&self, py: Python<'_>, count: u64, timeout_s: Option<f64>) -> PyResult<()> {
        self.wait_count(py, count, timeout_s)
    }

    /// How many have been appended or passed over: all before this index.
    #[getter]
    fn appended(&self) -> u64 {
        self.inner.appended()
    }

    /// How many entries there is room for.
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
        // Held by somebody who uses it at this moment: then it is no garbage.
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

impl Sequencer {
    fn append_at(&self, py: Python<'_>, index: u64, entry: Py<PyAny>, timeout_s: Option<f64>) -> PyResult<()> {
        self.deposit_at(index, entry)?;
        let waited = self.wait_count(py, index + 1, timeout_s);
        if waited.is_err() {
            // SAFETY: nobody else has a ticket of this entry.
            drop(unsafe { self.inner.ticket_of(index) }.cancel());
        }
        waited
    }
}

/// An index that belongs to its holder alone; dropped without an entry it is void.
#[pyclass(frozen, module = "awoke._native")]
pub struct SequencerPermit {
    sequencer: Py<Sequencer>,
    index: u64,
    is_open: Mutex<bool>,
}

impl SequencerPermit {
    /// Uses the permit up; `None` when it has been.
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
    /// Which index.
    #[getter]
    const fn index(&self) -> u64 {
        self.index
    }

    /// Leaves the entry and waits until it has been appended.
    #[pyo3(signature = (entry, timeout_s=None))]
    fn append(&self, py: Python<'_>, entry: Py<PyAny>, timeout_s: Option<f64>) -> PyResult<()> {
        let index = self.spend_once()?;
        self.sequencer.get().append_at(py, index, entry, timeout_s)
    }

    /// Leaves the entry and goes on.
    fn deposit(&self, py: Python<'_>, entry: Py<PyAny>) -> PyResult<SequencerTicket> {
        let index = self.spend_once()?;
        self.sequencer.get().deposit_at(index, entry)?;
        Ok(SequencerTicket { sequencer: self.sequencer.clone_ref(py), index })
    }

    /// Says that the entry will never come.
    fn void(&self) -> PyResult<()> {
        let index = self.spend_once()?;
        self.sequencer.get().void_at(index)
    }

    const fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    /// What was left without an entry is void.
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
            // An exception may be on its way through here, and the function that is called must not meet it.
            let on_its_way = PyErr::take(py);
            // What the function raises has nobody to go to; the sequencer says that it is broken.
            drop(self.sequencer.get().void_at(index));
            if let Some(error) = on_its_way {
                error.restore(py);
            }
        });
    }
}

/// An entry that was left, and whether it has been appended.
#[pyclass(frozen, module = "awoke._native")]
pub struct SequencerTicket {
    sequencer: Py<Sequencer>,
    index: u64,
}

#[pymethods]
impl SequencerTicket {
    /// Of which index.
    #[getter]
    const fn index(&self) -> u64 {
        self.index
    }

    /// Whether it has been appended, or never will be. Does not block.
    fn done(&self) -> bool {
        let entries = &*self.sequencer.get().inner;
        Count { entries, count: self.index + 1 }.is_ready()
    }

    /// Waits until it has been appended.
    #[pyo3(signature = (timeout_s=None))]
    fn wait(&self, py: Python<'_>, timeout_s: Option<f64>) -> PyResult<()> {
        self.sequencer.get().wait_count(py, self.index + 1, timeout_s)
    }

    /// Returns when it has been appended, raises when it never will be. Does not block: call it when `done`.
    fn result(&self) -> PyResult<()> {
        self.sequencer.get().answer(self.index + 1, Instant::now()).map_err(|error| to_python(&error))
    }

    /// Takes the entry back, whose index is void then; whether it had not been appended.
    fn cancel(&self) -> PyResult<bool> {
        let sequencer = self.sequencer.get();
        // SAFETY: tickets of one entry are clones of this object's reference, and a second cancel finds nothing.
        let entry = unsafe { sequencer.inner.ticket_of(self.index) }.cancel();
        sequencer.raise_failure()?;
        Ok(entry.is_some())
    }

    /// Has `token` posted to the mailbox when it is done; `False` when it is now.
    fn notify(&self, mailbox: &Mailbox, token: u64) -> bool {
        let waker = Waker::Mailbox { mailbox: Arc::clone(&mailbox.inner), token };
        self.sequencer.get().inner.register(self.index + 1, waker).is_some()
    }

    fn __await__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let resolve = slf.py().import("awoke._waiting")?.getattr("resolve")?;
        resolve.call1((slf,))?.call_method0("__await__")
    }
}
