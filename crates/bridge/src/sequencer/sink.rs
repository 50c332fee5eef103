//! The Python function that gets a sequencer's entries.

use std::sync::{Arc, Mutex, PoisonError};

use awoke_engine::wake::{Sequencer as EngineSequencer, Sink};
use pyo3::prelude::*;
use pyo3::types::PyList;

/// A sequencer of Python objects.
pub type Entries = EngineSequencer<Py<PyAny>, PythonSink>;

/// The state that the sink and the Python object share.
pub struct Function {
    /// `None` when Python's garbage collector has taken it: it may form a cycle with the sequencer.
    pub function: Mutex<Option<Py<PyAny>>>,
    /// The exception that it raised, for the thread that called it.
    pub failure: Mutex<Option<PyErr>>,
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
pub struct PythonSink {
    pub shared: Arc<Function>,
    pub run: Vec<Py<PyAny>>,
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
