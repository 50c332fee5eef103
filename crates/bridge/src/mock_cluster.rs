//! Brokers inside the process.

use std::sync::Arc;

use awoke_engine::kafka as engine;
use pyo3::prelude::*;

use crate::errors::Result;
use crate::events::EventBox;

/// Brokers inside the process. They stop with `close`, or when it is dropped.
#[pyclass(frozen, module = "awoke._native")]
pub struct MockCluster {
    inner: std::sync::Mutex<Option<engine::MockCluster>>,
    /// Where the brokers listen.
    #[pyo3(get)]
    bootstrap_servers: String,
}

impl MockCluster {
    fn with<T>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&engine::MockCluster) -> awoke_engine::Result<T> + Send,
    ) -> Result<T>
    where
        T: Send,
    {
        let called = py.detach(|| {
            let inner = self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            inner.as_ref().map_or(Err(awoke_engine::Error::Closed { what: "embedded cluster" }), call)
        });
        Ok(called?)
    }
}

#[pymethods]
impl MockCluster {
    #[new]
    fn new(py: Python<'_>, brokers: i32, events: &EventBox) -> Result<Self> {
        let events = Arc::clone(&events.inner);
        let cluster = py.detach(|| engine::MockCluster::start(brokers, events))?;
        let bootstrap_servers = cluster.bootstrap_servers().to_owned();
        Ok(Self { inner: std::sync::Mutex::new(Some(cluster)), bootstrap_servers })
    }

    /// Creates a topic.
    fn create_topic(&self, py: Python<'_>, topic: &str, partitions: i32, replicas: i32) -> Result<()> {
        self.with(py, |cluster| cluster.create_topic(topic, partitions, replicas))
    }

    /// Makes a broker refuse connections, or accept them again.
    fn set_broker_up(&self, py: Python<'_>, broker: i32, is_up: bool) -> Result<()> {
        self.with(py, |cluster| cluster.set_broker_up(broker, is_up))
    }

    /// Makes a broker answer this much later.
    fn set_round_trip(&self, py: Python<'_>, broker: i32, round_trip_ms: i32) -> Result<()> {
        self.with(py, |cluster| cluster.set_round_trip(broker, round_trip_ms))
    }

    /// Answers the next requests of a kind, by Kafka's number for it, with these errors.
    fn fail_requests(&self, py: Python<'_>, api_key: i16, codes: Vec<i32>) -> Result<()> {
        self.with(py, move |cluster| cluster.fail_requests(api_key, &codes))
    }

    /// Stops the brokers. Blocks with the GIL released.
    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take()));
    }
}
