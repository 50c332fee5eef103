//! Brokers inside the process.

use std::sync::{Mutex, PoisonError};

use awoke_embedded::{Fault, Happened, Server};
use awoke_engine::wake;
use pyo3::prelude::*;

use crate::errors::Result;
use crate::values::duration;
use crate::waiting::wait_for;

/// Kafka brokers inside the process. They stop with `close`, or when it is dropped.
#[pyclass(frozen, module = "awoke._native")]
pub struct EmbeddedBrokers {
    inner: Mutex<Option<Server>>,
    /// Where the brokers listen.
    #[pyo3(get)]
    bootstrap_servers: String,
}

impl EmbeddedBrokers {
    fn with<T: Send>(&self, py: Python<'_>, call: impl FnOnce(&Server) -> wake::Result<T> + Send) -> Result<T> {
        let called = py.detach(|| {
            let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            inner.as_ref().map_or(Err(wake::Error::Closed { what: "embedded cluster" }), call)
        });
        Ok(called?)
    }
}

/// A fault of embedded brokers that a test asked for.
#[pyclass(frozen, module = "awoke._native")]
pub struct EmbeddedFault {
    happened: Happened,
}

#[pymethods]
impl EmbeddedFault {
    /// Waits until the fault has happened, and returns whether it has. Blocks with the GIL released.
    fn wait(&self, py: Python<'_>, timeout_s: f64) -> Result<bool> {
        Ok(wait_for(py, &self.happened, &wake::clock::Deadline::after(duration(Some(timeout_s))?))?.is_some())
    }
}

#[pymethods]
impl EmbeddedBrokers {
    #[new]
    fn new(py: Python<'_>, brokers: i32) -> Result<Self> {
        let server = py.detach(|| Server::start(brokers))?;
        Ok(Self { bootstrap_servers: server.bootstrap_servers().to_owned(), inner: Mutex::new(Some(server)) })
    }

    /// Creates a topic; one that exists stays as it is.
    fn create_topic(&self, py: Python<'_>, topic: &str, partitions: i32, replicas: i32) -> Result<()> {
        self.with(py, |server| server.create_topic(topic, partitions, replicas))
    }

    /// Has a fault happen, by its kind, the names and the numbers that it is about.
    fn inject(&self, py: Python<'_>, kind: &str, names: Vec<String>, numbers: Vec<i64>) -> Result<EmbeddedFault> {
        self.with(py, |server| Ok(EmbeddedFault { happened: server.inject(Fault::of(kind, &names, &numbers)?)? }))
    }

    /// Stops the brokers. Blocks with the GIL released.
    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(self.inner.lock().unwrap_or_else(PoisonError::into_inner).take()));
    }
}
