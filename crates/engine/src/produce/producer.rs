//! Takes records in and gives a delivery handle for each, over one connection at a time.
//!
//! A producer outlives its connection: one that has been idle for long is closed and made anew when it is needed, and one on
//! which no further transaction may begin is replaced.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use super::connection::Connection;
use super::{DeliveryHandle, Idle, ProducerCounters, Record, Room, Transaction};
use crate::clock::Deadline;
use crate::events::EventBox;
use crate::fork_guard::ForkGuard;
use crate::kafka::ClientConfig;
use crate::{Error, Result, wake};

/// Takes records in and gives a delivery handle for each. Usable from any number of threads.
pub struct Producer {
    config: ClientConfig,
    options: ProducerOptions,
    events: Arc<EventBox>,
    guard: ForkGuard,
    current: Arc<RwLock<Current>>,
    /// Holds the transaction that is open; others wait in line.
    turn: Room,
    delivery_timeout: Option<Duration>,
    transaction_timeout: Duration,
}

/// What librdkafka has no property for.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProducerOptions {
    /// The connection is closed when nothing was sent for one to two times as long; `None` keeps it.
    pub idle_after: Option<Duration>,
    /// So long reports that nobody waits for may lie, so that several are served at once.
    pub patience: Duration,
    /// Nobody else can have the transactional id: whoever is fenced has overslept, and begins anew.
    pub is_alone: bool,
}

enum Current {
    Open(Arc<Connection>),
    /// Closed because it was idle.
    Resting,
    Closed,
}

impl Producer {
    /// Makes the client and starts its report thread.
    pub fn new(config: &ClientConfig, options: ProducerOptions, events: Arc<EventBox>) -> Result<Self> {
        let mut producer = Self {
            config: config.clone(),
            options,
            events,
            guard: ForkGuard::new("producer"),
            delivery_timeout: None,
            transaction_timeout: Duration::from_millis(config.effective_number("transaction.timeout.ms")?),
            current: Arc::new(RwLock::new(Current::Resting)),
            turn: Room::new(1, usize::MAX),
        };
        producer.delivery_timeout = producer.connection()?.delivery_timeout();
        Ok(producer)
    }

    fn connect(&self) -> Result<Arc<Connection>> {
        let idle = self.options.idle_after.map(|after| {
            let current = Arc::downgrade(&self.current);
            Idle { after, close: Box::new(move || current.upgrade().is_some_and(|current| rest(&current))) }
        });
        Connection::new(&self.config, Arc::clone(&self.events), idle, self.options.patience).map(Arc::new)
    }

    /// Nobody else can have the transactional id.
    pub(crate) const fn is_alone(&self) -> bool {
        self.options.is_alone
    }

    /// Refuses use in another process than the producer's.
    pub(crate) fn check_process(&self) -> Result<()> {
        Ok(self.guard.check()?)
    }

    /// After this long at the latest every message has its report; `None` when the setting says never.
    pub const fn delivery_timeout(&self) -> Option<Duration> {
        self.delivery_timeout
    }

    /// After this long the broker aborts a transaction by itself.
    pub const fn transaction_timeout(&self) -> Duration {
        self.transaction_timeout
    }

    /// Sends without waiting for room; `None` when there is none. Does not block.
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

    /// Sends records in order, as many as there is room for now, and adds their handles to `sent`. Does not block.
    ///
    /// # Errors
    /// As for `produce`, for the first that is refused: those before it, whose handles are in `sent`, have been sent, and none after it.
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

    /// Sends, waiting for room in the queue. Blocks the calling thread while the queue is full.
    ///
    /// # Errors
    /// [`Error::QueueFull`] when no room was there in time; what librdkafka refuses at once, too large a message before
    /// all. Nothing was sent then.
    pub fn produce(&self, topic: &str, record: &Record<'_>, deadline: &Deadline) -> Result<Arc<DeliveryHandle>> {
        // An idle connection may close between the two calls: not twice within its time.
        match self.connection()?.produce(topic, record, deadline) {
            Err(Error::Closed { .. }) => self.connection()?.produce(topic, record, deadline),
            other => other,
        }
    }

    /// Sends everything that waits without lingering, and waits until all of it is answered; `false` when the time was up
    /// first. Blocks the calling thread.
    pub fn flush(&self, timeout: Option<Duration>) -> Result<bool> {
        self.check_process()?;
        let connection = match &*self.current.read().unwrap_or_else(PoisonError::into_inner) {
            Current::Open(connection) => Arc::clone(connection),
            Current::Resting => return Ok(true),
            Current::Closed => return Err(Error::Closed { what: "producer" }),
        };
        connection.flush(timeout)
    }

    /// Flushes and ends. Returns how many messages were not answered within `timeout`; their handles fail. A transaction that
    /// is open is aborted by the broker. Blocks the calling thread. Closing again does nothing.
    pub fn close(&self, timeout: Option<Duration>) -> Result<usize> {
        self.check_process()?;
        self.turn.close();
        let connection = self.open();
        // First, so that whoever waits for room is turned away; then nobody gets at it any more.
        let unanswered = connection.map_or(Ok(0), |connection| connection.close(timeout));
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Current::Closed;
        unanswered
    }

    /// Makes a transaction that is under way, and later ones, wait no longer. Does not block.
    pub(crate) fn give_up(&self) {
        self.turn.close();
        if let Some(connection) = self.open() {
            connection.give_up();
        }
    }

    /// What the producer counts about itself; nothing in another process, where its locks may be held for ever.
    pub fn counters(&self) -> ProducerCounters {
        let open = self.check_process().ok().and_then(|()| self.open());
        open.map_or(ProducerCounters { queued_messages: 0, queued_bytes: 0 }, |connection| connection.counters())
    }

    /// Begins a transaction when those before it have ended. Blocks the calling thread.
    ///
    /// # Errors
    /// [`Error::Config`] without a `transactional.id`; [`Error::ProducerFenced`] when another producer has taken it;
    /// [`Error::TimedOut`] when the transaction before did not end in time; [`Error::Kafka`] when the broker did not answer.
    pub fn begin(self: &Arc<Self>, deadline: &Deadline) -> Result<Transaction> {
        self.check_process()?;
        if self.config.get("transactional.id").is_none() {
            let reason = "is missing: a transaction needs a producer with a transactional_id".to_owned();
            return Err(Error::Config { property: "transactional.id".into(), reason });
        }
        self.turn.enter(1, deadline).map_err(|error| match error {
            wake::Error::QueueFull { waited, .. } => {
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

    /// Takes the transactional id before the first transaction needs it. For whoever begins them all. Blocks the calling thread.
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

    /// Why no transaction may begin on this connection; `None` where one may.
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

    /// Puts a new connection in the place of one that may not be used any more.
    fn replace(&self, spent: &Arc<Connection>, reason: String) -> Result<Arc<Connection>> {
        if let Some(transactions) = spent.transactions() {
            transactions.say_replaced(reason);
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

    /// The transaction that had the turn is over.
    pub(super) fn end_turn(&self) {
        self.turn.leave(1, 1);
    }

    /// The connection, if there is one.
    fn open(&self) -> Option<Arc<Connection>> {
        match &*self.current.read().unwrap_or_else(PoisonError::into_inner) {
            Current::Open(connection) => Some(Arc::clone(connection)),
            Current::Resting | Current::Closed => None,
        }
    }

    /// The connection, made anew where it rested.
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

/// Closes a connection that nobody uses; whether it did. Runs on its report thread.
fn rest(current: &RwLock<Current>) -> bool {
    let mut current = current.write().unwrap_or_else(PoisonError::into_inner);
    match &*current {
        // References are taken under the lock: whoever sends, waits for room, or has a transaction open holds one.
        Current::Open(connection)
            if Arc::strong_count(connection) == 1 && connection.counters().queued_messages == 0 => {}
        _ => return false,
    }
    let idle = std::mem::replace(&mut *current, Current::Resting);
    drop(current);
    drop(idle);
    true
}
