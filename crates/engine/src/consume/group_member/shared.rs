//! The state that a group member's thread and its handle share.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::super::committer::{Commit, CommitTimes};
use super::super::offsets::{Offsets, Progress};
use super::super::open_partitions::OpenPartitions;
use super::super::{Route, StartAt};
use super::PartitionState;
use super::ownership::Strangers;
use crate::clock::{Activity, Deadline, Due, Timed, monotonic_ns};
use crate::kafka::{Client, Queue, TopicPartition};
use crate::wake::Parker;
use crate::{Error, Result};

/// A request to the thread.
pub(super) enum Request {
    Commit(Arc<Commit>),
    /// Read the topic of one more route.
    Read(Box<Route>),
    /// Fetch a partition again, from its first message.
    Restart(TopicPartition),
    /// Give all partitions back by then, and leave the group.
    Close(Deadline),
}

/// The state that a group member's thread and its handle share.
pub(super) struct Shared {
    pub(super) client: Arc<Client>,
    pub(super) queue: Arc<Queue>,
    requests: Mutex<VecDeque<Request>>,
    /// Where the thread waits for jobs to end, or to ask brokers again; unparked to have it check the next two flags.
    pub(super) parker: Arc<Parker>,
    /// Running jobs are not waited for any longer.
    is_urgent: AtomicBool,
    /// Nothing more is to be begun.
    is_closing: AtomicBool,
    is_closed: AtomicBool,
    pub(super) offsets: Arc<Offsets>,
    pub(super) commits: Arc<CommitTimes>,
    /// True while the thread does not wait for librdkafka. Read only by a test that has the clock.
    pub(super) is_working: AtomicBool,
    pub(super) open_partitions: Arc<OpenPartitions>,
    /// The most bytes of one partition's queue; 0 where it is unknown.
    pub(super) fetch_queue_bytes: AtomicU64,
    /// Where reading begins, by topic, when the group has committed nothing.
    starts: Mutex<HashMap<String, StartAt>>,
    /// The same for a route that does not say it.
    default_start: StartAt,
    /// Partitions that no member of the group owns.
    unowned: Mutex<Vec<TopicPartition>>,
    /// Members of another app in the group.
    strangers: Mutex<Strangers>,
    /// When the thread came up last, in nanoseconds of the monotonic clock.
    came_up_ns: AtomicU64,
}

impl Shared {
    /// `begins_at_end`: whether `auto.offset.reset` has a partition without a commit read from its end.
    pub(super) fn new(
        client: Arc<Client>,
        routes: &[Route],
        begins_at_end: bool,
        commit_interval: Duration,
    ) -> Result<Self> {
        let queue = Queue::consumer(&client)?;
        let offsets = Arc::<Offsets>::default();
        let default_start = if begins_at_end { StartAt::Latest } else { StartAt::Earliest };
        let shared = Self {
            client,
            queue: Arc::new(queue),
            requests: Mutex::default(),
            parker: Arc::default(),
            is_urgent: AtomicBool::new(false),
            is_closing: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            commits: CommitTimes::new(Arc::clone(&offsets), commit_interval),
            offsets,
            is_working: AtomicBool::new(true),
            open_partitions: Arc::default(),
            fetch_queue_bytes: AtomicU64::new(0),
            starts: Mutex::default(),
            default_start,
            unowned: Mutex::default(),
            strangers: Mutex::default(),
            came_up_ns: AtomicU64::new(monotonic_ns()),
        };
        routes.iter().for_each(|route| shared.add_start(route));
        Ok(shared)
    }

    /// Adds where the topic of a route begins.
    pub(super) fn add_start(&self, route: &Route) {
        let start = route.start.unwrap_or(self.default_start);
        self.starts.lock().unwrap_or_else(PoisonError::into_inner).insert(route.topic.clone(), start);
    }

    /// Queues a request, and has the thread come up for it.
    pub(super) fn request(&self, request: Request) -> Result<()> {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        // Under the lock, so that the thread cannot end between this check and the request.
        if self.is_closed.load(Ordering::Acquire) {
            return Err(Error::Closed { what: "group member" });
        }
        requests.push_back(request);
        drop(requests);
        self.queue.interrupt();
        Ok(())
    }

    pub(super) fn next_request(&self) -> Option<Request> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    /// Refuses requests from now on, and fails those that wait.
    pub(super) fn close_requests(&self) {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_closed.store(true, Ordering::Release);
        for request in requests.drain(..) {
            if let Request::Commit(commit) = request {
                commit.complete(Err(Error::Closed { what: "group member" }));
            }
        }
    }

    pub(super) fn begin_close(&self) {
        self.is_closing.store(true, Ordering::Release);
        self.parker.unpark();
    }

    pub(super) fn stop_waiting(&self) {
        self.is_urgent.store(true, Ordering::Release);
        self.parker.unpark();
        self.queue.interrupt();
    }

    /// Returns the partitions that no member of the group owns.
    pub(super) fn unowned(&self) -> Vec<TopicPartition> {
        self.unowned.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set_unowned(&self, partitions: Vec<TopicPartition>) {
        *self.unowned.lock().unwrap_or_else(PoisonError::into_inner) = partitions;
    }

    /// Returns the members of another app in the group.
    pub(super) fn strangers(&self) -> Strangers {
        self.strangers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes the members of another app. Returns whether there are some that were not known.
    pub(super) fn meet(&self, found: &Strangers) -> bool {
        let mut known = self.strangers.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = found.are_some() && *known != *found;
        known.clone_from(found);
        is_new
    }

    /// Returns whether running jobs are not waited for any longer.
    pub(super) fn is_urgent(&self) -> bool {
        self.is_urgent.load(Ordering::Acquire)
    }

    /// Returns whether there is no use in finding out where to begin.
    pub(super) fn is_ending(&self) -> bool {
        self.is_urgent() || self.is_closing.load(Ordering::Acquire)
    }

    pub(super) fn note_came_up(&self) {
        self.came_up_ns.store(monotonic_ns(), Ordering::Relaxed);
    }

    /// Returns how long ago the thread came up last, in nanoseconds.
    pub(super) fn poll_age_ns(&self) -> u64 {
        monotonic_ns().saturating_sub(self.came_up_ns.load(Ordering::Relaxed))
    }

    /// Returns the partitions that are assigned now.
    pub(super) fn partitions(&self) -> Vec<PartitionState> {
        self.offsets.all().into_iter().map(|progress| self.state_of(progress)).collect()
    }

    fn state_of(&self, progress: Progress) -> PartitionState {
        let Progress { at, stored, committed, begun, commit_gap } = progress;
        let seen = self.client.offsets_seen(&at).map(|seen| (seen.start, seen.end));
        let start = self.starts.lock().unwrap_or_else(PoisonError::into_inner).get(&*at.topic).copied();
        let position = stored.or(committed).or(begun).or_else(|| expected_start(start?, seen));
        PartitionState { at, stored, committed, position, end_seen: seen.map(|(_, end)| end), commit_gap }
    }
}

/// Returns the offset at which reading is about to begin, as far as it is known, of a partition whose first and end
/// offset were seen.
fn expected_start(start: StartAt, seen: Option<(i64, i64)>) -> Option<i64> {
    let (first, end) = seen?;
    match start {
        StartAt::Earliest => Some(first),
        StartAt::Latest => Some(end),
        StartAt::Last(messages) => Some((end - messages).max(first)),
        StartAt::Offset(offset) => Some(offset.max(first).min(end)),
        StartAt::Time(_) => None,
    }
}

impl Timed for Shared {
    fn name(&self) -> String {
        format!("the member {}", self.client.name())
    }

    fn due(&self) -> Due {
        Due { once: None, recurring: self.commits.due().filter(|_| !self.is_closed.load(Ordering::Acquire)) }
    }

    fn activity(&self) -> Activity {
        let is_open = !self.is_closed.load(Ordering::Acquire);
        let has_requests = !self.requests.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
        let is_working = self.is_working.load(Ordering::SeqCst) || self.commits.is_under_way() || has_requests;
        Activity { is_busy: is_open && is_working, ..Activity::default() }
    }

    fn look(&self) {
        self.queue.interrupt();
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    #[test]
    fn a_partition_that_was_not_read_yet_lags_as_far_as_its_start_is_behind() {
        let seen = Some((10, 50));
        let starts = [StartAt::Earliest, StartAt::Latest, StartAt::Last(5), StartAt::Last(90), StartAt::Offset(20)];
        let expected = [Some(10), Some(50), Some(45), Some(10), Some(20)];
        assert_eq!(starts.map(|start| expected_start(start, seen)), expected);
    }

    #[test]
    fn nothing_is_said_of_a_start_that_is_not_known() {
        assert_eq!(expected_start(StartAt::Time(1_000), Some((10, 50))), None);
        assert_eq!(expected_start(StartAt::Earliest, None), None);
    }
}
