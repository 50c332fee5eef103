//! Admin calls, as Python sees them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use awoke_engine::Error;
use awoke_engine::clock::Deadline;
use awoke_engine::kafka as engine;
use awoke_engine::wake::Completion;
use pyo3::prelude::*;

use crate::errors::Result;
use crate::events::EventBox;
use crate::open::Open;
use crate::properties::Properties;
use crate::values::seconds;
use crate::waiting::{Mailbox, resolve, wait_for};

/// (name, error code or 0, error name, error text).
type Topic = (String, i32, String, String);
/// (name, partitions, replicas, settings).
type NewTopic = (String, i32, i32, Vec<(String, String)>);
/// (partition, leader, replicas, in-sync replicas).
type Partition = (i32, i32, Vec<i32>, Vec<i32>);
/// Brokers as (id, address), topics as (name, error code or 0, partitions).
type Found = (Vec<(i32, String)>, Vec<(String, i32, Vec<Partition>)>);

/// A client for admin calls.
#[pyclass(frozen, module = "awoke._native")]
pub struct Admin {
    inner: Open<engine::Admin>,
}

impl Admin {
    fn open(&self) -> Result<Arc<engine::Admin>> {
        Ok(self.inner.get()?)
    }

    fn call(
        &self,
        timeout_s: f64,
        start: impl FnOnce(&engine::Admin, Duration) -> awoke_engine::Result<Arc<Call>>,
    ) -> Result<PendingCall> {
        Ok(PendingCall { completion: start(&*self.open()?, seconds(timeout_s)?)? })
    }
}

type Call = Completion<awoke_engine::Result<engine::AdminOutcome>>;

#[pymethods]
impl Admin {
    #[new]
    fn new(py: Python<'_>, properties: Properties, events: &EventBox) -> Result<Self> {
        let events = Arc::clone(&events.inner);
        let inner = py.detach(|| engine::Admin::new(&properties.config(), events))?;
        Ok(Self { inner: Open::new("admin", inner) })
    }

    /// Returns brokers as (id, address), topics as (name, error code, partitions). Blocks with the GIL released.
    #[pyo3(signature = (topic, timeout_s))]
    fn metadata(&self, py: Python<'_>, topic: Option<&str>, timeout_s: f64) -> Result<Found> {
        let timeout = seconds(timeout_s)?;
        let admin = self.open()?;
        let metadata = py.detach(|| admin.metadata(topic, timeout))?;
        let brokers = metadata.brokers.into_iter().map(|broker| (broker.id, broker.address)).collect();
        let topics = metadata.topics.into_iter().map(|topic| {
            let partitions = topic.partitions.into_iter();
            let partitions = partitions
                .map(|partition| (partition.partition, partition.leader, partition.replicas, partition.in_sync))
                .collect();
            (topic.name, topic.error.map_or(0, |code| code.0), partitions)
        });
        Ok((brokers, topics.collect()))
    }

    /// Creates topics given as (name, partitions, replicas, settings). Does not block.
    fn create_topics(&self, topics: Vec<NewTopic>, timeout_s: f64) -> Result<PendingCall> {
        let topics: Vec<_> = topics
            .into_iter()
            .map(|(name, partitions, replicas, config)| engine::NewTopic { name, partitions, replicas, config })
            .collect();
        self.call(timeout_s, |admin, timeout| admin.create_topics(&topics, timeout))
    }

    /// Deletes topics. Does not block.
    fn delete_topics(&self, topics: Vec<String>, timeout_s: f64) -> Result<PendingCall> {
        self.call(timeout_s, |admin, timeout| admin.delete_topics(&topics, timeout))
    }

    /// Requests the offsets that a group has committed. Does not block.
    fn group_offsets(&self, group: &str, timeout_s: f64) -> Result<PendingCall> {
        self.call(timeout_s, |admin, timeout| admin.group_offsets(group, timeout))
    }

    /// Requests offsets of partitions: `at` is -2 for the earliest, -1 for the latest, else a time in ms. Does not
    /// block.
    fn list_offsets(&self, partitions: Vec<(String, i32)>, at: i64, timeout_s: f64) -> Result<PendingCall> {
        let partitions: Vec<_> =
            partitions.into_iter().map(|(topic, partition)| engine::TopicPartition::new(topic, partition)).collect();
        let which = match at {
            -2 => engine::OffsetAt::Earliest,
            -1 => engine::OffsetAt::Latest,
            timestamp_ms => engine::OffsetAt::Time(timestamp_ms),
        };
        self.call(timeout_s, |admin, timeout| admin.list_offsets(&partitions, which, timeout))
    }

    /// Deletes the records before an offset, given as (topic, partition, offset). Does not block.
    fn delete_records(&self, before: Vec<(String, i32, i64)>, timeout_s: f64) -> Result<PendingCall> {
        let before: Vec<_> = before
            .into_iter()
            .map(|(topic, partition, offset)| (engine::TopicPartition::new(topic, partition), offset))
            .collect();
        self.call(timeout_s, |admin, timeout| admin.delete_records(&before, timeout))
    }

    /// Ends the client; calls that have no answer fail. Blocks with the GIL released. Does nothing in a forked child.
    fn close(&self, py: Python<'_>) {
        self.inner.close(py, engine::Admin::close); // Even if another thread still holds it while it asks for metadata.
    }
}

/// An admin call that is under way.
#[pyclass(frozen, module = "awoke._native")]
pub struct PendingCall {
    completion: Arc<Call>,
}

#[pymethods]
impl PendingCall {
    /// Waits for the answer. Blocks with the GIL released.
    fn wait<'py>(&self, py: Python<'py>, timeout_s: f64) -> Result<Bound<'py, PyAny>> {
        let since = Instant::now();
        // The request has its own time-out, which comes first: its error says more than this one.
        let timeout = seconds(timeout_s)? + Duration::from_secs(1);
        if wait_for(py, &self.completion, &Deadline::after(Some(timeout)))?.is_none() {
            let error = Error::TimedOut { operation: "wait for the brokers".into(), waited: since.elapsed() };
            return Err(error.into());
        }
        self.result(py)
    }

    /// Returns whether the answer is there. Does not block.
    fn done(&self) -> bool {
        self.completion.is_done()
    }

    /// Returns the answer, which must be there. Does not block.
    ///
    /// Topics are (name, code, code name, text), offsets are (topic, partition, offset, code).
    fn result<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        let not_yet = || Err(Error::Invalid { reason: "the call has no answer yet".into() });
        match self.completion.get().unwrap_or_else(not_yet)? {
            engine::AdminOutcome::Topics(topics) => {
                let topics: Vec<Topic> = topics
                    .into_iter()
                    .map(|(name, error)| match error {
                        None => (name, 0, String::new(), String::new()),
                        Some((code, text)) => (name, code.0, code.name(), text),
                    })
                    .collect();
                Ok(topics.into_pyobject(py)?)
            }
            engine::AdminOutcome::Offsets(offsets) => {
                let offsets: Vec<_> = offsets
                    .into_iter()
                    .map(|found| {
                        let code = found.error.map_or(0, |code| code.0);
                        (found.at.topic.to_string(), found.at.partition, found.offset, code)
                    })
                    .collect();
                Ok(offsets.into_pyobject(py)?)
            }
        }
    }

    /// Has `token` posted to the mailbox when the answer comes. Returns `False` when it is there already.
    fn notify(&self, mailbox: &Mailbox, token: u64) -> bool {
        self.completion.register(mailbox.waker(token))
    }

    fn __await__<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, PyAny>> {
        resolve(slf)
    }
}
