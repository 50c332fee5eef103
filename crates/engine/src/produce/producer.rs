//! Takes records in and returns a delivery handle for each, over one connection at a time.
//!
//! A producer outlives its connection: an idle one is closed, and made again when it is needed; one on which no further
//! transaction may begin is replaced.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use super::connection::Connection;
use super::outputs::Outputs;
use super::{Budget, DeliveryHandle, Idle, ProducerCounters, Record, Transaction};
use crate::clock::Deadline;
use crate::events::EventBox;
use crate::fork_guard::ForkGuard;
use crate::kafka::ClientConfig;
use crate::{Error, Result, wake};

/// Reports of requests and replies may wait this long: no caller waits for them, and many cost no more than one.
const CALL_REPORT_COALESCING: Duration = Duration::from_millis(10);

/// With more requests or replies on their way than this, a request of its own for each costs more than the linger.
const CALL_CROWD: u32 = 40;

/// Takes records in and returns a delivery handle for each. Usable from any number of threads.
pub struct Producer {
    config: ClientConfig,
    options: ProducerOptions,
    events: Arc<EventBox>,
    guard: ForkGuard,
    current: Arc<RwLock<Current>>,
    /// Admits one open transaction; others wait in order.
    turn: Budget,
    /// Finds partitions to which nothing can be written.
    outputs: Arc<Outputs>,
    answer_timeout: Option<Duration>,
    transaction_timeout: Duration,
}

/// Settings for which librdkafka has no property.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProducerOptions {
    /// The connection is closed when nothing was sent for one to two times this long; `None` keeps it.
    pub idle_after: Option<Duration>,
    /// The time for which reports that are not awaited may wait, so that several are served at once.
    pub report_coalescing: Duration,
    /// Messages linger only while more than this many have no report; `None` where all linger.
    pub crowd: Option<u32>,
    /// No other process can have the transactional id: a producer that is fenced slept too long, and begins again.
    pub is_alone: bool,
}

impl ProducerOptions {
    /// Returns the options of a producer of requests or replies: one of a few is sent at once, and of many several are
    /// sent together.
    pub fn for_calls() -> Self {
        Self { report_coalescing: CALL_REPORT_COALESCING, crowd: Some(CALL_CROWD), ..Self::default() }
    }
}

enum Current {
    Open(Arc<Connection>),
    /// Closed because it was idle.
    Resting,
    Closed,
}

impl Producer {
    /// Makes the client and starts its report thread.
    ///
    /// # Errors
    /// [`Error::Config`]: librdkafka refuses a property. [`Error::System`]: the thread did not start.
    pub fn new(config: &ClientConfig, options: ProducerOptions, events: Arc<EventBox>) -> Result<Self> {
        let mut producer = Self {
            config: config.clone(),
            options,
            events,
            guard: ForkGuard::new("producer"),
            answer_timeout: None,
            transaction_timeout: Duration::from_millis(config.effective_number("transaction.timeout.ms")?),
            current: Arc::new(RwLock::new(Current::Resting)),
            turn: Budget::new(1, usize::MAX),
            outputs: Arc::default(),
        };
        producer.answer_timeout = producer.connection()?.answer_timeout();
        Ok(producer)
    }

    fn connect(&self) -> Result<Arc<Connection>> {
        let idle = self.options.idle_after.map(|after| {
            let current = Arc::downgrade(&self.current);
            Idle { after, close: Box::new(move || current.upgrade().is_some_and(|current| rest(&current))) }
        });
        let outputs = Arc::clone(&self.outputs);
        Connection::new(&self.config, Arc::clone(&self.events), idle, &self.options, outputs).map(Arc::new)
    }

    /// Returns whether no other process can have the transactional id.
    pub(crate) const fn is_alone(&self) -> bool {
        self.options.is_alone
    }

    /// Refuses use in another process than the producer's.
    pub(crate) fn check_process(&self) -> Result<()> {
        Ok(self.guard.check()?)
    }

    /// Returns the time after which every message has its report; `None` when the setting says never.
    pub const fn answer_timeout(&self) -> Option<Duration> {
        self.answer_timeout
    }

    /// Returns the time after which the broker aborts a transaction by itself.
    pub const fn transaction_timeout(&self) -> Duration {
        self.transaction_timeout
    }

    /// Sends without waiting; `None` when the queue is full. Does not block.
    ///
    /// # Errors
    /// As for `produce`.
    pub fn try_produce(&self, topic: &str, record: &Record<'_>) -> Result<Option<Arc<DeliveryHandle>>> {
        self.check_process()?;
        {
            let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
            if let Current::Open(connection) = &*current {
                return connection.try_produce(topic, record);
            }
        }
        self.connection()?.try_produce(topic, record)
    }

    /// Sends records in order until the queue is full, and adds their handles to `sent`. Does not block.
    ///
    /// # Errors
    /// As for `produce`, for the first record that is refused: those before it were sent, and have handles in `sent`;
    /// those after it were not.
    pub fn try_produce_many(
        &self,
        topic: &str,
        records: &[Record<'_>],
        sent: &mut Vec<Arc<DeliveryHandle>>,
    ) -> Result<()> {
        self.check_process()?;
        {
            let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
            if let Current::Open(connection) = &*current {
                return connection.try_produce_many(topic, records, sent);
            }
        }
        self.connection()?.try_produce_many(topic, records, sent)
    }

    /// Sends a record. Blocks the calling thread while the queue is full.
    ///
    /// # Errors
    /// [`Error::QueueFull`]: the queue was full until the deadline. What librdkafka refuses at once, above all
    /// [`Error::MessageTooLarge`]. Nothing was sent then.
    pub fn produce(&self, topic: &str, record: &Record<'_>, deadline: &Deadline) -> Result<Arc<DeliveryHandle>> {
        // An idle connection may close between the two calls: not twice within its time.
        match self.connection()?.produce(topic, record, deadline) {
            Err(Error::Closed { .. }) => self.connection()?.produce(topic, record, deadline),
            other => other,
        }
    }

    /// Sends records in order, and adds their handles to `sent`. Blocks the calling thread while the queue is full: for
    /// each record up to `timeout`.
    ///
    /// # Errors
    /// As for `try_produce_many`.
    pub fn produce_many(
        &self,
        topic: &str,
        mut records: &[Record<'_>],
        timeout: Option<Duration>,
        sent: &mut Vec<Arc<DeliveryHandle>>,
    ) -> Result<()> {
        while let Some(first) = records.first() {
            let before = sent.len();
            self.try_produce_many(topic, records, sent)?;
            if sent.len() == before {
                sent.push(self.produce(topic, first, &Deadline::after(timeout))?);
            }
            records = &records[sent.len() - before..];
        }
        Ok(())
    }

    /// Sends all messages that wait without lingering, and waits until all are answered; `false` when the time was up
    /// first. Blocks the calling thread.
    ///
    /// # Errors
    /// [`Error::Closed`]: the producer is closed. [`Error::Forked`].
    pub fn flush(&self, timeout: Option<Duration>) -> Result<bool> {
        self.check_process()?;
        let connection = match &*self.current.read().unwrap_or_else(PoisonError::into_inner) {
            Current::Open(connection) => Arc::clone(connection),
            Current::Resting => return Ok(true),
            Current::Closed => return Err(Error::Closed { what: "producer" }),
        };
        connection.flush(timeout)
    }

    /// Flushes and ends. Returns how many messages were not answered within `timeout`; their handles fail. The broker
    /// aborts an open transaction. Blocks the calling thread. Closing again does nothing.
    ///
    /// # Errors
    /// [`Error::Forked`]: another process made the producer.
    pub fn close(&self, timeout: Option<Duration>) -> Result<usize> {
        self.check_process()?;
        self.turn.close();
        let connection = self.open();
        // First, so that waiting senders fail; after that no sender gets the connection.
        let unanswered = connection.as_ref().map_or(Ok(0), |connection| connection.close(timeout));
        connection.iter().for_each(|connection| connection.end_outputs());
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Current::Closed;
        unanswered
    }

    /// Ends the waits of transactions, now and later. Does not block.
    pub(crate) fn cancel(&self) {
        self.turn.close();
        if let Some(connection) = self.open() {
            connection.cancel();
        }
    }

    /// Returns the counts of the producer; 0 in another process, where its locks may be held for ever.
    pub fn counters(&self) -> ProducerCounters {
        let open = self.check_process().ok().and_then(|()| self.open());
        open.map_or(ProducerCounters { queued_messages: 0, queued_bytes: 0 }, |connection| connection.counters())
    }

    /// Begins a transaction when those before it have ended. Blocks the calling thread.
    ///
    /// # Errors
    /// [`Error::Config`] without a `transactional.id`; [`Error::ProducerFenced`] when another producer has taken it;
    /// [`Error::TimedOut`] when the transaction before did not end in time; [`Error::Kafka`] when the broker did not
    /// answer.
    pub fn begin(self: &Arc<Self>, deadline: &Deadline) -> Result<Transaction> {
        self.check_process()?;
        if self.config.get("transactional.id").is_none() {
            let reason = "is missing: a transaction needs a producer with a transactional_id".to_owned();
            return Err(Error::Config { property: "transactional.id".into(), reason });
        }
        self.turn.acquire(1, deadline).map_err(|error| match error {
            wake::Error::BudgetExhausted { waited, .. } => {
                Error::TimedOut { operation: "begin a transaction".into(), waited }
            }
            other => other.into(),
        })?;
        let begun = self.begin_in_turn(deadline);
        if begun.is_err() {
            self.end_turn();
        }
        begun
    }

    /// Takes the transactional id before the first transaction needs it. Only one thread may begin transactions then.
    /// Blocks the calling thread.
    pub(crate) fn prepare(&self, deadline: &Deadline) -> Result<()> {
        let connection = self.connection()?;
        connection.transactions().map_or(Ok(()), |transactions| transactions.prepare(deadline))
    }

    fn begin_in_turn(self: &Arc<Self>, deadline: &Deadline) -> Result<Transaction> {
        let mut connection = self.connection()?;
        if let Some(reason) = self.why_replace(&connection)? {
            connection = self.replace(&connection, reason)?;
        }
        let transactions = connection.transactions().ok_or(Error::Closed { what: "producer" })?;
        transactions.begin(deadline)?;
        Ok(Transaction::new(Arc::clone(self), connection))
    }

    /// Returns why no transaction may begin on this connection; `None` where one may.
    fn why_replace(&self, connection: &Connection) -> Result<Option<String>> {
        let Some(transactions) = connection.transactions() else { return Ok(None) };
        if let Some((code, detail)) = transactions.fatal_error() {
            if code.is_fenced() && !self.options.is_alone {
                return Err(Error::ProducerFenced { code, detail });
            }
            return Ok(Some(detail));
        }
        Ok(transactions.why_spent())
    }

    /// Replaces a connection that may not be used any more by a new one.
    fn replace(&self, spent: &Arc<Connection>, reason: String) -> Result<Arc<Connection>> {
        if let Some(transactions) = spent.transactions() {
            transactions.emit_replaced(reason);
        }
        // Closed before the new one begins: its handles fail, its requests end.
        spent.close(Some(Duration::ZERO))?;
        let fresh = self.connect()?;
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        if matches!(*current, Current::Closed) {
            return Err(Error::Closed { what: "producer" });
        }
        *current = Current::Open(Arc::clone(&fresh));
        Ok(fresh)
    }

    /// Ends the turn of a transaction.
    pub(super) fn end_turn(&self) {
        self.turn.release(1, 1);
    }

    /// Returns the connection, if there is one.
    fn open(&self) -> Option<Arc<Connection>> {
        match &*self.current.read().unwrap_or_else(PoisonError::into_inner) {
            Current::Open(connection) => Some(Arc::clone(connection)),
            Current::Resting | Current::Closed => None,
        }
    }

    /// Returns the connection, made again if it was closed because it was idle.
    fn connection(&self) -> Result<Arc<Connection>> {
        self.check_process()?;
        if let Some(connection) = self.open() {
            return Ok(connection);
        }
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        match &*current {
            Current::Open(connection) => Ok(Arc::clone(connection)),
            Current::Closed => Err(Error::Closed { what: "producer" }),
            Current::Resting => {
                let fresh = self.connect()?;
                *current = Current::Open(Arc::clone(&fresh));
                Ok(fresh)
            }
        }
    }
}

/// Closes a connection that is not in use. Returns whether it did. Runs on its report thread.
fn rest(current: &RwLock<Current>) -> bool {
    let mut current = current.write().unwrap_or_else(PoisonError::into_inner);
    match &*current {
        // References are taken under the lock: a thread that sends or waits, and an open transaction, have one.
        Current::Open(connection)
            if Arc::strong_count(connection) == 1 && connection.counters().queued_messages == 0 => {}
        _ => return false,
    }
    let idle = std::mem::replace(&mut *current, Current::Resting);
    drop(current);
    drop(idle);
    true
}
