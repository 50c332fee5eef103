//! Brokers inside the process.

use std::sync::{Mutex, PoisonError};

use awoke_embedded::Server;
use awoke_engine::wake;
use pyo3::prelude::*;

use crate::errors::Result;

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

#[pymethods]
impl EmbeddedBrokers {
    #[new]
    fn new(py: Python<'_>, brokers: i32) -> Result<Self> {
        let server = py.detach(|| Server::start(brokers))?;
        let bootstrap_servers = server.bootstrap_servers().to_owned();
        Ok(Self { inner: Mutex::new(Some(server)), bootstrap_servers })
    }

    /// Creates a topic; one that exists stays as it is.
    fn create_topic(&self, py: Python<'_>, topic: &str, partitions: i32, replicas: i32) -> Result<()> {
        self.with(py, |server| server.create_topic(topic, partitions, replicas))
    }

    /// Makes a broker refuse connections, or accept them again.
    fn set_broker_up(&self, py: Python<'_>, broker: i32, is_up: bool) -> Result<()> {
        self.with(py, |server| server.set_broker_up(broker, is_up))
    }

    /// Makes a broker answer this much later.
    fn set_round_trip(&self, py: Python<'_>, broker: i32, round_trip_ms: i32) -> Result<()> {
        self.with(py, |server| server.set_round_trip(broker, round_trip_ms))
    }

    /// Answers the next requests of a kind, by Kafka's number for it, with these errors.
    fn fail_requests(&self, py: Python<'_>, api_key: i16, codes: Vec<i32>) -> Result<()> {
        self.with(py, move |server| server.fail_requests(api_key, &codes))
    }

    /// Stops the brokers. Blocks with the GIL released.
    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(self.inner.lock().unwrap_or_else(PoisonError::into_inner).take()));
    }
}
