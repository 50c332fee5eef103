//! Counts the requests that end a transaction, and their answers.
//!
//! librdkafka (2.12.1, and 2.15.0 still) speaks the transaction protocol of before KIP-890 and sends `EndTxn` again by
//! itself after a time-out or a disconnect. One that was delayed somewhere may then arrive in the *next* transaction,
//! and commit or abort half of it (shown by Jepsen for another broker, 2024). A transaction whose end was asked for
//! more than once, or never answered, must therefore be the last one under its epoch.

use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

use super::{Code, EndTxns, ffi};

/// `EndTxn` in the Kafka protocol.
const END_TXN: i16 = 26;

impl EndTxns {
    /// Has the client that is made of this configuration count here.
    ///
    /// # Safety
    /// The counts live as long as that client; the configuration is valid.
    pub(crate) unsafe fn listen(self: &Arc<Self>, conf: *mut ffi::rd_kafka_conf_t) {
        let opaque = Arc::as_ptr(self).cast_mut().cast();
        // SAFETY: the caller's promise.
        unsafe { ffi::rd_kafka_conf_interceptor_add_on_new(conf, NAME.as_ptr(), Some(on_new), opaque) };
    }
}

const NAME: &std::ffi::CStr = c"awoke-end-txns";
const DONE: c_int = Code::NONE.0;

unsafe extern "C" fn on_new(
    rk: *mut ffi::rd_kafka_t,
    _conf: *const ffi::rd_kafka_conf_t,
    opaque: *mut c_void,
    _reason: *mut c_char,
    _reason_size: usize,
) -> c_int {
    // SAFETY: the handle is being made, where interceptors are added; the opaque outlives it.
    unsafe {
        ffi::rd_kafka_interceptor_add_on_request_sent(rk, NAME.as_ptr(), Some(on_request_sent), opaque);
        ffi::rd_kafka_interceptor_add_on_response_received(rk, NAME.as_ptr(), Some(on_response_received), opaque);
    }
    DONE
}

#[allow(clippy::too_many_arguments)] // librdkafka's signature.
unsafe extern "C" fn on_request_sent(
    _rk: *mut ffi::rd_kafka_t,
    _socket: c_int,
    _broker: *const c_char,
    _broker_id: i32,
    api_key: i16,
    _api_version: i16,
    _correlation_id: i32,
    _size: usize,
    opaque: *mut c_void,
) -> c_int {
    if api_key == END_TXN {
        // SAFETY: the counts outlive the client.
        unsafe { &*opaque.cast::<EndTxns>() }.note_sent();
    }
    DONE
}

#[allow(clippy::too_many_arguments)] // librdkafka's signature.
unsafe extern "C" fn on_response_received(
    _rk: *mut ffi::rd_kafka_t,
    _socket: c_int,
    _broker: *const c_char,
    _broker_id: i32,
    api_key: i16,
    _api_version: i16,
    _correlation_id: i32,
    _size: usize,
    _round_trip_us: i64,
    error: c_int,
    opaque: *mut c_void,
) -> c_int {
    // With an error there was no answer: it timed out, or its connection broke.
    if api_key == END_TXN && error == DONE {
        // SAFETY: the counts outlive the client.
        unsafe { &*opaque.cast::<EndTxns>() }.note_answered();
    }
    DONE
}
