//! One client of the cluster.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::cluster::{Calls, Cluster};
use super::groups::Question;
use super::queue::{EventQueue, Listener};
use super::sender::{Pending, ReportCall};
use super::{
    AccessFailure, ClientConfig, Code, EndTxns, Kind, LogRecord, OnRenewed, Position, TopicPartition,
    TopicPartitionList,
};
use crate::Result;
use crate::events::{Event, EventBox, What};
use crate::fork_guard::Birthplace;

/// librdkafka's number for "where the group has committed".
pub(super) const NO_OFFSET: i64 = -1001;

/// The parts of a client that no property sets.
#[derive(Default)]
pub struct ClientOptions {
    end_txns: Option<Arc<EndTxns>>,
}

impl ClientOptions {
    /// Has delivery reports handed to messages' `R`: always so here.
    #[must_use]
    pub const fn with_reports_to<R>(self) -> Self {
        self
    }

    /// Has events of the group put into the consumer's queue: always so here.
    #[must_use]
    pub const fn with_group_events(self) -> Self {
        self
    }

    /// Has errors put into the consumer's queue: always so here.
    #[must_use]
    pub const fn with_errors(self) -> Self {
        self
    }

    /// Has the requests that end a transaction counted.
    #[must_use]
    pub fn with_counts(mut self, end_txns: Arc<EndTxns>) -> Self {
        self.end_txns = Some(end_txns);
        self
    }

    /// Has messages linger only in a crowd: none lingers here.
    #[must_use]
    pub const fn with_crowd(self, _messages: u32) -> Self {
        self
    }
}

/// One client of the cluster.
pub struct Client {
    pub(super) cluster: Arc<Cluster>,
    pub(super) id: usize,
    pub(super) main_queue: usize,
    pub(super) end_txns: Option<Arc<EndTxns>>,
    pub(super) transactional_id: String,
    pub(super) transaction_timeout: Duration,
    name: Arc<str>,
    group: String,
    is_cooperative: bool,
    events: Arc<EventBox>,
    birthplace: Birthplace,
    on_renewed: OnceLock<OnRenewed>,
}

/// The cluster's view of a client.
#[derive(Default)]
pub(super) struct ClientState {
    pub(super) group: String,
    pub(super) is_cooperative: bool,
    /// It reads what is committed, and is told where that ends for now.
    pub(super) tells_end: bool,
    /// Its subscription.
    pub(super) topics: Vec<String>,
    /// A subscription that waits for the end of a rebalance, or of a lost session: as librdkafka does under patch 0014.
    pub(super) next_topics: Option<Vec<String>>,
    /// The name under which a static member comes back.
    pub(super) instance: Option<String>,
    /// Assignments that are still to come after a revocation: that of the same rebalance, and of the next one.
    pub(super) to_come: u8,
    pub(super) main_queue: usize,
    pub(super) partitions: BTreeMap<TopicPartition, PartitionState>,
    /// Commits without an answer, and the queue for it.
    pub(super) commits: VecDeque<(TopicPartitionList, usize)>,
    /// Questions without an answer, each with the queue for it.
    pub(super) questions: VecDeque<(Question, usize)>,
    /// A rebalance was sent, and is not answered.
    pub(super) is_rebalancing: bool,
    /// Its session has ended; it learns it by the next rebalance.
    pub(super) is_lost: bool,
    /// The present rebalance takes partitions that were lost.
    pub(super) is_told_lost: bool,
    pub(super) is_subscribed: bool,
    pub(super) is_closing: bool,
    pub(super) is_closed: bool,
    pub(super) closing_queue: Option<usize>,
    /// Commits of an earlier epoch of the membership are refused.
    pub(super) member_epoch: u64,
    pub(super) sends: VecDeque<Pending>,
    pub(super) reports: VecDeque<ReportCall>,
    /// Messages without a report that was served.
    pub(super) unserved: usize,
    pub(super) epoch: u64,
    pub(super) has_failed_message: bool,
    pub(super) fatal: Option<(Code, String)>,
}

impl ClientState {
    pub(super) fn has_assigned(&self) -> bool {
        self.partitions.values().any(|partition| partition.is_assigned)
    }

    pub(super) fn assigned(&self) -> Vec<TopicPartition> {
        let assigned = self.partitions.iter().filter(|(_, partition)| partition.is_assigned);
        assigned.map(|(at, _)| at.clone()).collect()
    }
}

/// A partition, and its queue, of one client.
pub(super) struct PartitionState {
    pub(super) is_assigned: bool,
    pub(super) is_fetching: bool,
    /// Its messages go to a queue of their own; else to that of the consumer.
    pub(super) has_queue: bool,
    pub(super) begin_at: Position,
    pub(super) next_fetch: i64,
    /// The first record that was pulled since the partition was assigned, or sought.
    first: Option<i64>,
    /// One past the last record that was pulled.
    pub(super) position: Option<Position>,
    /// Messages, each with the version of the fetch that it is of: a seek begins another one. `None` is the end.
    pub(super) messages: VecDeque<(u64, Option<Arc<LogRecord>>)>,
    /// The end that the consumer was told last.
    pub(super) told_end: Option<i64>,
    /// The end came since the last pull.
    pub(super) has_ended: bool,
    version: u64,
    pub(super) listener: Option<Listener>,
}

impl Default for PartitionState {
    fn default() -> Self {
        Self {
            is_assigned: false,
            is_fetching: false,
            has_queue: false,
            begin_at: Position { offset: NO_OFFSET, leader_epoch: -1 },
            next_fetch: 0,
            first: None,
            position: None,
            messages: VecDeque::new(),
            told_end: None,
            has_ended: false,
            version: 0,
            listener: None,
        }
    }
}

impl PartitionState {
    pub(super) fn put(&mut self, records: impl Iterator<Item = Arc<LogRecord>>) {
        self.messages.extend(records.map(|record| (self.version, Some(record))));
    }

    /// Tells the end of what is committed.
    pub(super) fn put_end(&mut self, end: i64) {
        self.told_end = Some(end);
        self.messages.push_back((self.version, None));
    }

    /// Takes the next message of the present fetch; control records are passed.
    pub(super) fn take(&mut self) -> Option<Arc<LogRecord>> {
        while let Some((version, record)) = self.messages.pop_front() {
            if version != self.version {
                continue;
            }
            let Some(record) = record else {
                self.has_ended = true;
                continue;
            };
            self.first.get_or_insert(record.offset);
            self.position = Some(Position { offset: record.offset + 1, leader_epoch: record.leader_epoch });
            if !record.is_control {
                return Some(record);
            }
        }
        None
    }

    pub(super) fn seek(&mut self, offset: i64) {
        self.version += 1;
        self.next_fetch = offset;
        (self.first, self.position) = (None, None);
    }

    pub(super) fn assign(&mut self, begin_at: Position) {
        self.version += 1;
        (self.is_assigned, self.is_fetching, self.begin_at) = (true, false, begin_at);
        (self.first, self.position) = (None, None);
    }

    pub(super) fn unassign(&mut self) {
        self.version += 1;
        (self.is_assigned, self.is_fetching) = (false, false);
    }

    /// Goes back by some messages of those that were pulled.
    pub(super) fn fetch_again(&mut self, messages: i64) {
        let (Some(first), Some(position)) = (self.first, self.position) else { return };
        if self.is_fetching && self.next_fetch >= position.offset {
            // After a truncation, messages before the position may wait to be pulled: they come again, too.
            let unread = self.messages.iter().filter(|(version, _)| *version == self.version);
            let unread =
                unread.filter_map(|(_, record)| Some(record.as_ref()?.offset)).min().unwrap_or(self.next_fetch);
            self.version += 1;
            self.next_fetch = (position.offset - messages).max(first).min(unread);
        }
    }
}

impl Client {
    /// After this time a waiting thread looks again whether all brokers refuse a suspect client.
    pub const LOOK_AGAIN: Duration = Duration::from_millis(500);

    /// Makes a client of the cluster of this thread.
    ///
    /// # Errors
    /// None.
    pub fn new(
        kind: Kind,
        _what: &'static str,
        config: &ClientConfig,
        events: Arc<EventBox>,
        options: ClientOptions,
    ) -> Result<Arc<Self>> {
        let cluster = Cluster::current();
        let group = config.get("group.id").unwrap_or_default().to_owned();
        let is_cooperative =
            config.get("partition.assignment.strategy").is_some_and(|name| name.contains("cooperative"));
        let name = config.get("group.id").or_else(|| config.get("client.id")).unwrap_or("client").into();
        let transactional_id = config.get("transactional.id").unwrap_or_default().to_owned();
        let transaction_timeout = Duration::from_millis(config.effective_number("transaction.timeout.ms")?);
        let (id, main_queue) = {
            let mut state = cluster.state();
            state.queues.push(EventQueue::default());
            let main_queue = state.queues.len() - 1;
            let group = if kind == Kind::Consumer { group.clone() } else { String::new() };
            let instance = config.get("group.instance.id").map(ToOwned::to_owned);
            let tells_end = config.get("enable.partition.eof") == Some("true");
            state.clients.push(ClientState {
                group,
                is_cooperative,
                tells_end,
                instance,
                main_queue,
                ..ClientState::default()
            });
            (state.clients.len() - 1, main_queue)
        };
        let (end_txns, birthplace, on_renewed) = (options.end_txns, Birthplace::here(), OnceLock::new());
        Ok(Arc::new(Self {
            cluster,
            id,
            main_queue,
            end_txns,
            transactional_id,
            transaction_timeout,
            name,
            group,
            is_cooperative,
            events,
            birthplace,
            on_renewed,
        }))
    }

    /// Refuses use in another process.
    ///
    /// # Errors
    /// [`crate::Error::Forked`].
    pub fn check_process(&self) -> Result<()> {
        Ok(self.birthplace.check("client")?)
    }

    /// Returns the process that the client belongs to.
    pub const fn birthplace(&self) -> Birthplace {
        self.birthplace
    }

    /// Returns the client's name.
    pub fn name(&self) -> Arc<str> {
        Arc::clone(&self.name)
    }

    pub(super) fn group(&self) -> &str {
        &self.group
    }

    /// Returns whether the group rebalances cooperatively.
    pub const fn is_cooperative(&self) -> bool {
        self.is_cooperative
    }

    /// Puts an event of this client into its event box.
    pub fn emit(&self, what: What) {
        awoke_wake::simulation::trace(|| format!("event {what:?}"));
        self.events.post(Event { client: self.name(), what });
    }

    /// Keeps the callback, which no simulation calls.
    pub fn on_topic_renewed(&self, on_renewed: OnRenewed) {
        drop(self.on_renewed.set(on_renewed));
    }

    /// Returns whether the leaders of a topic are known.
    pub const fn learn_leaders(&self, _topic: &str) -> bool {
        true
    }

    /// Returns whether a broker has answered.
    pub fn asks_for_brokers(&self, _within: Duration) -> bool {
        awoke_wake::simulation::pause();
        true
    }

    /// Returns whether a broker has refused to let the client in.
    pub const fn is_suspect(&self) -> bool {
        false
    }

    /// Returns why the client can't connect.
    pub const fn access_failure(&self) -> Option<AccessFailure> {
        None
    }

    /// Returns the access failure that a broker gave last.
    pub const fn last_access_failure(&self) -> Option<AccessFailure> {
        None
    }

    /// Returns the missing permission that made the client unusable.
    pub const fn denial(&self) -> Option<AccessFailure> {
        None
    }

    /// Returns the error that made the client unusable, if one did.
    pub fn fatal_error(&self) -> Option<(Code, String)> {
        self.cluster.state().clients[self.id].fatal.clone()
    }
}

/// The session of a member that did not leave ends.
impl Drop for Client {
    fn drop(&mut self) {
        let mut state = self.cluster.state();
        state.leave(self.id);
        state.end_membership(self.id, &mut Calls::default());
        drop(state);
        self.cluster.wake();
    }
}
