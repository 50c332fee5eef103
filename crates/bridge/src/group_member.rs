//! A group member, as the runtime sees it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use awoke_engine::Error;
use awoke_engine::clock::Deadline;
use awoke_engine::consume as engine;
use awoke_engine::kafka::TopicPartition;
use awoke_engine::wake::{Completion, Waker};
use pyo3::prelude::*;

use crate::batcher::TransactionBatcher;
use crate::errors::{duration, to_python};
use crate::events::EventBox;
use crate::open::Open;
use crate::properties::Properties;
use crate::route::Route;
use crate::settings::EngineSettings;
use crate::waiting::{Mailbox, wait_for};

/// Topic, partition, stored, committed, position, end that the last fetch saw, commit gap (messages, done, oldest
/// offset, seconds).
type Assigned = (String, i32, Option<i64>, Option<i64>, Option<i64>, Option<i64>, Option<(usize, usize, i64, f64)>);

/// A member of a consumer group.
#[pyclass(frozen, module = "awoke._native")]
pub struct GroupMember {
    inner: Open<engine::GroupMember>,
}

impl GroupMember {
    /// Returns a weak reference to the engine's member, as long as it is open.
    pub fn weak(&self) -> Result<std::sync::Weak<engine::GroupMember>, Error> {
        Ok(Arc::downgrade(&self.inner.get()?))
    }
}

#[pymethods]
impl GroupMember {
    /// Joins the group. Blocks with the GIL released.
    #[new]
    #[allow(clippy::needless_pass_by_value)] // Comes converted from Python.
    fn new(
        py: Python<'_>,
        properties: Properties,
        routes: Vec<Py<Route>>,
        settings: EngineSettings,
        batcher: Option<&TransactionBatcher>,
        events: &EventBox,
    ) -> PyResult<Self> {
        let routes = routes.iter().map(|route| route.get().inner.clone()).collect();
        let settings = settings.group()?;
        let events = Arc::clone(&events.inner);
        let batcher = batcher.map(TransactionBatcher::weak).transpose().map_err(|error| to_python(&error))?;
        let joined = py.detach(|| engine::GroupMember::join(&properties.config(), routes, settings, batcher, events));
        let member = joined.map_err(|error| to_python(&error))?;
        Ok(Self { inner: Open::new("group member", member) })
    }

    /// Commits the stored offsets. Does not block; the returned object has the answer.
    fn commit(&self) -> PyResult<PendingCommit> {
        let completion = self.inner.get().and_then(|member| member.commit()).map_err(|error| to_python(&error))?;
        Ok(PendingCommit { completion })
    }

    /// Gives all partitions back in order and leaves the group. Returns `False` when a call of librdkafka's did not
    /// return 10 s after the deadline. Blocks with the GIL released.
    #[pyo3(signature = (timeout_s=None))]
    fn close(&self, py: Python<'_>, timeout_s: Option<f64>) -> PyResult<bool> {
        let timeout = duration(timeout_s)?;
        let closed = py.detach(|| {
            let member = match self.inner.get() {
                Err(Error::Closed { .. }) => return Ok(true),
                other => other?,
            };
            let has_ended = member.close(timeout)?;
            drop(self.inner.take()?);
            drop(member); // Waits for the client's threads, so it is done without the GIL.
            Ok(has_ended)
        });
        closed.map_err(|error: Error| to_python(&error))
    }

    /// Ends the wait of a close for running jobs. Does not block.
    fn stop_waiting(&self) {
        if let Ok(member) = self.inner.get() {
            member.stop_waiting();
        }
    }

    /// Returns the partitions that are assigned now: (topic, partition, stored, committed, next to be done, end offset
    /// that the last fetch saw, commit gap). A commit gap is (messages, how many of them are done, offset of the
    /// oldest, seconds since that was begun).
    fn partitions(&self) -> Vec<Assigned> {
        let Ok(member) = self.inner.get() else { return Vec::new() };
        let states = member.partitions().into_iter();
        states
            .map(|state| {
                let engine::PartitionState { at, stored, committed, position, end_seen, commit_gap } = state;
                let commit_gap = commit_gap
                    .map(|gap| (gap.messages, gap.done, gap.oldest_offset, gap.oldest_since.elapsed().as_secs_f64()));
                (at.topic.to_string(), at.partition, stored, committed, position, end_seen, commit_gap)
            })
            .collect()
    }

    /// Continues a stuck partition, from its first message or after the batch that cannot be read. Returns `False`
    /// when it is not stuck. Does not block.
    fn resume(&self, topic: &str, partition: i32) -> PyResult<bool> {
        let resumed = self.inner.get().and_then(|member| member.resume(&TopicPartition::new(topic, partition)));
        resumed.map_err(|error| to_python(&error))
    }

    /// Returns partitions, and topics (partition -1), that are stuck: (topic, partition, reason,
    /// whether `resume` reads it). Does not block.
    fn stuck(&self) -> Vec<(String, i32, String, bool)> {
        let Ok(member) = self.inner.get() else { return Vec::new() };
        let row =
            |stuck: engine::Stuck| (stuck.at.topic.to_string(), stuck.at.partition, stuck.text, stuck.is_resumable);
        member.stuck().into_iter().map(row).collect()
    }

    /// Returns the most bytes that are fetched ahead of each assigned partition; `None` where librdkafka's own settings
    /// bound them.
    fn fetch_queue_bytes(&self) -> Option<u64> {
        self.inner.get().ok()?.fetch_queue_bytes()
    }

    /// Returns the error that made the member unusable: (code, name, text), or `None`.
    fn fatal_error(&self) -> Option<(i32, String, String)> {
        self.inner.get().ok()?.fatal_error().map(|(code, text)| (code.0, code.name(), text))
    }
}

/// A commit that is under way.
#[pyclass(frozen, module = "awoke._native")]
pub struct PendingCommit {
    completion: Arc<Completion<Result<(), Error>>>,
}

impl PendingCommit {
    pub const fn new(completion: Arc<Completion<Result<(), Error>>>) -> Self {
        Self { completion }
    }
}

#[pymethods]
impl PendingCommit {
    /// Waits for the broker's answer. Blocks with the GIL released.
    #[pyo3(signature = (timeout_s=None))]
    fn wait(&self, py: Python<'_>, timeout_s: Option<f64>) -> PyResult<()> {
        let since = Instant::now();
        let timeout = duration(timeout_s)?.unwrap_or(Duration::from_mins(1));
        let answer = wait_for(py, &self.completion, &Deadline::after(Some(timeout)))?;
        let timed_out = || Err(Error::TimedOut { operation: "commit offsets".into(), waited: since.elapsed() });
        answer.unwrap_or_else(timed_out).map_err(|error| to_python(&error))
    }

    /// Returns whether the answer is there. Does not block.
    fn done(&self) -> bool {
        self.completion.is_done()
    }

    /// Has `token` posted to the mailbox when the answer comes. Returns `False` when it is there already.
    fn notify(&self, mailbox: &Mailbox, token: u64) -> bool {
        self.completion.register(Waker::Mailbox { mailbox: Arc::clone(&mailbox.inner), token })
    }

    /// Returns or raises the answer, which must be there. Does not block.
    fn result(&self) -> PyResult<()> {
        let not_yet = || Err(Error::Invalid { reason: "the commit has no answer yet".into() });
        self.completion.get().unwrap_or_else(not_yet).map_err(|error| to_python(&error))
    }

    fn __await__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("awoke._waiting")?.call_method1("resolve", (slf,))?.call_method0("__await__")
    }
}
