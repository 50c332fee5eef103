//! The topics that a connection sends to, and how records are handed to librdkafka.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use super::delivery_handle::Destination;
use super::{DeliveryHandle, Record, Reports, Variant};
use crate::kafka::{Client, Code, c_string, ffi};
use crate::{Error, Result};

/// librdkafka's `RD_KAFKA_PARTITION_UA`: the partitioner chooses.
const ANY_PARTITION: i32 = -1;

/// The topics that a connection sends to; each is made on first use.
pub(super) struct Topics {
    known: RwLock<HashMap<String, Topic>>,
    client: Arc<Client>,
    reports: Arc<Reports>,
}

impl Topics {
    pub(super) fn new(client: Arc<Client>, reports: Arc<Reports>) -> Self {
        Self { known: RwLock::default(), client, reports }
    }

    /// Calls `send` with the topic.
    ///
    /// # Errors
    /// [`Error::Config`]: it was sent to with other settings before. [`Error::Invalid`]: it is no name of a topic.
    pub(super) fn with<T>(&self, name: &str, variant: Option<&Variant>, send: impl FnOnce(&Topic) -> T) -> Result<T> {
        let id = variant.map_or(0, |variant| variant.id);
        {
            let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(topic) = known.get(name) {
                return topic.of_variant(id).map(send);
            }
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if !known.contains_key(name) {
            known.insert(name.to_owned(), self.make(name, variant)?);
        }
        known[name].of_variant(id).map(send)
    }

    /// Frees all topics.
    pub(super) fn clear(&self) {
        self.known.write().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn make(&self, name: &str, variant: Option<&Variant>) -> Result<Topic> {
        let c_name = c_string("a topic", name)?;
        let mut conf = std::ptr::null_mut();
        if let Some(variant) = variant {
            // SAFETY: the handle is alive; the copy is ours until `rd_kafka_topic_new` takes it.
            conf = unsafe { ffi::rd_kafka_default_topic_conf_dup(self.client.handle()) };
            // SAFETY: the copy is valid.
            unsafe { variant.properties.set_on_topic(conf)? }; // Checked before: it cannot fail here.
        }
        // SAFETY: the handle is alive; a null configuration takes the client's own, any other one is librdkafka's from
        // here.
        let handle = unsafe { ffi::rd_kafka_topic_new(self.client.handle(), c_name.as_ptr(), conf) };
        if handle.is_null() {
            // SAFETY: reads the calling thread's last error.
            let reason = Code::of(unsafe { ffi::rd_kafka_last_error() }).description();
            return Err(Error::Invalid { reason: format!("{name:?} cannot be produced to: {reason}") });
        }
        let destination = Arc::new(Destination {
            topic: name.into(),
            reports: Arc::downgrade(&self.reports),
            refused: Mutex::default(),
        });
        let id = variant.map_or(0, |variant| variant.id);
        Ok(Topic { variant: id, destination, handle, client: Arc::clone(&self.client) })
    }
}

/// A topic handle: librdkafka looks the partitioner and the partitions up once.
pub(super) struct Topic {
    /// The variant of its settings; 0 for the producer's own.
    variant: u32,
    destination: Arc<Destination>,
    handle: *mut ffi::rd_kafka_topic_t,
    client: Arc<Client>,
}

/// Records that librdkafka did not take.
pub(super) struct Refused {
    /// Why it did not take the first of them.
    pub(super) code: Code,
    /// The number of them.
    pub(super) messages: usize,
    /// Their size together.
    pub(super) bytes: usize,
}

// SAFETY: librdkafka's topic handles may be used from any thread.
unsafe impl Send for Topic {}
// SAFETY: as above.
unsafe impl Sync for Topic {}

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

    /// Gives a record to librdkafka, which copies it.
    pub(super) fn send(
        &self,
        record: &Record<'_>,
        size_bytes: usize,
    ) -> std::result::Result<Arc<DeliveryHandle>, Code> {
        let (handle, opaque) = self.expect_report(size_bytes);
        // SAFETY: the topic handle is alive, and its client; the opaque is what `delivery_reports::on_report` expects.
        let code = unsafe { hand_over(self.client.handle(), self.handle, record, opaque) };
        if code == Code::NONE {
            return Ok(handle);
        }
        // SAFETY: librdkafka refused the message: there will be no report.
        unsafe { forget_report(opaque) };
        Err(code)
    }

    /// Gives records to librdkafka in one call, which copies them. Returns those that it refused. They have no
    /// partition, headers or timestamp of their own, and none is too large: so if one is refused, those after it are,
    /// too.
    pub(super) fn send_many(&self, records: &[Record<'_>], sent: &mut Vec<Arc<DeliveryHandle>>) -> Option<Refused> {
        let before = sent.len();
        let mut messages: Vec<_> = records
            .iter()
            .map(|record| {
                let (handle, opaque) = self.expect_report(record.size_bytes());
                sent.push(handle);
                message_of(record, opaque)
            })
            .collect();
        let (partition, flags) = (ANY_PARTITION, ffi::RD_KAFKA_MSG_F_COPY);
        // SAFETY: all arguments are alive until the call returns; librdkafka takes the opaques of the messages that it
        // accepts.
        let accepted = unsafe {
            ffi::rd_kafka_produce_batch(self.handle, partition, flags, messages.as_mut_ptr(), messages.len() as i32)
        };
        if accepted as usize == messages.len() {
            return None;
        }
        let mut refused = Refused { code: Code::NONE, messages: 0, bytes: 0 };
        for (index, message) in messages.iter().enumerate() {
            // SAFETY: librdkafka has written a code to each message, which may be one that our bindings do not know.
            let code = Code(unsafe { (&raw const message.err).cast::<i32>().read() });
            if code != Code::NONE {
                if refused.messages == 0 {
                    refused.code = code;
                    sent.truncate(before + index);
                }
                refused.messages += 1;
                refused.bytes += records[index].size_bytes();
                // SAFETY: librdkafka refused the message: there will be no report.
                unsafe { forget_report(message._private) };
            }
        }
        Some(refused)
    }

    /// Makes a handle, and the reference to it that librdkafka keeps until it reports.
    fn expect_report(&self, size_bytes: usize) -> (Arc<DeliveryHandle>, *mut c_void) {
        let destination = Arc::clone(&self.destination);
        let handle = Arc::new(DeliveryHandle::new(destination, size_bytes, self.client.birthplace()));
        let opaque = Arc::into_raw(Arc::clone(&handle));
        (handle, opaque.cast_mut().cast())
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

/// Drops the reference to a handle that librdkafka was to keep.
///
/// # Safety
/// The opaque is of `expect_report`, and librdkafka has not kept it.
unsafe fn forget_report(opaque: *mut c_void) {
    // SAFETY: the caller says that the reference is ours.
    drop(unsafe { Arc::from_raw(opaque.cast::<DeliveryHandle>().cast_const()) });
}

/// A record as one of `rd_kafka_produce_batch`.
fn message_of(record: &Record<'_>, opaque: *mut c_void) -> ffi::rd_kafka_message_t {
    let (payload, len) = parts(record.value);
    let (key, key_len) = parts(record.key);
    // SAFETY: zeros are valid for each of its fields, and mean none.
    let mut message: ffi::rd_kafka_message_t = unsafe { std::mem::zeroed() };
    message.payload = payload.cast_mut();
    message.len = len;
    message.key = key.cast_mut();
    message.key_len = key_len;
    message._private = opaque;
    message
}

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
    let partition = record.partition.unwrap_or(ANY_PARTITION);
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

/// Gives a record with headers or a timestamp to librdkafka, as `hand_over`.
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
                ffi::rd_kafka_vu_s__bindgen_ty_1 { i32_: record.partition.unwrap_or(ANY_PARTITION) },
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

/// Returns pointer and size; null for `None`, and not null for an empty slice: that distinguishes a tombstone for
/// librdkafka.
fn parts(bytes: Option<&[u8]>) -> (*const c_void, usize) {
    bytes.map_or((std::ptr::null(), 0), |bytes| (bytes.as_ptr().cast(), bytes.len()))
}
