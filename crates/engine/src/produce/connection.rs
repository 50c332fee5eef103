//! One librdkafka producer with its room, its topics and its report thread.
//!
//! A record goes: `Room::try_enter` (or waits in line) → librdkafka's queue, with one reference to its handle as the
//! opaque → the broker → `delivery_reports`, which completes the handle and gives the room back.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rdkafka_sys as ffi;

use super::delivery_handle::Destination;
use super::transaction::Transactions;
use super::{DeliveryHandle, Idle, Reports, Room, delivery_reports};
use crate::clock::Deadline;
use crate::events::EventBox;
use crate::kafka::{Client, ClientConfig, Code, EndTxns, Kind, c_string, set_deliverer};
use crate::{Error, Result};

/// A message to be sent. Everything is copied before `produce` returns.
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
    /// In order; a name may come more than once, a value may be missing.
    pub headers: &'a [(&'a str, Option<&'a [u8]>)],
    /// Under other settings than the producer's.
    pub variant: Option<&'a Variant>,
}

/// Settings of topics that differ from the producer's: `acks`, compression, time-outs. librdkafka keeps one set of them for a
/// topic and a connection: whoever sends to a topic first decides which.
#[derive(Debug)]
pub struct Variant {
    id: u32,
    properties: ClientConfig,
}

impl Variant {
    /// Judges the properties as librdkafka does.
    ///
    /// # Errors
    /// [`Error::Config`] for one that is no topic's, or whose value librdkafka does not know.
    pub fn new(properties: ClientConfig) -> Result<Self> {
        static IDS: AtomicU32 = AtomicU32::new(1);
        // SAFETY: takes nothing; what is returned is ours.
        let conf = unsafe { ffi::rd_kafka_topic_conf_new() };
        let judged = properties.set_on_topic(conf);
        // SAFETY: it is ours.
        unsafe { ffi::rd_kafka_topic_conf_destroy(conf) };
        judged.map(|()| Self { id: IDS.fetch_add(1, Ordering::Relaxed), properties })
    }
}

/// A message to be sent later.
#[derive(Clone, Debug, Default)]
pub struct OwnedRecord {
    /// Where to.
    pub topic: String,
    /// As of [`Record`].
    pub value: Option<Vec<u8>>,
    /// As of [`Record`].
    pub key: Option<Vec<u8>>,
    /// As of [`Record`].
    pub partition: Option<i32>,
    /// As of [`Record`].
    pub timestamp_ms: Option<i64>,
    /// As of [`Record`].
    pub headers: Vec<(String, Option<Vec<u8>>)>,
}

impl OwnedRecord {
    /// Calls `send` with the topic and a view of the record.
    pub(crate) fn with<T>(&self, send: impl FnOnce(&str, &Record<'_>) -> T) -> T {
        let headers: Vec<_> = self.headers.iter().map(|(name, value)| (&**name, value.as_deref())).collect();
        let (value, key) = (self.value.as_deref(), self.key.as_deref());
        let (partition, timestamp_ms) = (self.partition, self.timestamp_ms);
        send(&self.topic, &Record { value, key, partition, timestamp_ms, headers: &headers, variant: None })
    }
}

impl Record<'_> {
    fn size_bytes(&self) -> usize {
        let headers: usize = self.headers.iter().map(|(name, value)| name.len() + value.map_or(0, <[u8]>::len)).sum();
        self.value.map_or(0, <[u8]>::len) + self.key.map_or(0, <[u8]>::len) + headers
    }
}

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
    topics: RwLock<HashMap<String, Topic>>,
    room: Arc<Room>,
    reports: Arc<Reports>,
    thread: Mutex<Option<JoinHandle<()>>>,
    client: Arc<Client>,
    delivery_timeout: Option<Duration>,
    /// Where the settings name a transactional id.
    transactions: Option<Transactions>,
}

/// A topic handle: librdkafka looks the partitioner and the partitions up once.
struct Topic {
    /// Whose settings it has; 0 for the producer's.
    variant: u32,
    destination: Arc<Destination>,
    handle: *mut ffi::rd_kafka_topic_t,
    client: Arc<Client>,
}

// SAFETY: librdkafka's topic handles may be used from any thread.
unsafe impl Send for Topic {}
// SAFETY: as above.
unsafe impl Sync for Topic {}

/// Who has sent so many records serves the reports that came meanwhile: the messages' memory is then freed by the thread that
/// asked for it, instead of two threads waiting for each other at the allocator's lock.
const SERVED_EVERY: u32 = 256;

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
            set_deliverer(conf, delivery_reports::on_report);
            if is_transactional {
                // SAFETY: the client keeps the counts for as long as it lives.
                unsafe { end_txns.listen(conf) };
            }
        };
        let kind = if is_transactional { Kind::Transactional } else { Kind::Producer };
        let client = Client::new(kind, "producer", &native, events, Some(Arc::clone(&end_txns)), prepare)?;
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
            topics: RwLock::default(),
            room,
            reports,
            thread: Mutex::new(Some(thread)),
            client,
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
        self.topics.write().unwrap_or_else(PoisonError::into_inner).clear();
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
        let sent = self.with_topic(topic, record.variant, |topic| {
            let handle =
                Arc::new(DeliveryHandle::new(Arc::clone(&topic.destination), size_bytes, self.client.birthplace()));
            let opaque = Arc::into_raw(Arc::clone(&handle));
            // SAFETY: the topic handle is alive under the read lock; librdkafka copies the record.
            let code = unsafe { hand_over(self.client.handle(), topic.handle, record, opaque.cast_mut().cast()) };
            if code != Code::NONE {
                // SAFETY: librdkafka refused the message, so the reference is ours again.
                drop(unsafe { Arc::from_raw(opaque) });
                return Err(self.refusal(&topic.destination.topic, code, size_bytes));
            }
            Ok(handle)
        });
        let sent = sent.flatten();
        if sent.is_err() {
            self.room.leave(1, size_bytes);
        }
        if self.reports.count_sent().is_multiple_of(SERVED_EVERY) {
            self.reports.serve_once(0);
        }
        sent
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

    /// Calls `send` with the topic's handle, which is made on first use.
    fn with_topic<T>(&self, topic: &str, variant: Option<&Variant>, send: impl FnOnce(&Topic) -> T) -> Result<T> {
        let id = variant.map_or(0, |variant| variant.id);
        {
            let topics = self.topics.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(found) = topics.get(topic) {
                return found.of_variant(id).map(send);
            }
        }
        let mut topics = self.topics.write().unwrap_or_else(PoisonError::into_inner);
        if !topics.contains_key(topic) {
            topics.insert(topic.to_owned(), self.make_topic(topic, variant)?);
        }
        topics[topic].of_variant(id).map(send)
    }

    fn make_topic(&self, topic: &str, variant: Option<&Variant>) -> Result<Topic> {
        let name = c_string("a topic", topic)?;
        let mut conf = std::ptr::null_mut();
        if let Some(variant) = variant {
            // SAFETY: the handle is alive; the copy is ours until `rd_kafka_topic_new` takes it.
            conf = unsafe { ffi::rd_kafka_default_topic_conf_dup(self.client.handle()) };
            variant.properties.set_on_topic(conf)?; // Judged before: it can't fail here.
        }
        // SAFETY: the handle is alive; a null configuration takes the client's own, any other one is librdkafka's from here.
        let handle = unsafe { ffi::rd_kafka_topic_new(self.client.handle(), name.as_ptr(), conf) };
        if handle.is_null() {
            // SAFETY: reads the calling thread's last error.
            let reason = Code::of(unsafe { ffi::rd_kafka_last_error() }).description();
            return Err(Error::Invalid { reason: format!("{topic:?} can't be produced to: {reason}") });
        }
        let destination = Arc::new(Destination { topic: topic.into(), reports: Arc::downgrade(&self.reports) });
        let id = variant.map_or(0, |variant| variant.id);
        Ok(Topic { variant: id, destination, handle, client: Arc::clone(&self.client) })
    }
}

impl Topic {
    fn of_variant(&self, id: u32) -> Result<&Self> {
        if self.variant == id {
            return Ok(self);
        }
        let reason = format!(
            "topic {:?} was sent to under other settings before: librdkafka keeps one set for a topic and a connection",
            self.destination.topic
        );
        Err(Error::Config { property: "variant".into(), reason })
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

impl Drop for Topic {
    fn drop(&mut self) {
        if self.client.check_process().is_ok() {
            // SAFETY: the handle is ours and its client still alive.
            unsafe { ffi::rd_kafka_topic_destroy(self.handle) };
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

/// Gives a record to librdkafka, which copies it.
///
/// # Safety
/// Both handles are alive; `opaque` is what `delivery_reports::on_report` expects.
unsafe fn hand_over(
    rk: *mut ffi::rd_kafka_t,
    topic: *mut ffi::rd_kafka_topic_t,
    record: &Record<'_>,
    opaque: *mut c_void,
) -> Code {
    let (value, value_size) = parts(record.value);
    let (key, key_size) = parts(record.key);
    let partition = record.partition.unwrap_or(-1);
    if record.headers.is_empty() && record.timestamp_ms.is_none() {
        // SAFETY: value and key outlive the call, which copies them.
        let result = unsafe {
            let flags = ffi::RD_KAFKA_MSG_F_COPY;
            ffi::rd_kafka_produce(topic, partition, flags, value.cast_mut(), value_size, key, key_size, opaque)
        };
        // SAFETY: reads the calling thread's last error.
        return if result == 0 { Code::NONE } else { Code::of(unsafe { ffi::rd_kafka_last_error() }) };
    }
    // SAFETY: every pointer outlives the call, which copies all but the headers; those it owns when it succeeds.
    unsafe { hand_over_rich(rk, topic, record, opaque) }
}

/// As `hand_over`, with headers or a timestamp.
///
/// # Safety
/// As for `hand_over`.
unsafe fn hand_over_rich(
    rk: *mut ffi::rd_kafka_t,
    topic: *mut ffi::rd_kafka_topic_t,
    record: &Record<'_>,
    opaque: *mut c_void,
) -> Code {
    use ffi::rd_kafka_vtype_t as vtype;
    let (value, value_size) = parts(record.value);
    let (key, key_size) = parts(record.key);
    let memory = |ptr: *const c_void, size| ffi::rd_kafka_vu_s__bindgen_ty_1 {
        mem: ffi::rd_kafka_vu_s__bindgen_ty_1__bindgen_ty_1 { ptr: ptr.cast_mut(), size },
    };
    // SAFETY: every pointer outlives the call, which copies all but the headers; those it owns when it succeeds.
    unsafe {
        let headers = ffi::rd_kafka_headers_new(record.headers.len());
        for (name, value) in record.headers {
            let (value, size) = parts(*value);
            ffi::rd_kafka_header_add(headers, name.as_ptr().cast(), name.len() as isize, value, size as isize);
        }
        let arguments = [
            argument(vtype::RD_KAFKA_VTYPE_RKT, ffi::rd_kafka_vu_s__bindgen_ty_1 { rkt: topic }),
            argument(
                vtype::RD_KAFKA_VTYPE_PARTITION,
                ffi::rd_kafka_vu_s__bindgen_ty_1 { i32_: record.partition.unwrap_or(-1) },
            ),
            argument(vtype::RD_KAFKA_VTYPE_MSGFLAGS, ffi::rd_kafka_vu_s__bindgen_ty_1 { i: ffi::RD_KAFKA_MSG_F_COPY }),
            argument(vtype::RD_KAFKA_VTYPE_VALUE, memory(value, value_size)),
            argument(vtype::RD_KAFKA_VTYPE_KEY, memory(key, key_size)),
            argument(
                vtype::RD_KAFKA_VTYPE_TIMESTAMP,
                ffi::rd_kafka_vu_s__bindgen_ty_1 { i64_: record.timestamp_ms.unwrap_or(0) },
            ),
            argument(vtype::RD_KAFKA_VTYPE_HEADERS, ffi::rd_kafka_vu_s__bindgen_ty_1 { headers }),
            argument(vtype::RD_KAFKA_VTYPE_OPAQUE, ffi::rd_kafka_vu_s__bindgen_ty_1 { ptr: opaque }),
        ];
        let error = ffi::rd_kafka_produceva(rk, arguments.as_ptr(), arguments.len());
        if error.is_null() {
            return Code::NONE;
        }
        let code = Code::of(ffi::rd_kafka_error_code(error));
        ffi::rd_kafka_error_destroy(error);
        ffi::rd_kafka_headers_destroy(headers);
        code
    }
}

const fn argument(vtype: ffi::rd_kafka_vtype_t, u: ffi::rd_kafka_vu_s__bindgen_ty_1) -> ffi::rd_kafka_vu_t {
    ffi::rd_kafka_vu_t { vtype, u }
}

/// Pointer and size; null for `None`, and not null for an empty slice: librdkafka tells a tombstone by it.
fn parts(bytes: Option<&[u8]>) -> (*const c_void, usize) {
    bytes.map_or((std::ptr::null(), 0), |bytes| (bytes.as_ptr().cast(), bytes.len()))
}
