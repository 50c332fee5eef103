//! A group member, as the runtime sees it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use awoke_engine::Error;
use awoke_engine::clock::{self, Deadline};
use awoke_engine::consume as engine;
use awoke_engine::kafka::TopicPartition;
use awoke_engine::wake::Completion;
use pyo3::prelude::*;

use crate::consume::Route;
use crate::errors::Result;
use crate::events::EventBox;
use crate::open::Open;
use crate::properties::Properties;
use crate::settings::EngineSettings;
use crate::transact::TransactionBatcher;
use crate::values::duration;
use crate::waiting::{Mailbox, resolve, wait_for};

/// Topic, partition, stored, committed, position, end that the last fetch saw, commit gap (messages, done, oldest
/// offset, seconds).
type Assigned = (String, i32, Option<i64>, Option<i64>, Option<i64>, Option<i64>, Option<(usize, usize, i64, f64)>);

/// A member of a consumer group. Making it joins the group, and blocks with the GIL released.
#[pyclass(frozen, module = "awoke._native")]
pub struct GroupMember {
    pub inner: Open<engine::GroupMember>,
}

#[pymethods]
impl GroupMember {
    #[new]
    fn new(
        py: Python<'_>,
        properties: Properties,
        routes: Vec<Py<Route>>,
        settings: EngineSettings,
        batcher: Option<&TransactionBatcher>,
        events: &EventBox,
    ) -> Result<Self> {
        let routes = routes.iter().map(|route| route.get().inner.clone()).collect();
        let settings = settings.group()?;
        let events = Arc::clone(&events.inner);
        let batcher = batcher.map(|batcher| batcher.inner.weak()).transpose()?;
        let joined = py.detach(|| engine::GroupMember::join(&properties.config(), routes, settings, batcher, events));
        let member = joined?;
        Ok(Self { inner: Open::new("group member", member) })
    }

    /// Subscribes to the topic of one more route. Does not block; what the client refuses is an event.
    ///
    /// Raises:
    ///     ClosedError: the member is closed.
    fn read(&self, route: &Route) -> Result<()> {
        let begun = self.inner.get().and_then(|member| member.read(route.inner.clone()));
        Ok(begun?)
    }

    /// Commits the stored offsets. Does not block; the returned object has the answer.
    fn commit(&self) -> Result<PendingStep> {
        let completion = self.inner.get().and_then(|member| member.commit())?;
        Ok(PendingStep { completion, operation: "commit offsets", limit: Some(STEP_LIMIT) })
    }

    /// Gives all partitions back in order and leaves the group. Blocks with the GIL released.
    ///
    /// Returns False if a call of librdkafka's has not returned 10 s after the deadline: its thread then ends by
    /// itself.
    #[pyo3(signature = (timeout_s=None))]
    fn close(&self, py: Python<'_>, timeout_s: Option<f64>) -> Result<bool> {
        let timeout = duration(timeout_s)?;
        let closed: Result<_, Error> = py.detach(|| {
            let member = match self.inner.get() {
                Err(Error::Closed { .. }) => return Ok(true),
                other => other?,
            };
            let has_ended = member.close(timeout)?;
            drop(self.inner.take()?);
            drop(member); // Waits for the client's threads, so it is done without the GIL.
            Ok(has_ended)
        });
        Ok(closed?)
    }

    /// Ends the wait of a close for running jobs. Does not block.
    fn stop_waiting(&self) {
        if let Ok(member) = self.inner.get() {
            member.stop_waiting();
        }
    }

    /// Returns the partitions that are assigned now. Does not block.
    ///
    /// Each is (topic, partition, stored, committed, next to be done, end offset that the last fetch saw, commit gap).
    /// A commit gap is (messages, how many of them are done, offset of the oldest, seconds since that was begun).
    fn partitions(&self) -> Vec<Assigned> {
        let Ok(member) = self.inner.get() else { return Vec::new() };
        let states = member.partitions().into_iter();
        states
            .map(|state| {
                let engine::PartitionState { at, stored, committed, position, end_seen, commit_gap } = state;
                let commit_gap = commit_gap.map(|gap| {
                    (gap.messages, gap.done, gap.oldest_offset, clock::since(gap.oldest_since).as_secs_f64())
                });
                (at.topic.to_string(), at.partition, stored, committed, position, end_seen, commit_gap)
            })
            .collect()
    }

    /// Returns the partitions that are assigned now: (topic, partition, next to pull or None, are messages kept back).
    ///
    /// Messages are kept back for a moment, by a pause, or because as many as allowed are under way. Does not block.
    fn pulled(&self) -> Vec<(String, i32, Option<i64>, bool)> {
        let Ok(member) = self.inner.get() else { return Vec::new() };
        let row =
            |(at, next, is_kept_back): (TopicPartition, _, _)| (at.topic.to_string(), at.partition, next, is_kept_back);
        member.pulled().into_iter().map(row).collect()
    }

    /// Continues a stuck partition, from its first message or after the batch that cannot be read. Does not block.
    ///
    /// Returns False if it is not stuck.
    ///
    /// Raises:
    ///     FencedError: the partition was taken away meanwhile.
    fn resume(&self, topic: &str, partition: i32) -> Result<bool> {
        let resumed = self.inner.get().and_then(|member| member.resume(&TopicPartition::new(topic, partition)));
        Ok(resumed?)
    }

    /// Returns partitions, and topics (partition -1), that are stuck: (topic, partition, reason, is resumable).
    ///
    /// The last field tells whether `resume` reads the partition; others continue when the cause has gone. Does not
    /// block.
    fn stuck(&self) -> Vec<(String, i32, String, bool)> {
        let Ok(member) = self.inner.get() else { return Vec::new() };
        let row =
            |stuck: engine::Stuck| (stuck.at.topic.to_string(), stuck.at.partition, stuck.text, stuck.is_resumable);
        member.stuck().into_iter().map(row).collect()
    }

    /// Returns the partitions of its topics that no member of the group owns: (topic, partition). Does not block.
    ///
    /// One member of a group compares, and others return none.
    fn unowned(&self) -> Vec<(String, i32)> {
        let Ok(member) = self.inner.get() else { return Vec::new() };
        member.unowned().into_iter().map(|at| (at.topic.to_string(), at.partition)).collect()
    }

    /// Returns other apps in the group: (names of apps, topics that this app does not read). Does not block.
    fn strangers(&self) -> (Vec<String>, Vec<String>) {
        let Ok(member) = self.inner.get() else { return (Vec::new(), Vec::new()) };
        let engine::Strangers { apps, topics } = member.strangers();
        (apps.into_iter().collect(), topics.into_iter().collect())
    }

    /// Returns the most bytes that are fetched ahead of each assigned partition.
    ///
    /// None where librdkafka's own settings bound them.
    fn fetch_queue_bytes(&self) -> Option<u64> {
        self.inner.get().ok()?.fetch_queue_bytes()
    }

    /// Returns the error that made the member unusable: (code, name, text), or `None`.
    fn fatal_error(&self) -> Option<(i32, String, String)> {
        self.inner.get().ok()?.fatal_error().map(|(code, text)| (code.0, code.name(), text))
    }
}

/// The time that a wait for a step takes at most, if the caller names none.
pub const STEP_LIMIT: Duration = Duration::from_mins(1);

/// Something that the engine is about to do: a commit, or to come to rest.
#[pyclass(frozen, module = "awoke._native")]
pub struct PendingStep {
    pub completion: Arc<Completion<Result<(), Error>>>,
    pub operation: &'static str,
    /// Ends a wait without a time-out. `None` where only the answer may: a job whose transaction may still be committed
    /// must not be tried again.
    pub limit: Option<Duration>,
}

#[pymethods]
impl PendingStep {
    /// Waits until it is done. Blocks with the GIL released.
    ///
    /// `None` waits for a minute, and for a transaction until it has ended.
    #[pyo3(signature = (timeout_s=None))]
    fn wait(&self, py: Python<'_>, timeout_s: Option<f64>) -> Result<()> {
        let since = Instant::now();
        let timeout = duration(timeout_s)?.or(self.limit);
        let answer = wait_for(py, &self.completion, &Deadline::after(timeout))?;
        let timed_out = || Err(Error::TimedOut { operation: self.operation.into(), waited: since.elapsed() });
        Ok(answer.unwrap_or_else(timed_out)?)
    }

    /// Returns whether the answer is there. Does not block.
    fn done(&self) -> bool {
        self.completion.is_done()
    }

    /// Has `token` posted to the mailbox when the answer comes. Returns `False` when it is there already.
    fn notify(&self, mailbox: &Mailbox, token: u64) -> bool {
        self.completion.register(mailbox.waker(token))
    }

    /// Returns or raises the answer, which must be there. Does not block.
    fn result(&self) -> Result<()> {
        let not_yet = || Err(Error::Invalid { reason: format!("{} has no result yet", self.operation) });
        Ok(self.completion.get().unwrap_or_else(not_yet)?)
    }

    fn __await__<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, PyAny>> {
        resolve(slf)
    }
}
