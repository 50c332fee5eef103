//! One librdkafka producer with its room, its topics and its report thread.
//!
//! A record goes: `Room::try_enter` (or waits in line) → librdkafka's queue, with one reference to its handle as the
//! opaque → the broker → `delivery_reports`, which completes the handle and gives the room back.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::topics::Topics;
use super::transaction::Transactions;
use super::{DeliveryHandle, Idle, Record, Reports, Room, delivery_reports};
use crate::clock::Deadline;
use crate::events::EventBox;
use crate::kafka::{Client, ClientConfig, Code, EndTxns, Kind, ffi, set_deliverer};
use crate::{Error, Result};

/// What a producer counts about itself.
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
    room: Arc<Room>,
    reports: Arc<Reports>,
    thread: Mutex<Option<JoinHandle<()>>>,
    client: Arc<Client>,
    delivery_timeout: Option<Duration>,
    message_bytes_max: usize,
    /// Where the settings name a transactional id.
    transactions: Option<Transactions>,
}

/// What Kafka's record format adds to key and value, at most.
const OVERHEAD_BYTES_MAX: usize = 128;

/// Settings that awoke needs for itself.
const OWN_SETTINGS: [(&str, &str); 2] = [
    ("enable.gapless.guarantee", "is experimental in librdkafka and makes one failed message fatal"),
    ("delivery.report.only.error", "belongs to awoke: a delivery handle needs every report"),
];

/// Whoever sets one of these has decided about idempotence, which bears only some of their values.
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

impl Connection {
    /// Makes the client and starts its report thread, which also notices when it is `idle`.
    pub(super) fn new(
        config: &ClientConfig,
        events: Arc<EventBox>,
        idle: Option<Idle>,
        patience: Duration,
    ) -> Result<Self> {
        config.refuse(&OWN_SETTINGS)?;
        let messages_max = config.effective_number("queue.buffering.max.messages")? as usize;
        let bytes_max = config.effective_number("queue.buffering.max.kbytes")? as usize * 1024;
        let timeout_ms = config.effective_number("message.timeout.ms")?;
        let mut native = config.clone();
        // The room keeps these bounds with a waiting line; librdkafka's own would refuse without one, and count a message
        // until after its report, when the next in line has been let in already.
        native.set("queue.buffering.max.messages", "0").set("queue.buffering.max.kbytes", "2147483647");
        if !DECIDES_ON_IDEMPOTENCE.iter().any(|property| config.get(property).is_some()) {
            native.set("enable.idempotence", "true");
        }
        // As Java's clients do: a key must not be in two partitions because two languages write it.
        native.set_default("partitioner", "murmur2_random");
        let is_transactional = config.get("transactional.id").is_some();
        let end_txns = Arc::new(EndTxns::default());
        let prepare = |conf| {
            // SAFETY: the configuration is valid until the client is made.
            unsafe { set_deliverer(conf, delivery_reports::on_report) };
            if is_transactional {
                // SAFETY: the client keeps the counts for as long as it lives.
                unsafe { end_txns.listen(conf) };
            }
        };
        let kind = if is_transactional { Kind::Transactional } else { Kind::Producer };
        let client =
            Client::new(kind, "producer", &native, events, is_transactional.then(|| Arc::clone(&end_txns)), prepare)?;
        let room = Arc::new(Room::new(if messages_max == 0 { usize::MAX } else { messages_max }, bytes_max));
        let is_idempotent = native.effective("enable.idempotence")? == "true" && !is_transactional;
        let reports = Reports::new(Arc::clone(&client), Arc::clone(&room), linger(config), patience, is_idempotent);
        let transactions =
            is_transactional.then(|| Transactions::new(Arc::clone(&client), end_txns, Arc::clone(&reports)));
        let thread = std::thread::Builder::new()
            .name("awoke-reports".into())
            .spawn({
                let reports = Arc::clone(&reports);
                move || reports.serve(idle)
            })
            .map_err(|error| Error::System { operation: "start the report thread", detail: error.to_string() })?;
        Ok(Self {
            topics: Topics::new(Arc::clone(&client), Arc::clone(&reports)),
            room,
            reports,
            thread: Mutex::new(Some(thread)),
            client,
            message_bytes_max: config.effective_number("message.max.bytes")? as usize,
            delivery_timeout: (timeout_ms > 0).then(|| Duration::from_millis(timeout_ms)),
            transactions,
        })
    }

    /// After this long at the latest every message has its report; `None` when the setting says never.
    pub(super) const fn delivery_timeout(&self) -> Option<Duration> {
        self.delivery_timeout
    }

    /// Sends without waiting for room; `None` when there is none. Does not block.
    pub(super) fn try_produce(&self, topic: &str, record: &Record<'_>) -> Result<Option<Arc<DeliveryHandle>>> {
        self.client.check_process()?;
        let size_bytes = record.size_bytes();
        if !self.room.try_enter(size_bytes)? {
            return Ok(None);
        }
        self.produce_inside(topic, record, size_bytes).map(Some)
    }

    /// Sends, waiting for room in the queue. Blocks the calling thread while the queue is full.
    ///
    /// # Errors
    /// [`Error::QueueFull`] when no room was there in time; what librdkafka refuses at once, too large a message before
    /// all. Nothing was sent then.
    pub(super) fn produce(&self, topic: &str, record: &Record<'_>, deadline: &Deadline) -> Result<Arc<DeliveryHandle>> {
        self.client.check_process()?;
        let size_bytes = record.size_bytes();
        self.room.enter(size_bytes, deadline)?;
        self.produce_inside(topic, record, size_bytes)
    }

    /// Sends records in order, as many as there is room for now, and adds their handles to `sent`. Does not block.
    ///
    /// # Errors
    /// As for `produce`, for the first that is refused: those before it, whose handles are in `sent`, have been sent, and none after it.
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
            let admitted = self.room.try_enter_many(run.iter().map(Record::size_bytes))?;
            if admitted > 0 {
                self.produce_together(topic, &run[..admitted], sent)?;
            }
            if admitted < run.len() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Sends everything that waits without lingering, and waits until all of it is answered; `false` when the time was up
    /// first. Blocks the calling thread.
    pub(super) fn flush(&self, timeout: Option<Duration>) -> Result<bool> {
        self.client.check_process()?;
        Ok(self.reports.flush_all(&Deadline::after(timeout)))
    }

    /// Flushes, then ends the report thread. Returns how many messages were not answered within `timeout`; their handles
    /// fail. Blocks the calling thread. Closing again does nothing.
    pub(super) fn close(&self, timeout: Option<Duration>) -> Result<usize> {
        self.client.check_process()?;
        self.room.close();
        let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() else {
            return Ok(0);
        };
        let since = Instant::now();
        let unanswered = if self.flush(timeout)? { 0 } else { self.room.occupancy().0 };
        if unanswered > 0 {
            let left = timeout.map(|timeout| timeout.saturating_sub(since.elapsed())).unwrap_or_default();
            self.purge(left.max(Duration::from_millis(100)))?;
        }
        self.reports.close();
        // The thread itself closes a connection that is idle. A panic of it has been printed; there is nothing left to save.
        if thread.thread().id() != std::thread::current().id() {
            drop(thread.join());
        }
        self.topics.clear();
        Ok(unanswered)
    }

    /// Makes a transaction's calls wait no longer, and fails what still waits to be sent. Does not block.
    pub(super) fn give_up(&self) {
        if let Some(transactions) = &self.transactions {
            transactions.give_up();
        }
        self.begin_purge();
    }

    /// Fails what still waits, on our side or on its way, so that no handle stays without an answer.
    fn purge(&self, timeout: Duration) -> Result<()> {
        self.begin_purge();
        self.flush(Some(timeout)).map(drop)
    }

    fn begin_purge(&self) {
        // RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT
        // SAFETY: the handle is alive.
        unsafe { ffi::rd_kafka_purge(self.client.handle(), 3) };
    }

    /// Where the settings name a transactional id: what transactions of this connection need.
    pub(super) const fn transactions(&self) -> Option<&Transactions> {
        self.transactions.as_ref()
    }

    /// What the producer counts about itself.
    pub(super) fn counters(&self) -> ProducerCounters {
        let (queued_messages, queued_bytes) = self.room.occupancy();
        ProducerCounters { queued_messages, queued_bytes }
    }

    /// Hands a record that has its place in the room to librdkafka.
    fn produce_inside(&self, topic: &str, record: &Record<'_>, size_bytes: usize) -> Result<Arc<DeliveryHandle>> {
        let sent = self.topics.with(topic, record.variant, |topic| topic.send(record, size_bytes));
        let sent = sent.and_then(|sent| sent.map_err(|code| self.refusal(topic, code, size_bytes)));
        if sent.is_err() {
            self.room.leave(1, size_bytes);
        }
        self.reports.count_sent(1);
        sent
    }

    /// As `produce_inside`, for records that librdkafka takes at once.
    fn produce_together(&self, topic: &str, records: &[Record<'_>], sent: &mut Vec<Arc<DeliveryHandle>>) -> Result<()> {
        let before = sent.len();
        let refused = self.topics.with(topic, records[0].variant, |topic| topic.send_many(records, sent));
        let refused = refused.inspect_err(|_| {
            self.room.leave(records.len(), records.iter().map(Record::size_bytes).sum());
        })?;
        self.reports.count_sent((sent.len() - before) as u32);
        let Some(refused) = refused else { return Ok(()) };
        self.room.leave(refused.messages, refused.bytes);
        Err(self.refusal(topic, refused.code, refused.bytes / refused.messages))
    }

    /// Whether librdkafka can be given this record among others: `rd_kafka_produce_batch` knows no headers and timestamps, goes on
    /// after a message that is too large, and (2.12.1) forgets one whose partition is not there.
    fn is_plain(&self, record: &Record<'_>) -> bool {
        record.partition.is_none()
            && record.timestamp_ms.is_none()
            && record.headers.is_empty()
            && record.size_bytes() + OVERHEAD_BYTES_MAX <= self.message_bytes_max
    }

    fn refusal(&self, topic: &str, code: Code, size_bytes: usize) -> Error {
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
            // A producer that nobody closed: what was not sent by now is given up, and its handles say so.
            drop(self.close(Some(Duration::ZERO)));
        }
    }
}

/// How long messages wait for others.
fn linger(config: &ClientConfig) -> Duration {
    let set = config.get("linger.ms").or_else(|| config.get("queue.buffering.max.ms"));
    let linger_ms = set.and_then(|text| text.trim().parse::<f64>().ok()).unwrap_or(DEFAULT_LINGER_MS);
    Duration::try_from_secs_f64(linger_ms / 1_000.0).unwrap_or_default()
}

/// librdkafka's.
const DEFAULT_LINGER_MS: f64 = 5.0;
