//! A member of a consumer group: the thread that talks to the group, and the handle by which others talk to the thread.
//!
//! `thread` has the thread's loop, `rebalance` the change of its partitions, `starts` the place where reading begins,
//! `ownership` the question whether each partition has an owner of this app, and `shared` the state that handle and
//! thread share.
//!
//! librdkafka's callbacks run no user code, and neither does this thread.

mod ownership;
mod rebalance;
mod shared;
mod starts;
mod thread;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use super::committer::Commit;
use super::open_partitions::{OpenPartitions, WayOn};
use super::route::Route;
use super::{CommitGap, Stuck};
use crate::clock::{self, Deadline};
use crate::events::{EventBox, What};
use crate::kafka::{Client, ClientConfig, ClientOptions, Code, FetchMemory, Kind, OnRenewed, TopicPartition};
use crate::transact::TransactionBatcher;
#[cfg(target_os = "linux")]
use crate::wake::{ClockSteps, OnStep};
use crate::wake::{Completion, OwnThread};
use crate::{Error, Result};
use ownership::Ownership;
pub use ownership::Strangers;
use shared::{Request, Shared};
use thread::Member;

/// The settings of a member.
#[derive(Clone, Copy, Debug)]
pub struct GroupSettings {
    /// Commits that follow one another are at least this far apart.
    pub commit_interval: Duration,
    /// The longest wait of a revocation for running jobs and hooks.
    pub revoke_timeout: Duration,
    /// The most memory, roughly, of fetched messages that no worker has pulled.
    pub fetch_memory_bytes: usize,
    /// The number of partitions that the topics of the routes have in all; the member may be assigned fewer.
    pub partitions_total: usize,
}

/// Settings that belong to awoke: it stores an offset after its job's result, and commits by itself.
const OWN_SETTINGS: [(&str, &str); 4] = [
    ("enable.auto.commit", "belongs to awoke, which commits an offset after its job's result"),
    ("enable.auto.offset.store", "belongs to awoke, which stores an offset after its job's result"),
    ("auto.commit.interval.ms", "belongs to awoke; its own setting is commit_interval_s"),
    ("enable.partition.eof", "belongs to awoke"),
];

/// The time beyond its deadline that a close may take: the last commit and the request to leave have some time of their
/// own.
const CLOSE_GRACE: Duration = Duration::from_secs(10);

/// A member of a consumer group.
pub struct GroupMember {
    shared: Arc<Shared>,
    thread: Mutex<Option<OwnThread>>,
    /// Completed when the thread has ended.
    ended: Arc<Completion<()>>,
    /// Ends with the member.
    #[cfg(target_os = "linux")]
    _clock_steps: ClockSteps,
}

/// Completes when the thread ends, also by a panic.
struct Ending(Arc<Completion<()>>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.complete(());
    }
}

/// The progress of a partition.
#[derive(Clone, Debug)]
pub struct PartitionState {
    /// The partition.
    pub at: TopicPartition,
    /// The next offset to commit.
    pub stored: Option<i64>,
    /// The offset that the broker holds, as far as it is known.
    pub committed: Option<i64>,
    /// The next offset to be done: the stored one, or else where reading began, or is about to begin.
    pub position: Option<i64>,
    /// One past the last message, as the last fetch saw it.
    pub end_seen: Option<i64>,
    /// The distance from the first message that is not done to the last that was begun; `None` when all are done, or
    /// one job at a time runs.
    pub commit_gap: Option<CommitGap>,
}

impl GroupMember {
    /// Joins the group of the configuration's `group.id` and starts the member's thread. The batcher commits offsets of
    /// transactional routes that no record goes with.
    ///
    /// Where a route names its partitions, all of the member's have to. It does not join then: it reads them, and
    /// commits their offsets under the group's name.
    ///
    /// # Errors
    /// [`Error::Config`]: a property that belongs to awoke, no `group.id`, or one that librdkafka refuses.
    /// [`Error::System`]: the thread did not start.
    pub fn join(
        config: &ClientConfig,
        routes: Vec<Route>,
        settings: GroupSettings,
        batcher: Option<Weak<TransactionBatcher>>,
        events: Arc<EventBox>,
    ) -> Result<Self> {
        config.refuse(&OWN_SETTINGS)?;
        let group = config.get("group.id").unwrap_or_default().to_owned();
        if group.is_empty() {
            return Err(Error::Config { property: "group.id".into(), reason: "is missing".into() });
        }
        let mut native = native_settings(config);
        let fetch_memory = FetchMemory::configure(&mut native, settings.fetch_memory_bytes, settings.partitions_total);
        let poll_interval = Duration::from_millis(native.effective_number("max.poll.interval.ms")?);
        let is_fixed = routes.iter().any(|route| !route.partitions.is_empty());
        let ownership = Ownership::of(&native, is_fixed)?;
        let client = consumer(&native, Arc::clone(&events))?;
        let fetch_memory = fetch_memory.map(|bytes| FetchMemory::of(&client, bytes));
        let topics: Vec<_> = routes.iter().map(|route| route.topic.clone()).collect();
        let begins_at_end = matches!(native.get("auto.offset.reset"), Some("latest" | "largest" | "end"));
        let shared = Arc::new(Shared::new(client, &routes, begins_at_end, settings.commit_interval)?);
        if let Some(batcher) = batcher {
            shared.open_partitions.use_batcher(batcher);
        }
        let member = Member::new(&shared, routes, settings, poll_interval, (fetch_memory, ownership), (config, events));
        shared.client.on_topic_renewed(renewal(&shared.open_partitions));
        if !topics.is_empty() && !is_fixed {
            shared.client.subscribe(&topics)?;
        }
        let ended = Arc::<Completion<()>>::default();
        clock::register(&shared);
        let thread = start(member, &group, Ending(Arc::clone(&ended)))?;
        Ok(Self {
            #[cfg(target_os = "linux")]
            _clock_steps: ClockSteps::watch(on_clock_step(&shared))?,
            shared,
            thread: Mutex::new(Some(thread)),
            ended,
        })
    }

    /// Subscribes to the topic of one more route. Does not block: the group assigns its partitions later. What the
    /// client refuses is an event.
    ///
    /// # Errors
    /// [`Error::Closed`]: the member is closed. [`Error::Forked`].
    pub fn read(&self, route: Route) -> Result<()> {
        self.shared.client.check_process()?;
        self.shared.request(Request::Read(Box::new(route)))
    }

    /// Commits the stored offsets. Does not block; the completion has the broker's answer.
    ///
    /// # Errors
    /// [`Error::Closed`]: the member is closed. [`Error::Forked`].
    pub fn commit(&self) -> Result<Arc<Commit>> {
        self.shared.client.check_process()?;
        let commit = Arc::new(Commit::default());
        self.shared.request(Request::Commit(Arc::clone(&commit)))?;
        Ok(commit)
    }

    /// Gives all partitions back in order and leaves the group: running jobs end, offsets are committed, hooks run.
    ///
    /// Blocks the calling thread until the member's thread has ended, `CLOSE_GRACE` past `timeout` at the most. Returns
    /// `false` when it had not ended then, because a call of librdkafka's did not return; the thread is left behind.
    /// Closing again does nothing.
    ///
    /// # Errors
    /// [`Error::Forked`]: another process joined.
    pub fn close(&self, timeout: Option<Duration>) -> Result<bool> {
        self.shared.client.check_process()?;
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(thread) = thread else { return Ok(true) };
        self.shared.begin_close();
        self.shared.request(Request::Close(Deadline::after(timeout)))?;
        let with_grace = timeout.map(|timeout| timeout.saturating_add(CLOSE_GRACE));
        if !thread.is_finished() && self.ended.wait(&Deadline::after(with_grace)).is_none() {
            let text = "its thread did not end: a call of librdkafka's does not return".into();
            self.shared.client.emit(What::Error { code: Code::TIMED_OUT, text, fatal: false });
            return Ok(false);
        }
        thread.join();
        Ok(true)
    }

    /// Lets a stuck partition go on, from its first message or after the batch that cannot be read. Returns `false`
    /// when it is not stuck, or cannot go on that way. Does not block.
    ///
    /// # Errors
    /// [`Error::Closed`]: the member is closed. [`Error::Fenced`]: the partition was revoked meanwhile.
    pub fn resume(&self, at: &TopicPartition) -> Result<bool> {
        self.shared.client.check_process()?;
        match self.shared.open_partitions.way_on(at) {
            None => return Ok(false),
            Some(WayOn::FirstMessage) => self.shared.request(Request::Restart(at.clone()))?,
            Some(WayOn::Beyond(partition, offset)) => partition.seek(offset)?,
        }
        Ok(true)
    }

    /// Returns the partitions, and topics, whose messages do not come any more. Does not block.
    pub fn stuck(&self) -> Vec<Stuck> {
        self.shared.open_partitions.all_stuck()
    }

    /// Returns the partitions of the member's topics that no member of the group owns, as far as this one compares.
    pub fn unowned(&self) -> Vec<TopicPartition> {
        self.shared.unowned()
    }

    /// Returns the members of another app in the group, as far as this one compares.
    pub fn strangers(&self) -> Strangers {
        self.shared.strangers()
    }

    /// Ends the wait of a revocation or a close for running jobs, and for the group. Does not block.
    pub fn stop_waiting(&self) {
        self.shared.stop_waiting();
    }

    /// Returns the partitions that are assigned now. Does not block.
    pub fn partitions(&self) -> Vec<PartitionState> {
        self.shared.partitions()
    }

    /// Returns the partitions that are assigned now, with the next offset to pull, as far as it is known, and whether
    /// messages are kept back: for a moment, by a pause, or because as many as allowed are under way. Does not block.
    pub fn pulled(&self) -> Vec<(TopicPartition, Option<i64>, bool)> {
        self.shared.open_partitions.pulled()
    }

    /// Returns how long ago the member's thread came up last: at most about a third of `max.poll.interval.ms`, except
    /// in a rebalance, which waits for jobs.
    pub fn poll_age(&self) -> Duration {
        Duration::from_nanos(self.shared.poll_age_ns())
    }

    /// Returns the most bytes that are fetched ahead of each assigned partition; `None` where librdkafka's own settings
    /// bound them. Does not block.
    pub fn fetch_queue_bytes(&self) -> Option<u64> {
        Some(self.shared.fetch_queue_bytes.load(Ordering::Relaxed)).filter(|bytes| *bytes > 0)
    }

    /// Returns the error that made the member unusable, if there was one.
    pub fn fatal_error(&self) -> Option<(Code, String)> {
        self.shared.client.check_process().ok()?;
        self.shared.client.fatal_error()
    }
}

impl Drop for GroupMember {
    fn drop(&mut self) {
        if self.shared.client.check_process().is_ok() {
            self.stop_waiting();
            drop(self.close(Some(Duration::ZERO)));
        }
    }
}

fn native_settings(config: &ClientConfig) -> ClientConfig {
    let mut native = config.clone();
    native.set("enable.auto.commit", "false").set("enable.auto.offset.store", "false");
    native.set_default("auto.offset.reset", "earliest");
    if native.get("group.protocol").is_none_or(|protocol| protocol == "classic") {
        native.set_default("partition.assignment.strategy", "cooperative-sticky");
    }
    native
}

fn consumer(native: &ClientConfig, events: Arc<EventBox>) -> Result<Arc<Client>> {
    Client::new(Kind::Consumer, "group member", native, events, ClientOptions::default().with_group_events())
}

fn start(member: Member, group: &str, ending: Ending) -> Result<OwnThread> {
    let name: String = format!("awoke-member-{group}").chars().take(15).collect();
    let thread = OwnThread::start(&name, "start the member's thread", move || {
        let _ending = ending;
        member.run();
    })?;
    Ok(thread)
}

/// Emits an event when the system's clock was set, and has the member's thread check what is due.
#[cfg(target_os = "linux")]
fn on_clock_step(shared: &Arc<Shared>) -> OnStep {
    let shared = Arc::clone(shared);
    Box::new(move |by_ns| {
        shared.client.emit(What::ClockStepped { by_ms: by_ns / 1_000_000 });
        shared.queue.interrupt();
    })
}

/// Returns a callback that has the partitions of a topic begin again when the topic was made again.
pub(super) fn renewal(open: &Arc<OpenPartitions>) -> OnRenewed {
    let open = Arc::downgrade(open);
    Box::new(move |topic, id| {
        if let Some(open) = open.upgrade() {
            open.renew(topic, &id);
        }
    })
}
