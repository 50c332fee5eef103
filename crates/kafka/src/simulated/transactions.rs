//! Transactions: the client's calls, and the coordinator's part.
//!
//! As before KIP-890, all transactions of one initialisation have one epoch. A request to end one that arrives late may
//! so end the next one.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use awoke_wake::simulation;

use super::cluster::{Calls, Cluster, Reply, State};
use super::partition_list::Entry;
use super::queue::moment_of;
use super::{Client, Code, CommittedOffset, Failure, Limit, Position, TopicPartition, TopicPartitionList};
use crate::clock;

fn failure(code: Code, text: &str) -> Failure {
    Failure { code, text: text.to_owned(), is_fatal: code.is_fenced(), is_retriable: false }
}

/// The identity of a consumer in its group.
pub struct GroupMetadata {
    client: usize,
    epoch: u64,
    group: String,
}

impl GroupMetadata {
    /// Returns that of a consumer; `None` when it is no member of a group.
    pub fn of(consumer: &Client) -> Option<Self> {
        let state = consumer.cluster.state();
        let client = &state.clients[consumer.id];
        let is_member = !client.is_closed;
        is_member.then(|| Self { client: consumer.id, epoch: client.member_epoch, group: client.group.clone() })
    }
}

/// The transaction coordinator.
#[derive(Default)]
pub(super) struct Coordinator {
    ids: BTreeMap<String, Id>,
    /// Transactions that were committed, by their numbers.
    committed: BTreeMap<u64, bool>,
    numbers: u64,
    /// Transactions that are decided, and whose markers are not written in all partitions yet.
    pub(super) unmarked: Vec<u64>,
    /// Requests to end a transaction that have not arrived: the id, the epoch, and whether it commits.
    pub(super) late: Vec<(String, u64, bool)>,
}

#[derive(Default)]
struct Id {
    epoch: u64,
    open: Option<Open>,
}

struct Open {
    number: u64,
    /// The coordinator aborts it then.
    until: Instant,
    offsets: Vec<(String, Entry)>,
}

impl Coordinator {
    /// Returns the open transaction of a producer; `None` when it has none, or another producer has taken its id.
    pub(super) fn open_number(&self, id: &str, epoch: u64) -> Option<u64> {
        self.ids.get(id).filter(|id| id.epoch == epoch)?.open.as_ref().map(|open| open.number)
    }

    pub(super) fn is_open(&self, number: u64) -> bool {
        self.ids.values().any(|id| id.open.as_ref().is_some_and(|open| open.number == number))
    }

    /// Returns whether readers of what is committed stop before the records of a transaction.
    pub(super) fn is_undecided(&self, number: u64) -> bool {
        self.unmarked.contains(&number) || self.is_open(number)
    }

    pub(super) fn is_committed(&self, number: u64) -> bool {
        self.committed.get(&number).copied().unwrap_or(false)
    }

    /// Returns whether an open transaction has an offset of this partition.
    pub(super) fn holds_up(&self, group: &str, at: &TopicPartition) -> bool {
        let mut pending = self.ids.values().flat_map(|id| &id.open).flat_map(|open| &open.offsets);
        pending.any(|(of, entry)| of == group && entry.at == *at)
    }

    pub(super) fn next_expiry(&self) -> Option<Instant> {
        self.ids.values().filter_map(|id| Some(id.open.as_ref()?.until)).min()
    }

    /// Returns the ids whose transaction has lasted too long.
    pub(super) fn expired(&self) -> impl Iterator<Item = String> {
        let is_old = |id: &Id| id.open.as_ref().is_some_and(|open| clock::now() >= open.until);
        self.ids.iter().filter(move |(_, id)| is_old(id)).map(|(name, _)| name.clone())
    }

    /// Ends the open transaction of an id. Returns its offsets if it is committed.
    fn end(&mut self, id: &str, commits: bool) -> Vec<(String, Entry)> {
        let Some(open) = self.ids.get_mut(id).and_then(|id| id.open.take()) else { return Vec::new() };
        self.committed.insert(open.number, commits);
        self.unmarked.push(open.number);
        if commits { open.offsets } else { Vec::new() }
    }
}

impl State {
    fn end_transaction(&mut self, id: &str, commits: bool, calls: &mut Calls) {
        simulation::trace(|| format!("the transaction of {id} ends, committed: {commits}"));
        for (group, entry) in self.transactions.end(id, commits) {
            let Position { offset, leader_epoch } = entry.position;
            let committed = CommittedOffset { offset, leader_epoch, metadata: entry.metadata };
            self.committed.insert((group.clone(), entry.at.clone()), committed.clone());
            calls.commits.push((group, entry.at, committed));
        }
    }

    /// Has a late request arrive: it ends the transaction that is open under its epoch, whichever that is.
    pub(super) fn end_late(&mut self, index: usize, calls: &mut Calls) {
        let (id, epoch, commits) = self.transactions.late.swap_remove(index);
        if self.transactions.ids.get(&id).is_some_and(|found| found.epoch == epoch) {
            self.end_transaction(&id, commits, calls);
        }
    }

    /// Aborts a transaction that has lasted too long, or whose id another producer takes, and fences its producer.
    pub(super) fn expire(&mut self, id: &str) {
        self.end_transaction(id, false, &mut Calls::default());
        if let Some(found) = self.transactions.ids.get_mut(id) {
            found.epoch += 1;
        }
    }
}

impl Cluster {
    /// Has another producer take one of the transactional ids.
    pub fn fence(&self) {
        let mut state = self.state();
        let place = simulation::random(state.transactions.ids.len() as u64) as usize;
        if let Some(id) = state.transactions.ids.keys().nth(place).cloned() {
            simulation::trace(|| format!("another producer takes {id}"));
            state.expire(&id);
        }
        drop(state);
        self.wake();
    }
}

impl Client {
    /// Takes the transactional id: older producers of it are fenced, their open transaction ended.
    ///
    /// # Errors
    /// The broker does not answer within the limit.
    pub fn init_transactions(&self, limit: Limit<'_>) -> std::result::Result<(), Failure> {
        let reply = self.request(limit)?;
        if reply == Reply::Failed {
            return Err(failure(Code::COORDINATOR_NOT_AVAILABLE, "the coordinator is not available"));
        }
        let mut calls = Calls::default();
        let mut state = self.cluster.state();
        state.transactions.ids.entry(self.transactional_id.clone()).or_default().epoch += 1;
        let epoch = state.transactions.ids[&self.transactional_id].epoch;
        state.end_transaction(&self.transactional_id, false, &mut calls);
        state.clients[self.id].epoch = epoch;
        drop(state);
        self.cluster.announce(calls);
        self.cluster.wake();
        Ok(())
    }

    /// Begins a transaction.
    ///
    /// # Errors
    /// The client is fenced.
    pub fn begin_transaction(&self) -> std::result::Result<(), Failure> {
        self.check_epoch()?;
        simulation::trace(|| format!("client {} begins a transaction of {}", self.id, self.transactional_id));
        let mut state = self.cluster.state();
        state.clients[self.id].has_failed_message = false;
        state.transactions.numbers += 1;
        let until = clock::now() + self.transaction_timeout;
        let open = Open { number: state.transactions.numbers, until, offsets: Vec::new() };
        if let Some(id) = state.transactions.ids.get_mut(&self.transactional_id) {
            id.open = Some(open);
        }
        drop(state);
        self.cluster.wake();
        Ok(())
    }

    /// Makes these positions of the group a part of the transaction.
    ///
    /// # Errors
    /// The client, or the member of the group, is fenced; or the request failed.
    pub fn send_offsets(
        &self,
        positions: &TopicPartitionList,
        group: &GroupMetadata,
        limit: Limit<'_>,
    ) -> std::result::Result<(), Failure> {
        let reply = self.request(limit)?;
        self.check_epoch()?;
        simulation::trace(|| format!("client {} sends offsets: {reply:?}", self.id));
        let mut state = self.cluster.state();
        let member = &state.clients[group.client];
        if member.member_epoch != group.epoch || member.is_lost || member.is_told_lost {
            return Err(failure(Code::ILLEGAL_GENERATION, "the member has another generation"));
        }
        if reply == Reply::Failed {
            return Err(failure(Code::COORDINATOR_NOT_AVAILABLE, "the coordinator is not available"));
        }
        let offsets = positions.0.iter().map(|entry| (group.group.clone(), entry.clone()));
        if let Some(open) = state.transactions.ids.get_mut(&self.transactional_id).and_then(|id| id.open.as_mut()) {
            open.offsets.extend(offsets);
        }
        if reply == Reply::Unanswered {
            return Err(failure(Code::TIMED_OUT, "no answer"));
        }
        Ok(())
    }

    /// Commits.
    ///
    /// # Errors
    /// A message failed, the client is fenced, or the answer did not come.
    pub fn commit_transaction(&self, limit: Limit<'_>) -> std::result::Result<(), Failure> {
        if self.cluster.state().clients[self.id].has_failed_message {
            return Err(failure(Code::INCONSISTENT, "a message failed"));
        }
        self.end_txn(true, limit)
    }

    /// Aborts; messages that wait fail. As librdkafka, it serves their reports on this thread.
    ///
    /// # Errors
    /// As of `commit_transaction`.
    pub fn abort_transaction(&self, limit: Limit<'_>) -> std::result::Result<(), Failure> {
        self.purge_all();
        self.flush(0);
        self.end_txn(false, limit)
    }

    /// Sends the request that ends a transaction: it is answered, arrives late, or is lost.
    fn end_txn(&self, commits: bool, limit: Limit<'_>) -> std::result::Result<(), Failure> {
        self.check_epoch()?;
        if let Some(counts) = &self.end_txns {
            counts.note_sent();
        }
        let reply = self.cluster.reply();
        simulation::trace(|| format!("client {} ends its transaction, commits: {commits}: {reply:?}", self.id));
        simulation::pause();
        self.check_epoch()?;
        let mut calls = Calls::default();
        let mut state = self.cluster.state();
        match reply {
            Reply::Unanswered if simulation::random(2) == 0 => {
                let request = (self.transactional_id.clone(), state.clients[self.id].epoch, commits);
                state.transactions.late.push(request);
            }
            Reply::Done | Reply::Unanswered => {
                state.end_transaction(&self.transactional_id, commits, &mut calls);
            }
            Reply::Failed => (),
        }
        drop(state);
        self.cluster.announce(calls);
        self.cluster.wake();
        if reply == Reply::Done {
            if let Some(counts) = &self.end_txns {
                counts.note_answered();
            }
            return Ok(());
        }
        self.wait_in_vain(limit);
        Err(failure(Code::TIMED_OUT, "no answer"))
    }

    /// Sends a request to the coordinator. Blocks the present task.
    fn request(&self, limit: Limit<'_>) -> std::result::Result<Reply, Failure> {
        simulation::pause();
        if limit.is_over.load(Ordering::Acquire) {
            return Err(failure(Code::TIMED_OUT, "cancelled"));
        }
        Ok(self.cluster.reply())
    }

    /// Waits for a moment, up to the limit.
    fn wait_in_vain(&self, limit: Limit<'_>) {
        self.cluster.wake();
        let soon = clock::now() + Duration::from_millis(simulation::random(300));
        let until = moment_of(limit.deadline).map_or(soon, |until| until.min(soon));
        simulation::block(Some(until));
    }

    /// Refuses a client whose transactional id another one has taken.
    fn check_epoch(&self) -> std::result::Result<(), Failure> {
        let mut state = self.cluster.state();
        let epoch = state.transactions.ids.get(&self.transactional_id).map_or(0, |id| id.epoch);
        let client = &mut state.clients[self.id];
        if client.epoch == epoch {
            return Ok(());
        }
        client.fatal = Some((Code::PRODUCER_FENCED, "another producer has the transactional id".to_owned()));
        Err(failure(Code::PRODUCER_FENCED, "another producer has the transactional id"))
    }
}
