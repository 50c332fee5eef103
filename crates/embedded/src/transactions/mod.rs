//! Transactions: who may write under a transactional id, which partitions and groups a transaction has touched, and
//! how it ends.
//!
//! Kafka's `TransactionCoordinator` with the first transaction protocol: the feature `transaction.version` is not
//! told, so clients name each partition before they write to it. Markers are written at once, so that no transaction
//! is ever seen while it is being completed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kafka_protocol::ResponseError;

use crate::cluster::{Caller, Cluster, Timer};
use crate::fetch;

pub(crate) mod add;
pub(crate) mod describe;
pub(crate) mod end;
pub(crate) mod init;
pub(crate) mod offsets;

/// Since this version of its requests a client knows that it was fenced by another (KIP-588).
const FENCED_SINCE: i16 = 2;

/// Where a transactional id is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Empty,
    Ongoing,
    CompleteCommit,
    CompleteAbort,
}

impl State {
    pub const ALL: [Self; 4] = [Self::Empty, Self::Ongoing, Self::CompleteCommit, Self::CompleteAbort];

    pub fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::Ongoing => "Ongoing",
            Self::CompleteCommit => "CompleteCommit",
            Self::CompleteAbort => "CompleteAbort",
        }
    }
}

/// The producer of a transactional id and its transaction.
#[derive(Debug)]
pub(crate) struct Transaction {
    pub producer_id: i64,
    pub epoch: i16,
    pub timeout: Duration,
    pub state: State,
    pub partitions: BTreeSet<(String, i32)>,
    pub groups: BTreeSet<String>,
    /// When it began, in ms since 1970; -1 where none is open.
    pub started_ms: i64,
    /// Counts the transactions, so that a time-out belongs to one of them.
    serial: u64,
}

/// All transactional ids of a cluster.
#[derive(Debug, Default)]
pub(crate) struct Transactions {
    by_id: BTreeMap<String, Transaction>,
    producers: i64,
}

impl Transactions {
    /// Returns an id that no producer has.
    pub fn new_producer_id(&mut self) -> i64 {
        self.producers += 1;
        self.producers - 1
    }

    pub fn get(&self, id: &str) -> Option<&Transaction> {
        self.by_id.get(id)
    }

    /// Returns the transactional ids in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Transaction)> {
        self.by_id.iter().map(|(id, transaction)| (id.as_str(), transaction))
    }

    /// Checks that a producer may write transactional messages to a partition: it must have named the partition
    /// (KIP-890).
    ///
    /// # Errors
    /// `InvalidProducerIdMapping`, `InvalidProducerEpoch`, `InvalidTxnState`.
    pub fn verify(&self, id: &str, producer_id: i64, epoch: i16, at: &(String, i32)) -> Result<(), ResponseError> {
        let known = self.by_id.get(id).filter(|known| known.producer_id == producer_id);
        let known = known.ok_or(ResponseError::InvalidProducerIdMapping)?;
        if epoch != known.epoch {
            Err(ResponseError::InvalidProducerEpoch)
        } else if known.state == State::Ongoing && known.partitions.contains(at) {
            Ok(())
        } else {
            Err(ResponseError::InvalidTxnState)
        }
    }

    /// Forgets the partitions of a topic that is deleted.
    pub fn forget_topic(&mut self, topic: &str) {
        for transaction in self.by_id.values_mut() {
            transaction.partitions.retain(|(name, _)| name != topic);
        }
    }

    /// Returns the transaction of a producer that is still the one of its transactional id.
    ///
    /// # Errors
    /// `InvalidProducerIdMapping`, and for another epoch `ProducerFenced`, which older clients know as
    /// `InvalidProducerEpoch`.
    fn own(
        &mut self,
        caller: &Caller,
        id: &str,
        producer_id: i64,
        epoch: i16,
    ) -> Result<&mut Transaction, ResponseError> {
        let known = self.by_id.get_mut(id).filter(|known| known.producer_id == producer_id);
        let known = known.ok_or(ResponseError::InvalidProducerIdMapping)?;
        if epoch == known.epoch {
            return Ok(known);
        }
        let is_new = caller.version >= FENCED_SINCE;
        Err(if is_new { ResponseError::ProducerFenced } else { ResponseError::InvalidProducerEpoch })
    }
}

/// Begins a transaction, unless one is open. It is aborted when its time-out is over.
fn begin(cluster: &mut Cluster, id: &str) {
    let Some(transaction) = cluster.transactions.by_id.get_mut(id) else { return };
    if transaction.state == State::Ongoing {
        return;
    }
    transaction.state = State::Ongoing;
    transaction.started_ms = cluster.now.wall_ms;
    transaction.serial += 1;
    let (serial, due) = (transaction.serial, cluster.now.at + transaction.timeout);
    cluster.remind(due, Timer::Transaction(id.to_owned(), serial));
}

/// Ends the open transaction of an id: writes its markers, and settles the offsets that it sent.
fn finish(cluster: &mut Cluster, id: &str, commits: bool) {
    let Some(transaction) = cluster.transactions.by_id.get_mut(id) else { return };
    let (producer_id, epoch) = (transaction.producer_id, transaction.epoch);
    let partitions = std::mem::take(&mut transaction.partitions);
    let groups = std::mem::take(&mut transaction.groups);
    transaction.state = if commits { State::CompleteCommit } else { State::CompleteAbort };
    transaction.started_ms = -1;
    let now_ms = cluster.now.wall_ms;
    for (topic, index) in partitions {
        if let Ok(partition) = cluster.topics.partition_mut(&topic, index) {
            let leader_epoch = partition.leader_epoch;
            partition.log.end_transaction(producer_id, epoch, commits, leader_epoch, now_ms);
        }
        fetch::wake(cluster, &topic, index);
    }
    for group in groups {
        if let Some(group) = cluster.groups.get_mut(&group) {
            group.offsets.end_transaction(producer_id, commits);
        }
    }
}

/// Aborts the open transaction of an id and fences its producer.
fn fence(cluster: &mut Cluster, id: &str) {
    if let Some(transaction) = cluster.transactions.by_id.get_mut(id) {
        transaction.epoch += 1;
        finish(cluster, id, false);
    }
}

/// Aborts a transaction that has taken longer than its time-out.
pub(crate) fn time_out(cluster: &mut Cluster, id: &str, serial: u64) {
    let open = cluster.transactions.get(id).filter(|each| each.state == State::Ongoing && each.serial == serial);
    if open.is_some() {
        fence(cluster, id);
    }
}
