//! The thread that serves delivery reports: librdkafka's delivery callback runs on it, or on a thread that sends or flushes.
//!
//! 1. Wait until librdkafka has reports (or errors, or statistics). When somebody waits for a message, flush meanwhile: a
//!    flush makes librdkafka send without lingering, and ends as soon as the last awaited report has come.
//! 2. For each report complete its handle, which wakes whoever waits for it.
//! 3. Give the room of the whole batch back at once.
//! 4. End when the producer is closed.

use std::cell::Cell;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rdkafka_sys as ffi;

use super::{Delivery, DeliveryHandle, Room};
use crate::kafka::{Client, Code, Queue};

thread_local! {
    /// Messages and bytes reported during the poll that is under way on this thread.
    static REPORTED: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

/// A flush for somebody who waits lasts so long at most: after that nothing lingers any more, the brokers are to blame.
const FLUSH_MS: i32 = 100;

/// What report thread, senders and handles share.
pub struct Reports {
    client: Arc<Client>,
    queue: Queue,
    room: Arc<Room>,
    /// Messages whose reports somebody waits for.
    awaited: AtomicUsize,
    /// Somebody has begun to wait since the last flush.
    is_hurried: AtomicBool,
    is_closing: AtomicBool,
    /// Whether messages linger at all; where they don't, nobody need hurry them.
    lingers: bool,
}

impl Reports {
    pub(super) fn new(client: Arc<Client>, room: Arc<Room>, lingers: bool) -> Self {
        let queue = Queue::main(&client);
        Self {
            client,
            queue,
            room,
            awaited: AtomicUsize::new(0),
            is_hurried: AtomicBool::new(false),
            is_closing: AtomicBool::new(false),
            lingers,
        }
    }

    /// Somebody waits for one more message.
    pub(super) fn expect_one(&self) {
        self.awaited.fetch_add(1, Ordering::AcqRel);
        if self.lingers && !self.is_hurried.swap(true, Ordering::AcqRel) {
            self.queue.interrupt();
        }
    }

    /// Nobody waits for that message any more; whether nobody waits for any.
    pub(super) fn settle_one(&self) -> bool {
        self.awaited.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Serves reports until `close`.
    pub(super) fn serve(&self) {
        while !self.is_closing.load(Ordering::Acquire) {
            if self.is_hurried.swap(false, Ordering::AcqRel) && self.awaited.load(Ordering::Acquire) > 0 {
                self.flush(FLUSH_MS);
            } else {
                self.serve_once(-1);
            }
        }
        self.serve_once(0);
    }

    /// Waits up to `timeout_ms` (-1 for ever) for the first report, and serves all that are there.
    pub(super) fn serve_once(&self, timeout_ms: i32) {
        // SAFETY: the handle is alive; the callback below runs inside this call.
        unsafe { ffi::rd_kafka_poll(self.client.handle(), timeout_ms) };
        give_room_back(&self.room);
    }

    /// Has everything sent without lingering, and serves reports meanwhile.
    pub(super) fn flush(&self, timeout_ms: i32) -> Code {
        // SAFETY: the handle is alive. Any thread may serve reports: they complete handles, whoever serves them.
        let code = Code::of(unsafe { ffi::rd_kafka_flush(self.client.handle(), timeout_ms) });
        give_room_back(&self.room);
        code
    }

    /// Ends `serve`.
    pub(super) fn close(&self) {
        self.is_closing.store(true, Ordering::Release);
        self.queue.interrupt();
    }
}

/// Gives back the room of the messages that were reported on this thread.
fn give_room_back(room: &Room) {
    let (messages, bytes) = REPORTED.take();
    if messages > 0 {
        room.leave(messages, bytes);
    }
}

/// librdkafka's delivery callback.
pub(super) unsafe extern "C" fn on_report(
    rk: *mut ffi::rd_kafka_t,
    message: *const ffi::rd_kafka_message_t,
    _opaque: *mut c_void,
) {
    // SAFETY: librdkafka calls with a valid message, whose private pointer is the handle that `produce` gave away, once.
    let (handle, report) = unsafe {
        let handle = Arc::from_raw((*message)._private.cast::<DeliveryHandle>().cast_const());
        let code = Code((&raw const (*message).err).cast::<i32>().read());
        let report = if code == Code::NONE {
            let mut kind = ffi::rd_kafka_timestamp_type_t::RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
            Ok(Delivery {
                partition: (*message).partition,
                offset: (*message).offset,
                timestamp_ms: ffi::rd_kafka_message_timestamp(message, &raw mut kind),
            })
        } else {
            Err(code)
        };
        (handle, report)
    };
    REPORTED.with(|reported| {
        let (messages, bytes) = reported.get();
        reported.set((messages + 1, bytes + handle.size_bytes));
    });
    if handle.complete(report) {
        // The last that somebody waited for: whoever flushes for it may stop, and what is left may linger.
        // SAFETY: we are in a callback of this handle's.
        unsafe { ffi::rd_kafka_yield(rk) };
    }
}
