//! One librdkafka producer with its budget, its topics and its report thread.
//!
//! The way of a record: the budget (at once, or after a wait in order) → librdkafka's queue, with one reference to the
//! handle as the opaque → the broker → `delivery_reports`, which completes the handle and releases the budget.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::outputs::Outputs;
use super::topics::Topics;
use super::transaction::Transactions;
use super::{Budget, DeliveryHandle, Idle, ProducerOptions, Record, Reports};
use crate::clock::{self, Deadline};
use crate::events::EventBox;
use crate::kafka::{Client, ClientConfig, ClientOptions, Code, EndTxns, Kind};
use crate::wake::OwnThread;
use crate::{Error, Result};

/// The counts of a producer.
#[derive(Clone, Copy, Debug)]
pub struct ProducerCounters {
    /// Messages that wait for their report.
    pub queued_messages: usize,
    /// Their bytes.
    pub queued_bytes: usize,
}

/// One librdkafka producer. Usable from any number of threads; closed once.
pub(super) struct Connection {
    topics: Topics,
    budget: Arc<Budget>,
    reports: Arc<Reports>,
    thread: Mutex<Option<OwnThread>>,
    client: Arc<Client>,
    answer_timeout: Option<Duration>,
    message_bytes_max: usize,
    /// `None` without a transactional id.
    transactions: Option<Transactions>,
}

/// The most bytes that Kafka's record format adds to key and value.
const OVERHEAD_BYTES_MAX: usize = 128;

/// The time that a report may come after `delivery.timeout.ms`: librdkafka checks time-outs once a second.
const GRACE: Duration = Duration::from_secs(10);

/// Settings that awoke needs for itself.
const OWN_SETTINGS: [(&str, &str); 2] = [
    ("enable.gapless.guarantee", "is experimental in librdkafka and makes one failed message fatal"),
    ("delivery.report.only.error", "belongs to awoke: a delivery handle needs every report"),
];

/// A user who sets one of these has decided about idempotence, which allows only some of their values.
const DECIDES_ON_IDEMPOTENCE: [&str; 8] = [
    "acks",
    "enable.idempotence",
    "max.in.flight",
    "max.in.flight.requests.per.connection",
    "message.send.max.retries",
    "queuing.strategy",
    "request.required.acks",
    "retries",
];

/// Returns whether the user has decided about idempotence. One request at a time decides nothing: idempotence adds that
/// no retry repeats a message.
fn decides_on_idempotence(config: &ClientConfig) -> bool {
    let is_one_at_a_time = |property: &str, value: &str| property.starts_with("max.in.flight") && value == "1";
    let decides = |property: &&str| config.get(property).is_some_and(|value| !is_one_at_a_time(property, value));
    DECIDES_ON_IDEMPOTENCE.iter().any(decides)
}

impl Connection {
    /// Makes the client and starts its report thread, which also closes the connection when it is `idle`.
    pub(super) fn new(
        config: &ClientConfig,
        events: Arc<EventBox>,
        idle: Option<Idle>,
        options: &ProducerOptions,
        outputs: Arc<Outputs>,
    ) -> Result<Self> {
        config.refuse(&OWN_SETTINGS)?;
        let messages_max = config.effective_number("queue.buffering.max.messages")? as usize;
        let bytes_max = config.effective_number("queue.buffering.max.kbytes")? as usize * 1024;
        let timeout_ms = config.effective_number("message.timeout.ms")?;
        let mut native = config.clone();
        // The budget keeps these bounds, and senders wait in order. librdkafka's own would refuse a sender, and would
        // count a message until after its report, when the budget has admitted the next one already.
        native.set("queue.buffering.max.messages", "0").set("queue.buffering.max.kbytes", "2147483647");
        if !decides_on_idempotence(config) {
            native.set("enable.idempotence", "true");
        }
        // As Java's clients do: a key must not be in two partitions because programs in two languages write it.
        native.set_default("partitioner", "murmur2_random");
        let is_transactional = config.get("transactional.id").is_some();
        let end_txns = Arc::new(EndTxns::default());
        let mut parts = ClientOptions::default().with_reports_to::<DeliveryHandle>();
        if is_transactional {
            parts = parts.with_counts(Arc::clone(&end_txns));
        }
        if let Some(messages) = options.crowd {
            parts = parts.with_crowd(messages);
        }
        let kind = if is_transactional { Kind::Transactional } else { Kind::Producer };
        let client = Client::new(kind, "producer", &native, events, parts)?;
        let budget = Arc::new(Budget::new(if messages_max == 0 { usize::MAX } else { messages_max }, bytes_max));
        let is_idempotent = native.effective("enable.idempotence")? == "true" && !is_transactional;
        let coalescing = options.report_coalescing;
        let reports = Reports::new(Arc::clone(&client), Arc::clone(&budget), coalescing, kind, is_idempotent, outputs);
        let transactions =
            is_transactional.then(|| Transactions::new(Arc::clone(&client), end_txns, Arc::clone(&reports)));
        let thread = OwnThread::start("awoke-reports", "start the report thread", {
            let reports = Arc::clone(&reports);
            move || reports.serve(idle)
        })?;
        let answer_timeout = (timeout_ms > 0).then(|| Duration::from_millis(timeout_ms) + GRACE);
        Ok(Self {
            topics: Topics::new(Arc::clone(&client), Arc::clone(&reports), answer_timeout),
            budget,
            reports,
            thread: Mutex::new(Some(thread)),
            client,
            message_bytes_max: config.effective_number("message.max.bytes")? as usize,
            answer_timeout,
            transactions,
        })
    }

    /// Returns the time after which every message has its report; `None` when the setting says never.
    pub(super) const fn answer_timeout(&self) -> Option<Duration> {
        self.answer_timeout
    }

    /// Sends without waiting; `None` when the queue is full. Does not block.
    pub(super) fn try_produce(&self, topic: &str, record: &Record<'_>) -> Result<Option<Arc<DeliveryHandle>>> {
        self.client.check_process()?;
        let size_bytes = record.size_bytes();
        if !self.budget.try_acquire(size_bytes)? {
            return Ok(None);
        }
        self.produce_inside(topic, record, size_bytes).map(Some)
    }

    /// Sends a record. Blocks the calling thread while the queue is full.
    ///
    /// # Errors
    /// [`Error::QueueFull`]: the queue was full until the deadline. What librdkafka refuses at once, above all
    /// [`Error::MessageTooLarge`]. Nothing was sent then.
    pub(super) fn produce(&self, topic: &str, record: &Record<'_>, deadline: &Deadline) -> Result<Arc<DeliveryHandle>> {
        self.client.check_process()?;
        let size_bytes = record.size_bytes();
        self.budget.acquire(size_bytes, deadline)?;
        self.produce_inside(topic, record, size_bytes)
    }

    /// Sends records in order until the queue is full, and adds their handles to `sent`. Does not block.
    ///
    /// # Errors
    /// As for `produce`, for the first record that is refused: those before it were sent, and have handles in `sent`;
    /// those after it were not.
    pub(super) fn try_produce_many(
        &self,
        topic: &str,
        records: &[Record<'_>],
        sent: &mut Vec<Arc<DeliveryHandle>>,
    ) -> Result<()> {
        self.client.check_process()?;
        for run in records.chunk_by(|one, next| self.is_plain(one) && self.is_plain(next)) {
            if let [record] = run {
                let Some(handle) = self.try_produce(topic, record)? else { return Ok(()) };
                sent.push(handle);
                continue;
            }
            let admitted = self.budget.try_acquire_many(run.iter().map(Record::size_bytes))?;
            if admitted > 0 {
                self.produce_together(topic, &run[..admitted], sent)?;
            }
            if admitted < run.len() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Sends all messages that wait without lingering, and waits until all are answered; `false` when the time was up
    /// first. Blocks the calling thread.
    pub(super) fn flush(&self, timeout: Option<Duration>) -> Result<bool> {
        self.client.check_process()?;
        Ok(self.reports.flush_all(&Deadline::after(timeout)))
    }

    /// Flushes, then ends the report thread. Returns how many messages were not answered within `timeout`; their
    /// handles fail. Blocks the calling thread. Closing again does nothing.
    pub(super) fn close(&self, timeout: Option<Duration>) -> Result<usize> {
        self.client.check_process()?;
        self.budget.close();
        let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() else {
            return Ok(0);
        };
        let since = clock::real_now();
        let deadline = Deadline::after(timeout);
        // A thread that has acquired the budget before may hand its record over after the flush.
        let is_empty = self.flush(timeout)? && self.budget.wait_empty(&deadline);
        let unanswered = if is_empty { 0 } else { self.budget.used().0 };
        if unanswered > 0 {
            let left = timeout.map(|timeout| timeout.saturating_sub(clock::real_since(since))).unwrap_or_default();
            self.purge(left.max(Duration::from_millis(100)))?;
        }
        self.reports.close();
        // The thread itself closes a connection that is idle.
        if !thread.is_current() {
            thread.join();
        }
        self.topics.clear();
        Ok(unanswered)
    }

    /// Ends the watch over outputs: the producer is closed.
    pub(super) fn end_outputs(&self) {
        self.reports.end_outputs();
    }

    /// Ends the waits of a transaction's calls, and fails the messages that wait. Does not block.
    pub(super) fn cancel(&self) {
        if let Some(transactions) = &self.transactions {
            transactions.cancel();
        }
        self.client.purge_all();
    }

    /// Fails the messages that wait or are on their way, so that every handle gets an answer.
    fn purge(&self, timeout: Duration) -> Result<()> {
        self.client.purge_all();
        self.flush(Some(timeout)).map(drop)
    }

    /// Returns the transactions of this connection; `None` without a transactional id.
    pub(super) const fn transactions(&self) -> Option<&Transactions> {
        self.transactions.as_ref()
    }

    /// Returns the counts of the producer.
    pub(super) fn counters(&self) -> ProducerCounters {
        let (queued_messages, queued_bytes) = self.budget.used();
        ProducerCounters { queued_messages, queued_bytes }
    }

    /// Hands a record that is in the budget to librdkafka.
    fn produce_inside(&self, topic: &str, record: &Record<'_>, size_bytes: usize) -> Result<Arc<DeliveryHandle>> {
        let sent = self.topics.with(topic, record.variant, |topic| topic.send(record, size_bytes));
        let sent = sent.and_then(|sent| sent.map_err(|code| self.record_error(topic, code, size_bytes)));
        if sent.is_err() {
            self.budget.release(1, size_bytes);
        }
        self.reports.count_sent(1);
        sent
    }

    /// Hands records to librdkafka, as `produce_inside`, in one call.
    fn produce_together(&self, topic: &str, records: &[Record<'_>], sent: &mut Vec<Arc<DeliveryHandle>>) -> Result<()> {
        let before = sent.len();
        let refused = self.topics.with(topic, records[0].variant, |topic| topic.send_many(records, sent));
        let refused = refused.inspect_err(|_| {
            self.budget.release(records.len(), records.iter().map(Record::size_bytes).sum());
        })?;
        self.reports.count_sent((sent.len() - before) as u32);
        let Some(refused) = refused else { return Ok(()) };
        self.budget.release(refused.messages, refused.bytes);
        Err(self.record_error(topic, refused.code, refused.bytes / refused.messages))
    }

    /// Returns whether librdkafka can take this record among others: `rd_kafka_produce_batch` has no headers and
    /// timestamps, goes on after a message that is too large, and (2.12.1) forgets one whose partition does not exist.
    fn is_plain(&self, record: &Record<'_>) -> bool {
        record.partition.is_none()
            && record.stamp_ms().is_none()
            && record.headers.is_empty()
            && record.size_bytes() + OVERHEAD_BYTES_MAX <= self.message_bytes_max
    }

    fn record_error(&self, topic: &str, code: Code, size_bytes: usize) -> Error {
        match code {
            Code::MESSAGE_TOO_LARGE => {
                Error::MessageTooLarge { topic: topic.to_owned(), size_bytes, detail: code.description() }
            }
            Code::FATAL => {
                let (code, text) = self.client.fatal_error().unwrap_or((code, String::new()));
                Error::kafka(format!("produce to {topic}"), code, text)
            }
            Code::STATE if self.transactions.is_some() => {
                let how = "with producer.transaction() as t: t.produce(…)";
                Error::Invalid {
                    reason: format!("a producer with a transactional_id sends within a transaction: {how}"),
                }
            }
            code => Error::kafka(format!("produce to {topic}"), code, ""),
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if self.client.check_process().is_ok() {
            // A producer that was not closed: messages that were not sent by now fail.
            drop(self.close(Some(Duration::ZERO)));
        }
    }
}
