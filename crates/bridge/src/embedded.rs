//! Brokers inside the process.

use std::sync::{Mutex, PoisonError};

use awoke_embedded::{Fault, Happened, Refusal, Server};
use awoke_engine::clock::Deadline;
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

    fn inject(&self, py: Python<'_>, fault: Fault) -> Result<EmbeddedFault> {
        Ok(EmbeddedFault { happened: self.with(py, |server| server.inject(fault))? })
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
    #[pyo3(signature = (timeout_s=None))]
    fn wait(&self, py: Python<'_>, timeout_s: Option<f64>) -> Result<bool> {
        let deadline = Deadline::after(duration(timeout_s)?);
        Ok(wait_for(py, &self.happened, &deadline)?.is_some())
    }

    /// Returns whether the fault has happened. Does not block.
    fn done(&self) -> bool {
        self.happened.is_done()
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

    /// Refuses the next batches for a topic with an error of this name.
    fn refuse_produce(&self, py: Python<'_>, topic: String, error: String, times: u32) -> Result<EmbeddedFault> {
        self.inject(py, Fault::RefuseProduce(Refusal { name: topic, error, times }))
    }

    /// Answers the next fetches of a topic's partitions with an error of this name.
    fn refuse_fetch(&self, py: Python<'_>, topic: String, error: String, times: u32) -> Result<EmbeddedFault> {
        self.inject(py, Fault::RefuseFetch(Refusal { name: topic, error, times }))
    }

    /// Refuses the next commits of a group's offsets with an error of this name.
    fn refuse_commit(&self, py: Python<'_>, group: String, error: String, times: u32) -> Result<EmbeddedFault> {
        self.inject(py, Fault::RefuseCommit(Refusal { name: group, error, times }))
    }

    /// Writes the next batches for a topic, and closes the connection instead of an answer.
    fn lose_acknowledgement(&self, py: Python<'_>, topic: String, times: u32) -> Result<EmbeddedFault> {
        self.inject(py, Fault::LoseAcknowledgement(topic, times))
    }

    /// Aborts a transaction when it is to be committed. An id that ends with a dot is the prefix of ids.
    fn abort_transaction(&self, py: Python<'_>, id: String) -> Result<EmbeddedFault> {
        self.inject(py, Fault::AbortTransaction(id))
    }

    /// Revokes a partition from the member of a group that has it.
    fn revoke(&self, py: Python<'_>, group: String, topic: String, partition: i32) -> Result<EmbeddedFault> {
        self.inject(py, Fault::Revoke(group, (topic, partition)))
    }

    /// Removes the member of a group that has a partition.
    fn lose(&self, py: Python<'_>, group: String, topic: String, partition: i32) -> Result<EmbeddedFault> {
        self.inject(py, Fault::Lose(group, (topic, partition)))
    }

    /// Drops the batches of a partition that contain an offset or a later one.
    fn truncate(&self, py: Python<'_>, topic: String, partition: i32, offset: i64) -> Result<EmbeddedFault> {
        self.inject(py, Fault::Truncate((topic, partition), offset))
    }

    /// Stops the brokers. Blocks with the GIL released.
    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(self.inner.lock().unwrap_or_else(PoisonError::into_inner).take()));
    }
}
