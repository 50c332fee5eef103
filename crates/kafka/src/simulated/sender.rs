//! Sends records to a topic, and hands each delivery report to what its sender keeps for the record.

use std::marker::PhantomData;
use std::sync::Arc;

use awoke_wake::simulation;

use super::cluster::{Calls, State, one_in};
use super::log::{Content, Headers};
use super::{Client, Code, Delivery, EndedLinger, Refused, Reported, TopicPartition, Variant};
use crate::Result;

/// A value that begins with this is too large for the cluster.
pub const TOO_LARGE: &[u8] = b"too large";

/// A message to be sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Record<'a> {
    /// `None` sends a tombstone.
    pub value: Option<&'a [u8]>,
    /// Decides the partition, where none is given.
    pub key: Option<&'a [u8]>,
    /// `None` lets the partitioner choose.
    pub partition: Option<i32>,
    /// Milliseconds since 1970; `None` for now.
    pub timestamp_ms: Option<i64>,
    /// In order; a name may occur more than once, a value may be missing.
    pub headers: &'a [(&'a str, Option<&'a [u8]>)],
    /// Other settings than the producer's.
    pub variant: Option<&'a Variant>,
}

impl Record<'_> {
    /// Returns the size of key, value and headers.
    pub fn size_bytes(&self) -> usize {
        let headers = self.headers.iter().map(|(name, value)| name.len() + value.map_or(0, <[u8]>::len));
        self.value.map_or(0, <[u8]>::len) + self.key.map_or(0, <[u8]>::len) + headers.sum::<usize>()
    }

    /// Returns the timestamp to send; `None` for the client's own.
    pub const fn stamp_ms(&self) -> Option<i64> {
        self.timestamp_ms
    }
}

/// A delivery report that waits to be served.
pub(super) type ReportCall = Box<dyn FnOnce() -> bool + Send>;

/// A message on its way.
pub(super) struct Pending {
    at: TopicPartition,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Headers,
    transaction: u64,
    report: Box<dyn FnOnce(std::result::Result<Delivery, Code>) -> bool + Send>,
}

/// Returns the partition of a key.
pub fn partition_of_key(key: &[u8], partitions: usize) -> i32 {
    let hash = key.iter().fold(0i32, |hash, byte| hash.wrapping_mul(31).wrapping_add(i32::from(*byte)));
    hash.rem_euclid(partitions as i32)
}

/// A topic to send to.
pub struct Topic<R> {
    client: Arc<Client>,
    name: Arc<str>,
    reported: PhantomData<fn(Arc<R>)>,
}

impl<R: Reported> Topic<R> {
    /// Opens a topic.
    ///
    /// # Errors
    /// None.
    pub fn open(client: &Arc<Client>, name: &str, _variant: Option<&Variant>) -> Result<Self> {
        Ok(Self { client: Arc::clone(client), name: name.into(), reported: PhantomData })
    }

    /// Sends a record; `reported` gets its report.
    ///
    /// # Errors
    /// The code with which the client refused it.
    pub fn send(&self, record: &Record<'_>, reported: Arc<R>) -> std::result::Result<(), Code> {
        let mut state = self.client.cluster.state();
        let partitions = state.logs.keys().filter(|at| at.topic == self.name).count().max(1);
        let chosen = || super::partition_of_key(record.key.unwrap_or_default(), partitions);
        let partition = record.partition.unwrap_or_else(chosen);
        reported.set_partition(partition);
        let epoch = state.clients[self.client.id].epoch;
        let transaction = state.transactions.open_number(&self.client.transactional_id, epoch);
        let is_transactional = !self.client.transactional_id.is_empty();
        if is_transactional && transaction.is_none() {
            return Err(Code::STATE);
        }
        let client = &mut state.clients[self.client.id];
        client.unserved += 1;
        client.sends.push_back(Pending {
            at: TopicPartition::new(Arc::clone(&self.name), partition),
            key: record.key.map(Into::into),
            value: record.value.map(Into::into),
            headers: record.headers.iter().map(|(name, value)| ((*name).into(), value.map(Into::into))).collect(),
            transaction: transaction.unwrap_or(0),
            report: Box::new(move |report| reported.report(report)),
        });
        drop(state);
        self.client.cluster.wake();
        Ok(())
    }

    /// Sends records in one call.
    pub fn send_many(&self, records: &[Record<'_>], reported: &[Arc<R>]) -> Option<Refused> {
        let mut refused: Option<Refused> = None;
        for (index, (record, reported)) in records.iter().zip(reported).enumerate() {
            if let Err(code) = self.send(record, Arc::clone(reported)) {
                let refused = refused.get_or_insert(Refused { first: index, code, messages: 0, bytes: 0 });
                refused.messages += 1;
                refused.bytes += record.size_bytes();
            }
        }
        refused
    }

    /// Has a message sent without lingering: none lingers.
    pub const fn end_linger(&self, _message: &R) -> EndedLinger {
        EndedLinger(0)
    }
}

impl<R> std::fmt::Debug for Topic<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Topic({})", self.name)
    }
}

impl Client {
    /// Lets messages linger again where one was awaited: none lingers.
    pub const fn linger_again(&self, _ended: EndedLinger) {}
}

impl State {
    /// Answers the oldest message of a client.
    pub(super) fn deliver(&mut self, id: usize, calls: &mut Calls) {
        let Some(pending) = self.clients[id].sends.pop_front() else { return };
        let is_fenced = self.clients[id].fatal.is_some();
        let is_too_large = pending.value.as_ref().is_some_and(|value| value.starts_with(TOO_LARGE));
        let at = &pending.at;
        let report = if is_fenced {
            Err(Code::PRODUCER_FENCED)
        } else if is_too_large {
            Err(Code::MESSAGE_TOO_LARGE)
        } else if one_in(self.faults.produce) {
            Err(Code::MESSAGE_TIMED_OUT)
        } else if one_in(self.faults.unconfirmed) {
            // librdkafka (2.12.1) takes the answer to a later message for one to this message, which was refused.
            Ok(Delivery { partition: at.partition, offset: -1, has_answer: true, timestamp_ms: -1 })
        } else if pending.transaction > 0 && !self.transactions.is_open(pending.transaction) {
            Err(Code::INVALID_TXN_STATE)
        } else {
            let log = self.logs.entry(at.clone()).or_default();
            let offset = log.append(Content {
                key: pending.key.clone(),
                value: pending.value.clone(),
                headers: pending.headers.clone(),
                is_control: false,
                transaction: pending.transaction,
            });
            let delivery = Delivery { partition: at.partition, offset, has_answer: true, timestamp_ms: -1 };
            if one_in(self.faults.report) { Err(Code::MESSAGE_TIMED_OUT) } else { Ok(delivery) }
        };
        simulation::trace(|| format!("client {id}'s message for {} is answered: {report:?}", pending.at));
        if !matches!(report, Ok(delivery) if delivery.offset >= 0) {
            self.undelivered.push((Arc::clone(&pending.at.topic), pending.value.clone().unwrap_or_default()));
        }
        self.report(id, pending, report, calls);
    }

    /// Fails all messages of a client.
    pub(super) fn purge(&mut self, id: usize, calls: &mut Calls) {
        while let Some(pending) = self.clients[id].sends.pop_front() {
            self.report(id, pending, Err(Code::PURGED), calls);
        }
    }

    fn report(&mut self, id: usize, pending: Pending, report: std::result::Result<Delivery, Code>, calls: &mut Calls) {
        let client = &mut self.clients[id];
        client.has_failed_message |= report.is_err();
        let (queue, was_empty) = (client.main_queue, client.reports.is_empty());
        client.reports.push_back(Box::new(move || (pending.report)(report)));
        self.note_put(queue, was_empty, calls);
    }
}
