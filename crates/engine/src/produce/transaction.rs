//! Transactions of one producer: one at a time, first come, first served; each ends committed, aborted, or in doubt.
//!
//! A commit is *in doubt* if `EndTxn` was sent and not definitely answered. A connection is *spent* (must be replaced)
//! if `EndTxn` was repeated or unanswered, or if the transaction or one of its messages failed: an old `EndTxn` may
//! still be on its way and end the next transaction, and a message that the broker has written may share its sequence
//! number with the next one. The next transaction begins on a new connection, whose initialisation raises the epoch, so
//! that late requests are refused (see `kafka/end_txns`).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use super::connection::Connection;
use super::{DeliveryHandle, Producer, Record, Reports};
use crate::clock::Deadline;
use crate::events::What;
use crate::kafka::{Client, Code, EndTxnCounts, EndTxns, Failure, GroupMetadata, Limit, TopicPartitionList};
use crate::{Error, Result};

/// The least time for an abort after a failure.
const ABORT_WITHIN: Duration = Duration::from_secs(5);

/// The transactions of one connection.
pub(super) struct Transactions {
    client: Arc<Client>,
    end_txns: Arc<EndTxns>,
    reports: Arc<Reports>,
    /// Calls are not waited for any more.
    is_over: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// True if the transactional id is ours.
    is_initialised: bool,
    /// The requests and answers that were counted when the present transaction began.
    began: EndTxnCounts,
    /// The number of messages that had failed then.
    failed: u32,
    /// Why no further transaction may begin here.
    spent: Option<String>,
}

impl Transactions {
    pub(super) fn new(client: Arc<Client>, end_txns: Arc<EndTxns>, reports: Arc<Reports>) -> Self {
        Self { client, end_txns, reports, is_over: AtomicBool::new(false), state: Mutex::default() }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    const fn limit<'a>(&'a self, deadline: &'a Deadline) -> Limit<'a> {
        Limit { deadline, is_over: &self.is_over }
    }

    /// Ends the waits of calls, now and later. Does not block.
    pub(super) fn cancel(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    /// Returns the error that made the connection unusable, if there was one.
    pub(super) fn fatal_error(&self) -> Option<(Code, String)> {
        self.client.fatal_error()
    }

    /// Returns why no further transaction may begin here, if so.
    pub(super) fn why_spent(&self) -> Option<String> {
        self.state().spent.clone()
    }

    /// Emits an event: the connection is replaced.
    pub(super) fn emit_replaced(&self, reason: String) {
        self.client.emit(What::ProducerReplaced { reason });
    }

    /// Takes the transactional id, once. Blocks the calling thread.
    pub(super) fn prepare(&self, deadline: &Deadline) -> Result<()> {
        if !self.state().is_initialised {
            self.client
                .init_transactions(self.limit(deadline))
                .map_err(|failure| self.explain("begin a transaction", failure))?;
            self.state().is_initialised = true;
        }
        Ok(())
    }

    /// Takes the transactional id, once, and begins a transaction. Blocks the calling thread.
    pub(super) fn begin(&self, deadline: &Deadline) -> Result<()> {
        self.prepare(deadline)?;
        {
            let mut state = self.state();
            state.began = self.end_txns.counts();
            state.failed = self.reports.failed();
        }
        self.client.begin_transaction().map_err(|failure| self.explain("begin a transaction", failure))
    }

    /// Adds positions of a group to the transaction. Blocks the calling thread.
    fn send_offsets(&self, positions: &TopicPartitionList, group: &GroupMetadata, deadline: &Deadline) -> Result<()> {
        let sent = self.client.send_offsets(positions, group, self.limit(deadline));
        sent.map_err(|failure| self.explain("add offsets to a transaction", failure))
    }

    /// Commits, or aborts if that fails.
    fn commit(&self, connection: &Connection, deadline: &Deadline) -> Result<()> {
        // Flushed here, because librdkafka's own flush would end with the first report that is awaited.
        let failure = match connection.flush(deadline.remaining()) {
            Ok(_) => match self.unconfirmed() {
                // librdkafka takes the message for delivered, and would commit.
                Some(error) => {
                    let (code, detail) = self.abort_failed(error.code(), error.to_string(), deadline);
                    return Err(Error::Aborted { code, detail });
                }
                None => self.reports.settle(|client| client.commit_transaction(self.limit(deadline))).err(),
            },
            Err(error) => return Err(error),
        };
        let Some(failure) = failure else {
            self.check_end();
            return Ok(());
        };
        let (began, now) = (self.state().began, self.end_txns.counts());
        // The broker's own answer, to a single request, that this producer is fenced; after anything else it may have
        // committed.
        let is_refused = failure.code.is_fenced() && !now.is_in_doubt_since(began);
        if now.is_asked_since(began) && !is_refused {
            self.spend(format!("a commit is in doubt: {}", failure.text));
            let Failure { code, text, .. } = failure;
            return Err(Error::InDoubt { code, detail: text });
        }
        let is_fenced = failure.code.is_fenced();
        let (code, detail) = self.reason_of(failure);
        let (code, detail) = self.abort_failed(code, detail, deadline);
        Err(if is_fenced { Error::ProducerFenced { code, detail } } else { Error::Aborted { code, detail } })
    }

    /// Aborts in place of a commit, and tells why. Returns the reason.
    fn abort_failed(&self, code: Code, detail: String, deadline: &Deadline) -> (Code, String) {
        self.abort(&Deadline::after(Some(deadline.remaining().unwrap_or_default().max(ABORT_WITHIN))));
        self.client.emit(What::TransactionAborted { code, text: detail.clone() });
        (code, detail)
    }

    /// Returns the error of a message of the transaction that was reported without an offset. `None` also if another
    /// message failed after it: then librdkafka refuses the commit.
    fn unconfirmed(&self) -> Option<Error> {
        let has_failed = self.reports.failed() != self.state().failed;
        self.reports.last_failure().filter(|error| has_failed && error.code() == Code::DUPLICATE_SEQUENCE)
    }

    /// Returns why a commit failed: if a message failed before it, librdkafka tells only that.
    fn reason_of(&self, failure: Failure) -> (Code, String) {
        let has_failed = failure.code == Code::INCONSISTENT && self.reports.failed() != self.state().failed;
        match self.reports.last_failure().filter(|_| has_failed) {
            Some(error) => (error.code(), error.to_string()),
            None => (failure.code, failure.text),
        }
    }

    /// Aborts. After a failure the initialisation of the next connection aborts the open transaction.
    fn abort(&self, deadline: &Deadline) {
        if self.reports.failed() != self.state().failed {
            // librdkafka (2.12.1) does not raise the epoch for it: the next transaction would fail for the gap in the
            // sequence.
            self.spend("a message failed, and left a gap in its partition's sequence".into());
        }
        let in_doubt = self.reports.in_doubt();
        // It flushes, and so serves the reports of the messages that it has fail.
        match self.reports.settle(|client| client.abort_transaction(self.limit(deadline))) {
            Ok(()) => {
                // librdkafka (2.12.1) gives their sequence numbers to the next messages of the partition. A broker that
                // has written the aborted ones takes those for the same, and drops them.
                if self.reports.in_doubt() != in_doubt {
                    self.spend("a message was aborted that the broker may have written".into());
                }
                self.check_end();
            }
            Err(failure) => self.spend(format!("an abort failed: {}", failure.text)),
        }
    }

    fn check_end(&self) {
        let began = self.state().began;
        if self.end_txns.counts().is_in_doubt_since(began) {
            self.spend("the end of a transaction was asked for again, or had no answer".into());
        }
    }

    fn spend(&self, reason: String) {
        self.state().spent.get_or_insert(reason);
    }

    fn explain(&self, operation: &str, failure: Failure) -> Error {
        let Failure { code, text: detail, is_fatal, .. } = failure;
        if code.is_fenced() {
            return Error::ProducerFenced { code, detail };
        }
        if is_fatal {
            self.spend(detail.clone());
        }
        Error::kafka(operation, code, detail)
    }
}

/// An open transaction. Dropped without an end, it is aborted. Usable from any number of threads.
pub struct Transaction {
    producer: Arc<Producer>,
    /// `None` when the transaction has ended: the object keeps no client then.
    connection: RwLock<Option<Arc<Connection>>>,
}

impl Transaction {
    /// Makes a transaction that has begun on this connection, in the producer's turn, which it gives back at its end.
    pub(super) const fn new(producer: Arc<Producer>, connection: Arc<Connection>) -> Self {
        Self { producer, connection: RwLock::new(Some(connection)) }
    }

    /// Returns the time after which the broker aborts it by itself.
    pub fn timeout(&self) -> Duration {
        self.producer.transaction_timeout()
    }

    fn connection(&self) -> Result<Arc<Connection>> {
        self.producer.check_process()?;
        let connection = self.connection.read().unwrap_or_else(PoisonError::into_inner).clone();
        connection.ok_or(Error::Closed { what: "transaction" })
    }

    /// Ends the transaction by `end`, once.
    fn end<T>(&self, end: impl FnOnce(&Connection, &Transactions) -> T) -> Result<T> {
        self.producer.check_process()?;
        let connection = self.connection.write().unwrap_or_else(PoisonError::into_inner).take();
        let connection = connection.ok_or(Error::Closed { what: "transaction" })?;
        let ended = connection.transactions().map(|transactions| end(&connection, transactions));
        self.producer.end_turn();
        ended.ok_or(Error::Closed { what: "transaction" })
    }

    /// Sends a message in the transaction, without waiting; `None` when the queue is full. Does not block.
    pub fn try_produce(&self, topic: &str, record: &Record<'_>) -> Result<Option<Arc<DeliveryHandle>>> {
        self.connection()?.try_produce(topic, record)
    }

    /// Sends a message in the transaction, as [`Producer::produce`].
    pub fn produce(&self, topic: &str, record: &Record<'_>, deadline: &Deadline) -> Result<Arc<DeliveryHandle>> {
        self.connection()?.produce(topic, record, deadline)
    }

    /// Sends messages in the transaction, in order, and adds their handles to `sent`. Blocks the calling thread while
    /// the queue is full.
    ///
    /// # Errors
    /// As for [`Producer::produce`], for the first message that is refused: those before it have handles in `sent`,
    /// those after it were not sent.
    pub(crate) fn produce_many(
        &self,
        topic: &str,
        mut records: &[Record<'_>],
        deadline: &Deadline,
        sent: &mut Vec<Arc<DeliveryHandle>>,
    ) -> Result<()> {
        let connection = self.connection()?;
        while let Some(first) = records.first() {
            let before = sent.len();
            connection.try_produce_many(topic, records, sent)?;
            if sent.len() == before {
                sent.push(connection.produce(topic, first, deadline)?);
            }
            records = &records[sent.len() - before..];
        }
        Ok(())
    }

    /// Sends the messages that wait, and waits for all reports. Returns whether they came. Blocks the calling thread.
    pub(crate) fn flush(&self, timeout: Option<Duration>) -> Result<bool> {
        self.connection()?.flush(timeout)
    }

    /// Adds positions of a group to the transaction. Blocks the calling thread.
    ///
    /// # Errors
    /// [`Error::Kafka`]: only an abort is possible then. [`Error::ProducerFenced`].
    pub(crate) fn send_offsets(
        &self,
        positions: &TopicPartitionList,
        group: &GroupMetadata,
        deadline: &Deadline,
    ) -> Result<()> {
        let connection = self.connection()?;
        let transactions = connection.transactions().ok_or(Error::Closed { what: "transaction" })?;
        transactions.send_offsets(positions, group, deadline)
    }

    /// Commits. Blocks the calling thread. The transaction has ended then, also with an error.
    ///
    /// # Errors
    /// [`Error::Aborted`]: none of its messages will be seen. [`Error::InDoubt`]: the broker did not answer whether it
    /// was committed. [`Error::ProducerFenced`]: another producer has the transactional id; none of its messages will
    /// be seen.
    pub fn commit(&self, deadline: &Deadline) -> Result<()> {
        self.end(|connection, transactions| transactions.commit(connection, deadline)).flatten()
    }

    /// Aborts: none of its messages will be seen, and those that were not sent yet fail. Blocks the calling thread.
    /// Ending again does nothing.
    pub fn abort(&self, deadline: &Deadline) {
        drop(self.end(|_, transactions| transactions.abort(deadline)));
    }

    /// Aborts as `abort`, within a time of its own: no code waits for a transaction that was dropped.
    pub fn abort_unended(&self) {
        self.abort(&Deadline::after(Some(ABORT_WITHIN)));
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        self.abort_unended();
    }
}
