//! Transactions of one producer: one at a time, first come first served; each ends committed, aborted, or in doubt.
//!
//! A transaction's end is asked of the broker once. If librdkafka had to ask again, or had no answer, an old request may be on
//! its way still and end the *next* transaction: the connection is then *spent*, and the next transaction begins on a new one,
//! whose initialisation raises the epoch, so that whatever comes late is refused (see `kafka/end_txns`).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use super::connection::Connection;
use super::{DeliveryHandle, Producer, Record, Reports};
use crate::clock::Deadline;
use crate::events::What;
use crate::kafka::{Client, Code, EndTxnCounts, EndTxns, Failure, GroupMetadata, Limit, TopicPartitionList};
use crate::{Error, Result};

/// An abort that follows a failure gets at least so long.
const ABORT_WITHIN: Duration = Duration::from_secs(5);

/// What transactions of one connection need.
pub(super) struct Transactions {
    client: Arc<Client>,
    end_txns: Arc<EndTxns>,
    reports: Arc<Reports>,
    /// Nobody waits for calls any more.
    is_over: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Whether the transactional id is ours.
    is_initialised: bool,
    /// What had been asked and answered when the present transaction began.
    began: EndTxnCounts,
    /// How many messages had failed by then.
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

    /// Makes calls that are under way, and later ones, wait no longer. Does not block.
    pub(super) fn give_up(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    /// The error that made the connection unusable, if one did.
    pub(super) fn fatal_error(&self) -> Option<(Code, String)> {
        self.client.fatal_error()
    }

    /// Why no further transaction may begin here, if so.
    pub(super) fn why_spent(&self) -> Option<String> {
        self.state().spent.clone()
    }

    /// Says so on the event box.
    pub(super) fn say_replaced(&self, reason: String) {
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

    /// Makes positions of a group a part of the transaction. Blocks the calling thread.
    fn send_offsets(&self, positions: &TopicPartitionList, group: &GroupMetadata, deadline: &Deadline) -> Result<()> {
        let sent = self.client.send_offsets(positions, group, self.limit(deadline));
        sent.map_err(|failure| self.explain("add offsets to a transaction", failure))
    }

    /// Commits, or aborts if that can't be; says which.
    fn commit(&self, connection: &Connection, deadline: &Deadline) -> Result<()> {
        // Flushed here, because librdkafka's own flush would end with the first report that somebody waits for.
        let failure = match connection.flush(deadline.remaining()) {
            Ok(_) => self.client.commit_transaction(self.limit(deadline)).err(),
            Err(error) => return Err(error),
        };
        let Some(failure) = failure else {
            self.look_at_end();
            return Ok(());
        };
        let (began, now) = (self.state().began, self.end_txns.counts());
        // The broker's own word, if it was asked once, that we are fenced; after anything else it may have committed all the same.
        let is_refused = failure.code.is_fenced() && !now.is_in_doubt_since(began);
        if now.is_asked_since(began) && !is_refused {
            self.spend(format!("a commit is in doubt: {}", failure.text));
            let Failure { code, text, .. } = failure;
            return Err(Error::InDoubt { code, detail: text });
        }
        let is_fenced = failure.code.is_fenced();
        let (code, detail) = self.reason_of(failure);
        self.abort(&Deadline::after(Some(deadline.remaining().unwrap_or_default().max(ABORT_WITHIN))));
        self.client.emit(What::TransactionAborted { code, text: detail.clone() });
        Err(if is_fenced { Error::ProducerFenced { code, detail } } else { Error::Aborted { code, detail } })
    }

    /// Why a commit failed: where a message failed before it, librdkafka says no more than that.
    fn reason_of(&self, failure: Failure) -> (Code, String) {
        let has_failed = failure.code == Code::INCONSISTENT && self.reports.failed() != self.state().failed;
        match self.reports.last_failure().filter(|_| has_failed) {
            Some(error) => (error.code(), error.to_string()),
            None => (failure.code, failure.text),
        }
    }

    /// Aborts. What fails here ends with the connection: the next one's initialisation aborts what is open.
    fn abort(&self, deadline: &Deadline) {
        if self.reports.failed() != self.state().failed {
            // librdkafka (2.12.1) does not raise the epoch for it: the next transaction would fail for the gap in the sequence.
            self.spend("a message failed, and left a gap in its partition's sequence".into());
        }
        match self.client.abort_transaction(self.limit(deadline)) {
            Ok(()) => self.look_at_end(),
            Err(failure) => self.spend(format!("an abort failed: {}", failure.text)),
        }
    }

    fn look_at_end(&self) {
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

/// A transaction that is open. Dropped without an end, it is aborted. Usable from any number of threads.
pub struct Transaction {
    producer: Arc<Producer>,
    /// Where it is open; `None` when it is over: whoever keeps it then keeps no client.
    connection: RwLock<Option<Arc<Connection>>>,
}

impl Transaction {
    /// A transaction that has begun on this connection, in the producer's turn, which it gives back at its end.
    pub(super) const fn new(producer: Arc<Producer>, connection: Arc<Connection>) -> Self {
        Self { producer, connection: RwLock::new(Some(connection)) }
    }

    /// After this long the broker aborts it by itself.
    pub fn timeout(&self) -> Duration {
        self.producer.transaction_timeout()
    }

    fn connection(&self) -> Result<Arc<Connection>> {
        self.producer.check_process()?;
        let connection = self.connection.read().unwrap_or_else(PoisonError::into_inner).clone();
        connection.ok_or(Error::Closed { what: "transaction" })
    }

    /// Ends it as `end` says, once.
    fn end<T>(&self, end: impl FnOnce(&Connection, &Transactions) -> T) -> Result<T> {
        self.producer.check_process()?;
        let connection = self.connection.write().unwrap_or_else(PoisonError::into_inner).take();
        let connection = connection.ok_or(Error::Closed { what: "transaction" })?;
        let ended = connection.transactions().map(|transactions| end(&connection, transactions));
        self.producer.end_turn();
        ended.ok_or(Error::Closed { what: "transaction" })
    }

    /// Sends a message as a part of it, without waiting for room; `None` when there is none. Does not block.
    pub fn try_produce(&self, topic: &str, record: &Record<'_>) -> Result<Option<Arc<DeliveryHandle>>> {
        self.connection()?.try_produce(topic, record)
    }

    /// Sends a message as a part of it, as [`Producer::produce`].
    pub fn produce(&self, topic: &str, record: &Record<'_>, deadline: &Deadline) -> Result<Arc<DeliveryHandle>> {
        self.connection()?.produce(topic, record, deadline)
    }

    /// Sends what waits and waits for all reports; whether they came. Blocks the calling thread.
    pub(crate) fn flush(&self, timeout: Option<Duration>) -> Result<bool> {
        self.connection()?.flush(timeout)
    }

    /// Makes positions of a group a part of it. Blocks the calling thread.
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

    /// Commits. Blocks the calling thread. Whatever the answer, the transaction is over with it.
    ///
    /// # Errors
    /// [`Error::Aborted`]: nothing of it will be seen. [`Error::InDoubt`]: the broker did not say what became of it.
    /// [`Error::ProducerFenced`]: another producer has the transactional id; nothing of it will be seen.
    pub fn commit(&self, deadline: &Deadline) -> Result<()> {
        self.end(|connection, transactions| transactions.commit(connection, deadline)).flatten()
    }

    /// Aborts: nothing of it will be seen, and what was not sent yet fails. Blocks the calling thread. Ending again does nothing.
    pub fn abort(&self, deadline: &Deadline) {
        drop(self.end(|_, transactions| transactions.abort(deadline)));
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        self.abort(&Deadline::at(Instant::now() + ABORT_WITHIN));
    }
}
