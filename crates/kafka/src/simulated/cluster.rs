//! A cluster inside the process. It does one thing at a time, which the seed picks from all that it could do.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use awoke_wake::simulation::{self, TaskId};

use super::client::ClientState;
use super::group::Group;
use super::log::{Content, Log};
use super::queue::{Event, EventQueue};
use super::transactions::Coordinator;
use super::{CommittedOffset, LogRecord, TopicPartition};

/// The most messages that a partition queue holds.
const QUEUE_MAX: usize = 40;
/// More messages than a log ever has.
const BEYOND_ALL: i64 = 1_000;
/// The most messages of one fetch.
const FETCH_MAX: u64 = 12;

/// Faults that the cluster makes, each as one in this number of requests; 0 for none.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// A commit, a look-up or a request of a transaction fails.
    pub request: u64,
    /// A request takes effect, and its answer is lost.
    pub answer: u64,
    /// A message that is sent fails.
    pub produce: u64,
    /// A message that is sent is appended, and its report says that it timed out.
    pub report: u64,
    /// A message that is sent is not appended, and its report says that it was delivered, without an offset.
    pub unconfirmed: u64,
    /// The longest time between two steps, in microseconds.
    pub step_us: u64,
}

/// A cluster inside the process.
pub struct Cluster(Mutex<State>);

/// The fate of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// It takes effect, and is answered.
    Done,
    /// It takes effect, and no answer comes.
    Unanswered,
    /// It does not take effect.
    Failed,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) logs: BTreeMap<TopicPartition, Log>,
    pub(super) committed: BTreeMap<(String, TopicPartition), CommittedOffset>,
    pub(super) groups: BTreeMap<String, Group>,
    pub(super) clients: Vec<ClientState>,
    pub(super) queues: Vec<EventQueue>,
    pub(super) transactions: Coordinator,
    pub(super) faults: Faults,
    /// How often topics were made again.
    pub(super) recreated: BTreeMap<String, u64>,
    /// The brokers know no ids of topics.
    pub(super) is_without_ids: bool,
    /// The topics and values of messages whose report did not say where they are.
    pub(super) undelivered: Vec<(Arc<str>, Vec<u8>)>,
    /// Called after each commit that took effect.
    on_commit: Option<OnCommit>,
    waiting: Option<TaskId>,
    is_closed: bool,
}

/// Gets the group, the partition, and the offset that the group has committed now.
type OnCommit = Arc<dyn Fn(&str, &TopicPartition, &CommittedOffset) + Send + Sync>;

/// One thing that the cluster could do.
enum Action {
    BeginFetching(usize, TopicPartition),
    Fetch(usize, TopicPartition),
    AnswerCommit(usize),
    Rebalance(usize),
    Close(usize),
    Deliver(usize),
    AnswerQuestion(usize),
    EndLate(usize),
    Expire(String),
    /// Write the markers of a transaction.
    Mark(usize),
}

thread_local! {
    static CURRENT: RefCell<Option<Arc<Cluster>>> = const { RefCell::new(None) };
}

/// For clients.
impl Cluster {
    /// Returns the cluster of this thread.
    pub(super) fn current() -> Arc<Self> {
        CURRENT.with_borrow(|current| current.as_ref().map(Arc::clone)).expect("a cluster was made on this thread")
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the cluster look for something to do.
    pub(super) fn wake(&self) {
        let waiting = self.state().waiting.take();
        if simulation::is_running() {
            waiting.into_iter().for_each(simulation::wake);
        }
    }

    /// Decides the fate of a request.
    pub(super) fn reply(&self) -> Reply {
        let Faults { request, answer, .. } = self.state().faults;
        if one_in(request) {
            Reply::Failed
        } else if one_in(answer) {
            Reply::Unanswered
        } else {
            Reply::Done
        }
    }
}

/// Returns true once in this number of times; never for 0.
pub(super) fn one_in(number: u64) -> bool {
    number > 0 && simulation::random(number) == 0
}

/// For the simulation.
impl Cluster {
    /// Makes a cluster, which the clients of this thread use from now on.
    pub fn install() -> Arc<Self> {
        let cluster = Arc::new(Self(Mutex::default()));
        CURRENT.set(Some(Arc::clone(&cluster)));
        cluster
    }

    /// Changes the faults.
    pub fn set_faults(&self, faults: Faults) {
        self.state().faults = faults;
    }

    /// Has this called after each commit of a group that took effect.
    pub fn on_commit(&self, called: impl Fn(&str, &TopicPartition, &CommittedOffset) + Send + Sync + 'static) {
        self.state().on_commit = Some(Arc::new(called));
    }

    /// Takes the topics and values of messages whose report, since the last call, said that they were not delivered.
    pub fn take_undelivered(&self) -> Vec<(Arc<str>, Vec<u8>)> {
        std::mem::take(&mut self.state().undelivered)
    }

    /// Creates a topic.
    pub fn create(&self, topic: &str, partitions: i32) {
        let mut state = self.state();
        (0..partitions).for_each(|partition| {
            state.logs.insert(TopicPartition::new(topic, partition), Log::default());
        });
    }

    /// Appends a record. Returns its offset.
    pub fn append(&self, at: &TopicPartition, key: Option<Vec<u8>>, value: Vec<u8>) -> i64 {
        let offset = self.state().logs.entry(at.clone()).or_default().append(Content {
            key,
            value: Some(value),
            ..Content::default()
        });
        self.wake();
        offset
    }

    /// Appends the marker of a transaction without messages.
    pub fn append_marker(&self, at: &TopicPartition) {
        let marker = Content { is_control: true, ..Content::default() };
        self.state().logs.entry(at.clone()).or_default().append(marker);
        self.wake();
    }

    /// Returns the records of a partition that a consumer of committed messages gets.
    pub fn records(&self, at: &TopicPartition) -> Vec<Arc<LogRecord>> {
        let state = self.state();
        let is_visible = |record: &&Arc<LogRecord>| {
            !record.is_control && (record.transaction == 0 || state.transactions.is_committed(record.transaction))
        };
        state.logs.get(at).map_or_else(Vec::new, |log| log.records.iter().filter(is_visible).cloned().collect())
    }

    /// Returns the end of a partition.
    pub fn end(&self, at: &TopicPartition) -> i64 {
        self.state().logs.get(at).map_or(0, Log::end)
    }

    /// Returns the leader epoch of a partition.
    pub fn epoch(&self, at: &TopicPartition) -> i32 {
        self.state().logs.get(at).map_or(0, Log::epoch)
    }

    /// Returns what a group has committed.
    pub fn committed(&self, group: &str, at: &TopicPartition) -> Option<CommittedOffset> {
        self.state().committed.get(&(group.to_owned(), at.clone())).cloned()
    }

    /// Returns whether a member whose session has ended still has its partitions.
    pub fn has_lost_member(&self) -> bool {
        self.state().clients.iter().any(|client| client.is_lost || client.is_told_lost)
    }

    /// Removes the records of a partition from an offset on, as an unclean leader election does. Members that fetch it
    /// go on from there.
    pub fn truncate(&self, at: &TopicPartition, end: i64) {
        let mut state = self.state();
        let Some(log) = state.logs.get_mut(at) else { return };
        log.truncate(end);
        for client in &mut state.clients {
            if let Some(partition) = client.partitions.get_mut(at).filter(|partition| partition.is_fetching) {
                partition.next_fetch = partition.next_fetch.min(end);
            }
        }
        drop(state);
        self.wake();
    }

    /// Has the brokers tell no ids of topics, as before Kafka 2.8.
    pub fn leave_ids_out(&self) {
        self.state().is_without_ids = true;
    }

    /// Deletes a topic, which no member reads, and makes it again. Its committed offsets are kept. Where it has no id,
    /// they are beyond what the new one will have: of others it cannot be known whether they are of the topic before.
    pub fn recreate(&self, topic: &str) {
        let mut state = self.state();
        state.logs.iter_mut().filter(|(at, _)| &*at.topic == topic).for_each(|(_, log)| *log = Log::default());
        *state.recreated.entry(topic.to_owned()).or_default() += 1;
        if state.is_without_ids {
            let committed = state.committed.iter_mut().filter(|((_, at), _)| &*at.topic == topic);
            committed.for_each(|(_, committed)| committed.offset += BEYOND_ALL);
        }
    }

    /// Has each member fetch the last messages of a partition again that it has pulled, as a rebalance may.
    pub fn fetch_again(&self, at: &TopicPartition, messages: i64) {
        let mut state = self.state();
        for client in &mut state.clients {
            if let Some(partition) = client.partitions.get_mut(at) {
                partition.fetch_again(messages);
            }
        }
        drop(state);
        self.wake();
    }

    /// Runs the cluster until `close`.
    pub fn run(&self) {
        while !self.state().is_closed {
            if self.step() {
                let step_us = self.state().faults.step_us;
                if simulation::random(4) == 0 {
                    simulation::pass_time(Duration::from_micros(simulation::random(step_us)));
                } else {
                    simulation::pause();
                }
                continue;
            }
            let expiry = {
                let mut state = self.state();
                state.waiting = Some(simulation::current());
                state.transactions.next_expiry()
            };
            simulation::block(expiry);
        }
    }

    /// Ends `run`.
    pub fn close(&self) {
        self.state().is_closed = true;
        self.wake();
    }

    /// Does one thing. Returns `false` if there is nothing to do.
    fn step(&self) -> bool {
        let mut actions = self.state().actions();
        if actions.is_empty() {
            return false;
        }
        let action = actions.swap_remove(simulation::random(actions.len() as u64) as usize);
        let calls = self.state().act(action);
        self.announce(calls);
        true
    }

    /// Makes the calls that a change has led to. No lock is held.
    pub(super) fn announce(&self, calls: Calls) {
        calls.wakes.into_iter().for_each(simulation::wake);
        calls.listeners.into_iter().for_each(|listener| listener());
        let on_commit = self.state().on_commit.clone();
        if let Some(on_commit) = on_commit {
            calls.commits.iter().for_each(|(group, at, committed)| on_commit(group, at, committed));
        }
    }
}

/// Calls to make once the lock is released.
#[derive(Default)]
pub(super) struct Calls {
    pub(super) wakes: Vec<TaskId>,
    pub(super) listeners: Vec<Arc<dyn Fn() + Send + Sync>>,
    pub(super) commits: Vec<(String, TopicPartition, CommittedOffset)>,
}

impl State {
    fn actions(&self) -> Vec<Action> {
        let mut actions = Vec::new();
        for (id, client) in self.clients.iter().enumerate() {
            for (at, partition) in &client.partitions {
                if partition.is_assigned && !partition.is_fetching {
                    actions.push(Action::BeginFetching(id, at.clone()));
                }
                let end = if client.tells_end { self.stable_end(at) } else { self.logs.get(at).map_or(0, Log::end) };
                let is_at_new_end = client.tells_end && partition.next_fetch == end && partition.told_end != Some(end);
                let has_more = partition.next_fetch < end || is_at_new_end;
                if partition.is_fetching && has_more && partition.messages.len() < QUEUE_MAX {
                    actions.push(Action::Fetch(id, at.clone()));
                }
            }
            if !client.commits.is_empty() {
                actions.push(Action::AnswerCommit(id));
            }
            if self.change_of(id).is_some() {
                actions.push(Action::Rebalance(id));
            }
            if client.is_closing && !client.is_closed && !client.has_assigned() && !client.is_rebalancing {
                actions.push(Action::Close(id));
            }
            if !client.sends.is_empty() {
                actions.push(Action::Deliver(id));
            }
            if !client.questions.is_empty() {
                actions.push(Action::AnswerQuestion(id));
            }
        }
        actions.extend((0..self.transactions.late.len()).map(Action::EndLate));
        actions.extend(self.transactions.expired().map(Action::Expire));
        actions.extend((0..self.transactions.unmarked.len()).map(Action::Mark));
        actions
    }

    fn act(&mut self, action: Action) -> Calls {
        let mut calls = Calls::default();
        match action {
            Action::BeginFetching(id, at) => self.begin_fetching(id, &at),
            Action::Fetch(id, at) => self.fetch(id, &at, &mut calls),
            Action::AnswerCommit(id) => self.answer_commit(id, &mut calls),
            Action::Rebalance(id) => self.send_rebalance(id, &mut calls),
            Action::Close(id) => self.end_membership(id, &mut calls),
            Action::Deliver(id) => self.deliver(id, &mut calls),
            Action::AnswerQuestion(id) => self.answer_question(id, &mut calls),
            Action::EndLate(index) => self.end_late(index, &mut calls),
            Action::Expire(id) => self.expire(&id),
            Action::Mark(index) => {
                self.transactions.unmarked.swap_remove(index);
            }
        }
        calls
    }

    /// Fetches what is committed, and tells the end of it.
    fn fetch_committed(&mut self, id: usize, at: &TopicPartition, calls: &mut Calls) {
        let (stable_end, Some(log)) = (self.stable_end(at), self.logs.get(at)) else { return };
        let Some(partition) = self.clients[id].partitions.get(at) else { return };
        let first = partition.next_fetch.max(0);
        let end = stable_end.min(first + 1 + simulation::random(FETCH_MAX) as i64);
        let records = self.committed_only(log.records[first as usize..end as usize].iter().cloned());
        simulation::trace(|| format!("client {id} fetches {at} from {first} to {end}, committed to {stable_end}"));
        let Some(partition) = self.clients[id].partitions.get_mut(at) else { return };
        partition.next_fetch = end;
        let was_empty = partition.messages.is_empty();
        partition.put(records.into_iter());
        if end == stable_end {
            partition.put_end(end);
        }
        if was_empty && let Some(listener) = &partition.listener {
            calls.listeners.push(Arc::clone(listener));
        }
    }

    fn begin_fetching(&mut self, id: usize, at: &TopicPartition) {
        let group = self.clients[id].group.clone();
        let committed = self.committed.get(&(group, at.clone())).map(|committed| committed.offset);
        let Some(log) = self.logs.get(at) else { return };
        let Some(partition) = self.clients[id].partitions.get_mut(at) else { return };
        let offset = match partition.begin_at.offset {
            super::client::NO_OFFSET => committed.map_or(0, |offset| if offset > log.end() { 0 } else { offset }),
            _ => log.resolve(partition.begin_at),
        };
        simulation::trace(|| format!("client {id} begins to fetch {at} at {offset}"));
        partition.is_fetching = true;
        partition.next_fetch = offset;
    }

    /// Returns where the first transaction of a partition begins that is open, or whose marker is missing; or else its
    /// end.
    fn stable_end(&self, at: &TopicPartition) -> i64 {
        let Some(log) = self.logs.get(at) else { return 0 };
        let open = log.records.iter().find(|record| self.transactions.is_undecided(record.transaction));
        open.map_or(log.end(), |record| record.offset)
    }

    /// Returns the records of a fetch as a reader of what is committed gets them: it passes those of aborted
    /// transactions, as it does markers.
    fn committed_only(&self, records: impl Iterator<Item = Arc<LogRecord>>) -> Vec<Arc<LogRecord>> {
        let passed = |record: Arc<LogRecord>| {
            let is_aborted = record.transaction > 0 && !self.transactions.is_committed(record.transaction);
            if is_aborted { Arc::new(record.as_control()) } else { record }
        };
        records.map(passed).collect()
    }

    fn fetch(&mut self, id: usize, at: &TopicPartition, calls: &mut Calls) {
        if self.clients[id].tells_end {
            return self.fetch_committed(id, at, calls);
        }
        let Some(log) = self.logs.get(at) else { return };
        let Some(partition) = self.clients[id].partitions.get_mut(at) else { return };
        let first = partition.next_fetch.max(0);
        let end = log.end().min(first + 1 + simulation::random(FETCH_MAX) as i64);
        let records = log.records[first as usize..end as usize].iter().cloned();
        partition.next_fetch = end;
        simulation::trace(|| format!("client {id} fetches {at} from {first} to {end}"));
        if !partition.has_queue {
            let (queue, records) = (self.clients[id].main_queue, records.collect::<Vec<_>>());
            let records = records.into_iter().filter(|record| !record.is_control);
            return records.for_each(|record| self.put_event(queue, Event::of_record(record), calls));
        }
        let was_empty = partition.messages.is_empty();
        partition.put(records);
        if was_empty && let Some(listener) = &partition.listener {
            calls.listeners.push(Arc::clone(listener));
        }
    }
}
