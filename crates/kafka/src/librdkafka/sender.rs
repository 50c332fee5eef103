//! Sends records to a topic, and hands each delivery report to what its sender keeps for the record.
//!
//! librdkafka keeps one reference to it with the record, and its delivery callback gives that reference back.

use std::any::TypeId;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::sync::Arc;

use super::client::note_let_in;
use super::{Client, Code, Delivery, Record, Refused, Reported, Variant, c_string, ffi};
use crate::{Error, Result};

/// librdkafka's `RD_KAFKA_PARTITION_UA`: the partitioner chooses.
const ANY_PARTITION: i32 = -1;

/// A topic to send to, with an `R` for each message. librdkafka looks the partitioner and the partitions up once.
pub struct Topic<R> {
    handle: *mut ffi::rd_kafka_topic_t,
    client: Arc<Client>,
    reported: PhantomData<fn(Arc<R>)>,
}

// SAFETY: librdkafka's topic handles may be used from any thread.
unsafe impl<R: Reported> Send for Topic<R> {}
// SAFETY: as above.
unsafe impl<R: Reported> Sync for Topic<R> {}

impl<R: Reported> Topic<R> {
    /// Opens a topic, with other settings than the client's if a variant is given.
    ///
    /// # Errors
    /// [`Error::Invalid`]: it is no name of a topic.
    ///
    /// # Panics
    /// The client was not made with [`crate::ClientOptions::with_reports_to`] this type.
    pub fn open(client: &Arc<Client>, name: &str, variant: Option<&Variant>) -> Result<Self> {
        // The delivery callback takes the reference that is sent with a message for one to this type.
        assert_eq!(client.reported(), Some(TypeId::of::<R>()), "the client reports to another type");
        let c_name = c_string("a topic", name)?;
        let mut conf = std::ptr::null_mut();
        if let Some(variant) = variant {
            // SAFETY: the handle is alive; the copy is ours until `rd_kafka_topic_new` takes it.
            conf = unsafe { ffi::rd_kafka_default_topic_conf_dup(client.handle()) };
            // SAFETY: the copy is valid.
            unsafe { variant.set_on_topic(conf)? }; // Checked before: it cannot fail here.
        }
        // SAFETY: the handle is alive; a null configuration takes the client's own, any other one is librdkafka's from
        // here.
        let handle = unsafe { ffi::rd_kafka_topic_new(client.handle(), c_name.as_ptr(), conf) };
        if handle.is_null() {
            // SAFETY: reads the calling thread's last error.
            let reason = Code::of(unsafe { ffi::rd_kafka_last_error() }).description();
            return Err(Error::Invalid { reason: format!("{name:?} cannot be produced to: {reason}") });
        }
        Ok(Self { handle, client: Arc::clone(client), reported: PhantomData })
    }

    pub(super) const fn client(&self) -> &Arc<Client> {
        &self.client
    }

    pub(super) const fn handle(&self) -> *mut ffi::rd_kafka_topic_t {
        self.handle
    }

    /// Sends a record, which is copied; `reported` gets its report. Does not block.
    ///
    /// # Errors
    /// The code with which the client refused it: then there is no report.
    pub fn send(&self, record: &Record<'_>, reported: Arc<R>) -> std::result::Result<(), Code> {
        let opaque = opaque_of(reported);
        // SAFETY: the topic handle is alive, and its client; the opaque is what `deliver_to::<R>` expects, the client's
        // callback.
        let code = unsafe { hand_over(self.client.handle(), self.handle, record, opaque) };
        if code == Code::NONE {
            return Ok(());
        }
        // SAFETY: librdkafka refused the message: there will be no report.
        unsafe { forget_report::<R>(opaque) };
        Err(code)
    }

    /// Sends records in one call, which are copied. Each of `reported` gets the report of the record at its index.
    /// Returns the refused records, which have no report. Does not block.
    ///
    /// The records have no partition, headers or timestamp of their own, and none is too large: so if one is refused,
    /// those after it are, too.
    pub fn send_many(&self, records: &[Record<'_>], reported: &[Arc<R>]) -> Option<Refused> {
        let with_reported = records.iter().zip(reported);
        let mut messages: Vec<_> =
            with_reported.map(|(record, reported)| message_of(record, opaque_of(Arc::clone(reported)))).collect();
        let (partition, flags) = (ANY_PARTITION, ffi::RD_KAFKA_MSG_F_COPY);
        // SAFETY: all arguments are alive until the call returns; librdkafka takes the opaques of the messages that it
        // accepts.
        let accepted = unsafe {
            ffi::rd_kafka_produce_batch(self.handle, partition, flags, messages.as_mut_ptr(), messages.len() as i32)
        };
        if accepted as usize == messages.len() {
            return None;
        }
        let mut refused = Refused { first: messages.len(), code: Code::NONE, messages: 0, bytes: 0 };
        for (index, message) in messages.iter().enumerate() {
            // SAFETY: librdkafka has written a code to each message, which may be one that our bindings do not know.
            let code = Code(unsafe { (&raw const message.err).cast::<i32>().read() });
            if code != Code::NONE {
                if refused.messages == 0 {
                    (refused.first, refused.code) = (index, code);
                }
                refused.messages += 1;
                refused.bytes += records[index].size_bytes();
                // SAFETY: librdkafka refused the message: there will be no report.
                unsafe { forget_report::<R>(message._private) };
            }
        }
        Some(refused)
    }
}

impl<R> Drop for Topic<R> {
    fn drop(&mut self) {
        if self.client.check_process().is_ok() {
            // SAFETY: the handle is ours and its client still alive.
            unsafe { ffi::rd_kafka_topic_destroy(self.handle) };
        }
    }
}

/// Returns the reference that librdkafka keeps until it reports.
fn opaque_of<R: Reported>(reported: Arc<R>) -> *mut c_void {
    Arc::into_raw(reported).cast_mut().cast()
}

/// Drops the reference that librdkafka was to keep.
///
/// # Safety
/// The opaque is of `opaque_of::<R>`, and librdkafka has not kept it.
unsafe fn forget_report<R: Reported>(opaque: *mut c_void) {
    // SAFETY: the caller says that the reference is ours.
    drop(unsafe { Arc::from_raw(opaque.cast::<R>().cast_const()) });
}

/// librdkafka's delivery callback.
///
/// # Safety
/// librdkafka calls it for a client all of whose messages were sent by a `Topic<R>`.
pub(crate) unsafe extern "C" fn deliver_to<R: Reported>(
    rk: *mut ffi::rd_kafka_t,
    message: *const ffi::rd_kafka_message_t,
    opaque: *mut c_void,
) {
    // SAFETY: the message is valid, and its private pointer is the reference that `Topic<R>` gave away, once.
    let (reported, report) = unsafe {
        let reported = Arc::from_raw((*message)._private.cast::<R>().cast_const());
        let code = Code((&raw const (*message).err).cast::<i32>().read());
        let report = if code == Code::NONE {
            note_let_in(opaque);
            let mut kind = ffi::rd_kafka_timestamp_type_t::RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
            Ok(Delivery {
                partition: (*message).partition,
                // librdkafka has a number of its own for none.
                offset: (*message).offset.max(-1),
                // With `acks=0`, librdkafka knows no more than that it sent the message.
                has_answer: ffi::rd_kafka_message_status(message)
                    == ffi::rd_kafka_msg_status_t::RD_KAFKA_MSG_STATUS_PERSISTED,
                timestamp_ms: ffi::rd_kafka_message_timestamp(message, &raw mut kind),
            })
        } else {
            let may_be_there =
                ffi::rd_kafka_message_status(message) != ffi::rd_kafka_msg_status_t::RD_KAFKA_MSG_STATUS_NOT_PERSISTED;
            Err(reason_of(code, may_be_there))
        };
        (reported, report)
    };
    if reported.report(report) {
        // SAFETY: this is a callback of the handle's.
        unsafe { ffi::rd_kafka_yield(rk) };
    }
}

/// Why a record was refused.
///
/// A record may wait for a partition that is taken out of the topic's list: the topic was deleted, or may not be read
/// any more. librdkafka reports the others that wait as of an unknown partition, and this one as if the client were
/// closed.
///
/// One that was sent, and was dropped while it waited to be sent again, has the code of those that are in flight: the
/// broker may have written it.
const fn reason_of(code: Code, may_be_there: bool) -> Code {
    match code {
        Code::DESTROYED => Code::UNKNOWN_PARTITION,
        Code::PURGED if may_be_there => Code::PURGED_IN_FLIGHT,
        code => code,
    }
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
/// Both handles are alive; `opaque` is what the delivery callback expects.
unsafe fn hand_over(
    rk: *mut ffi::rd_kafka_t,
    topic: *mut ffi::rd_kafka_topic_t,
    record: &Record<'_>,
    opaque: *mut c_void,
) -> Code {
    let (value, value_size) = parts(record.value);
    let (key, key_size) = parts(record.key);
    let partition = record.partition.unwrap_or(ANY_PARTITION);
    if record.headers.is_empty() && record.stamp_ms().is_none() {
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
                ffi::rd_kafka_vu_s__bindgen_ty_1 { i64_: record.stamp_ms().unwrap_or(0) },
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

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::Instant;

    use super::*;
    use crate::events::event_box;
    use crate::{ClientConfig, ClientOptions, Kind};

    #[derive(Default)]
    struct Kept(Mutex<Option<Code>>);

    impl Reported for Kept {
        fn report(self: Arc<Self>, report: std::result::Result<Delivery, Code>) -> bool {
            *self.0.lock().expect("one thread") = report.err();
            false
        }
    }

    struct Other;

    impl Reported for Other {
        fn report(self: Arc<Self>, _report: std::result::Result<Delivery, Code>) -> bool {
            false
        }
    }

    /// Makes a producer without a broker, whose queue takes one message.
    fn producer() -> Arc<Client> {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", "127.0.0.1:1").set("log_level", "0").set("message.max.bytes", "1000");
        config.set("queue.buffering.max.messages", "1");
        let options = ClientOptions::default().with_reports_to::<Kept>();
        Client::new(Kind::Producer, "test", &config, event_box().expect("a box"), options).expect("a client")
    }

    fn record(value: &[u8]) -> Record<'_> {
        Record { value: Some(value), ..Record::default() }
    }

    #[test]
    fn a_refused_record_leaves_no_reference_behind() {
        let topic = Topic::<Kept>::open(&producer(), "orders", None).expect("a name");
        let kept = Arc::<Kept>::default();
        assert_eq!(topic.send(&record(&[0; 2_000]), Arc::clone(&kept)), Err(Code::MESSAGE_TOO_LARGE));
        let headers = [("name", Some(&b"value"[..]))];
        let rich = Record { headers: &headers, ..record(&[0; 2_000]) };
        assert_eq!(topic.send(&rich, Arc::clone(&kept)), Err(Code::MESSAGE_TOO_LARGE));
        assert_eq!(Arc::strong_count(&kept), 1);
    }

    #[test]
    fn the_clock_goes_on_after_each_send() {
        let topic = Topic::<Kept>::open(&producer(), "orders", None).expect("a name");
        let goes_on = || {
            let before = Instant::now();
            (0..1_000_000).any(|_| Instant::now() > before)
        };
        for (value, is_taken) in [(&[0; 2_000][..], false), (b"one", true), (b"refused: the queue is full", false)] {
            assert_eq!(topic.send(&record(value), Arc::default()).is_ok(), is_taken);
            assert!(goes_on());
        }
        topic.send_many(&[record(b"one"), record(b"two")], &[Arc::default(), Arc::default()]);
        assert!(goes_on());
    }

    #[test]
    fn a_record_whose_partition_is_taken_away_has_an_unknown_partition() {
        assert_eq!(reason_of(Code::DESTROYED, false), Code::UNKNOWN_PARTITION);
        assert_eq!(reason_of(Code::TRANSPORT, false), Code::TRANSPORT);
    }

    #[test]
    fn a_record_that_was_sent_and_is_dropped_counts_as_in_flight() {
        assert_eq!(reason_of(Code::PURGED, true), Code::PURGED_IN_FLIGHT);
        assert_eq!(reason_of(Code::PURGED, false), Code::PURGED);
    }

    #[test]
    fn of_several_records_the_accepted_ones_are_reported() {
        let client = producer();
        let topic = Topic::<Kept>::open(&client, "orders", None).expect("a name");
        let kept = [Arc::<Kept>::default(), Arc::default(), Arc::default()];
        let refused = topic.send_many(&[record(b"one"), record(b"two"), record(b"three")], &kept).expect("full");
        assert_eq!((refused.first, refused.messages, refused.bytes), (1, 2, 8));
        assert_eq!(kept.each_ref().map(Arc::strong_count), [2, 1, 1]);
        client.purge_all();
        // An error of the client ends a flush early.
        assert!((0..300).any(|_| client.flush(100) == Code::NONE));
        assert_eq!(kept.each_ref().map(Arc::strong_count), [1, 1, 1]);
        assert_eq!(*kept[0].0.lock().expect("one thread"), Some(Code::PURGED));
    }

    #[test]
    #[should_panic(expected = "the client reports to another type")]
    fn a_topic_of_another_type_is_refused() {
        let _ = Topic::<Other>::open(&producer(), "orders", None);
    }
}
