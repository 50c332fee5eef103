//! Admin calls, as Python sees them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use awoke_engine::Error;
use awoke_engine::clock::Deadline;
use awoke_engine::kafka as engine;
use awoke_engine::wake::{Completion, Waker};
use pyo3::prelude::*;

use crate::errors::{duration, to_python};
use crate::events::EventBox;
use crate::open::Open;
use crate::properties::Properties;
use crate::waiting::{Mailbox, wait_for};

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
    fn open(&self) -> PyResult<Arc<engine::Admin>> {
        self.inner.get().map_err(|error| to_python(&error))
    }

    fn call(&self, start: impl FnOnce(&engine::Admin) -> awoke_engine::Result<Arc<Call>>) -> PyResult<PendingCall> {
        let completion = start(&*self.open()?).map_err(|error| to_python(&error))?;
        Ok(PendingCall { completion })
    }
}

type Call = Completion<awoke_engine::Result<engine::AdminOutcome>>;

#[pymethods]
impl Admin {
    #[new]
    fn new(py: Python<'_>, properties: Properties, events: &EventBox) -> PyResult<Self> {
        let events = Arc::clone(&events.inner);
        let inner =
            py.detach(|| engine::Admin::new(&properties.config(), events)).map_err(|error| to_python(&error))?;
        Ok(Self { inner: Open::new("admin", inner) })
    }

    /// Returns brokers as (id, address), topics as (name, error code, partitions). Blocks with the GIL released.
    #[pyo3(signature = (topic, timeout_s))]
    fn metadata(&self, py: Python<'_>, topic: Option<&str>, timeout_s: f64) -> PyResult<Found> {
        let timeout = duration(Some(timeout_s))?.unwrap_or_default();
        let admin = self.open()?;
        let metadata = py.detach(|| admin.metadata(topic, timeout)).map_err(|error| to_python(&error))?;
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
    fn create_topics(&self, topics: Vec<NewTopic>, timeout_s: f64) -> PyResult<PendingCall> {
        let topics: Vec<_> = topics
            .into_iter()
            .map(|(name, partitions, replicas, config)| engine::NewTopic { name, partitions, replicas, config })
            .collect();
        let timeout = duration(Some(timeout_s))?.unwrap_or_default();
        self.call(|admin| admin.create_topics(&topics, timeout))
    }

    /// Deletes topics. Does not block.
    #[allow(clippy::needless_pass_by_value)] // Comes converted from Python.
    fn delete_topics(&self, topics: Vec<String>, timeout_s: f64) -> PyResult<PendingCall> {
        let timeout = duration(Some(timeout_s))?.unwrap_or_default();
        self.call(|admin| admin.delete_topics(&topics, timeout))
    }

    /// Requests the offsets that a group has committed. Does not block.
    fn group_offsets(&self, group: &str, timeout_s: f64) -> PyResult<PendingCall> {
        let timeout = duration(Some(timeout_s))?.unwrap_or_default();
        self.call(|admin| admin.group_offsets(group, timeout))
    }

    /// Requests offsets of partitions: `at` is -2 for the earliest, -1 for the latest, else a time in ms. Does not
    /// block.
    fn list_offsets(&self, partitions: Vec<(String, i32)>, at: i64, timeout_s: f64) -> PyResult<PendingCall> {
        let partitions: Vec<_> =
            partitions.into_iter().map(|(topic, partition)| engine::TopicPartition::new(topic, partition)).collect();
        let which = match at {
            -2 => engine::OffsetAt::Earliest,
            -1 => engine::OffsetAt::Latest,
            timestamp_ms => engine::OffsetAt::Time(timestamp_ms),
        };
        let timeout = duration(Some(timeout_s))?.unwrap_or_default();
        self.call(|admin| admin.list_offsets(&partitions, which, timeout))
    }

    /// Deletes the records before an offset, given as (topic, partition, offset). Does not block.
    fn delete_records(&self, before: Vec<(String, i32, i64)>, timeout_s: f64) -> PyResult<PendingCall> {
        let before: Vec<_> = before
            .into_iter()
            .map(|(topic, partition, offset)| (engine::TopicPartition::new(topic, partition), offset))
            .collect();
        let timeout = duration(Some(timeout_s))?.unwrap_or_default();
        self.call(|admin| admin.delete_records(&before, timeout))
    }

    /// Ends the client; calls that have no answer fail. Blocks with the GIL released. Does nothing in a forked child.
    fn close(&self, py: Python<'_>) {
        if let Ok(Some(admin)) = self.inner.take() {
            py.detach(|| {
                admin.close(); // Here, even if another thread still holds the admin while it asks for metadata.
                drop(admin);
            });
        }
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
    fn wait<'py>(&self, py: Python<'py>, timeout_s: f64) -> PyResult<Bound<'py, PyAny>> {
        let since = Instant::now();
        // The request has its own time-out, which comes first: its error says more than this one.
        let timeout = duration(Some(timeout_s))?.unwrap_or_default() + Duration::from_secs(1);
        if wait_for(py, &self.completion, &Deadline::after(Some(timeout)))?.is_none() {
            let error = Error::TimedOut { operation: "wait for the brokers".into(), waited: since.elapsed() };
            return Err(to_python(&error));
        }
        self.result(py)
    }

    /// Returns whether the answer is there. Does not block.
    fn done(&self) -> bool {
        self.completion.is_done()
    }

    /// Returns the answer, which must be there: topics as (name, code, code name, text), or offsets as (topic,
    /// partition, offset, code). Does not block.
    fn result<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let not_yet = || Err(Error::Invalid { reason: "the call has no answer yet".into() });
        match self.completion.get().unwrap_or_else(not_yet).map_err(|error| to_python(&error))? {
            engine::AdminOutcome::Topics(topics) => {
                let topics: Vec<Topic> = topics
                    .into_iter()
                    .map(|(name, error)| match error {
                        None => (name, 0, String::new(), String::new()),
                        Some((code, text)) => (name, code.0, code.name(), text),
                    })
                    .collect();
                topics.into_pyobject(py)
            }
            engine::AdminOutcome::Offsets(offsets) => {
                let offsets: Vec<_> = offsets
                    .into_iter()
                    .map(|found| {
                        let code = found.error.map_or(0, |code| code.0);
                        (found.at.topic.to_string(), found.at.partition, found.offset, code)
                    })
                    .collect();
                offsets.into_pyobject(py)
            }
        }
    }

    /// Has `token` posted to the mailbox when the answer comes. Returns `False` when it is there already.
    fn notify(&self, mailbox: &Mailbox, token: u64) -> bool {
        self.completion.register(Waker::Mailbox { mailbox: Arc::clone(&mailbox.inner), token })
    }

    fn __await__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("awoke._waiting")?.call_method1("resolve", (slf,))?.call_method0("__await__")
    }
}
