//! The thread that serves delivery reports: librdkafka's delivery callback runs on it, or on a thread that sends or flushes.
//!
//! 1. Wait until librdkafka has reports (or errors, or statistics).
//! 2. For each report complete its handle, which wakes whoever waits for it.
//! 3. Give the room of the whole batch back at once.
//! 4. End when the producer is closed.

use std::cell::Cell;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rdkafka_sys as ffi;

use super::{Delivery, DeliveryHandle, Room};
use crate::kafka::{Client, Code};

thread_local! {
    /// Messages and bytes reported during the poll that is under way on this thread.
    static REPORTED: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

/// Serves reports until `is_closing`.
pub(super) fn serve(client: &Client, room: &Room, is_closing: &AtomicBool) {
    while !is_closing.load(Ordering::Acquire) {
        serve_once(client, room, -1);
    }
    serve_once(client, room, 0);
}

/// Waits up to `timeout_ms` (-1 for ever) for the first report, and serves all that are there.
pub(super) fn serve_once(client: &Client, room: &Room, timeout_ms: i32) {
    // SAFETY: the handle is alive; the callback below runs inside this call.
    unsafe { ffi::rd_kafka_poll(client.handle(), timeout_ms) };
    give_room_back(room);
}

/// Gives back the room of the messages that were reported on this thread.
pub(super) fn give_room_back(room: &Room) {
    let (messages, bytes) = REPORTED.take();
    if messages > 0 {
        room.leave(messages, bytes);
    }
}

/// librdkafka's delivery callback.
pub(super) unsafe extern "C" fn on_report(
    _rk: *mut ffi::rd_kafka_t,
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
    handle.complete(report);
}
