//! The calls of a producer that concern all of its messages.

use super::{Client, Code, ffi};

impl Client {
    /// Waits up to `timeout_ms` (-1 for ever) for the first delivery report, and serves all reports that are there. The
    /// wait ends early where a [`crate::Reported`] says so, and after an interrupt of the main queue. Any thread may
    /// call it.
    pub fn serve_reports(&self, timeout_ms: i32) {
        // SAFETY: the handle is alive; delivery callbacks run inside this call.
        unsafe { ffi::rd_kafka_poll(self.handle(), timeout_ms) };
    }

    /// Has all messages sent without lingering, and serves reports until none is missing or the time (in milliseconds,
    /// -1 for ever) is up. Returns [`Code::NONE`] when none is missing. It ends early where a [`crate::Reported`] says
    /// so, and after an error of the client. Any thread may call it.
    pub fn flush(&self, timeout_ms: i32) -> Code {
        // SAFETY: the handle is alive; delivery callbacks run inside this call.
        Code::of(unsafe { ffi::rd_kafka_flush(self.handle(), timeout_ms) })
    }

    /// Fails the messages that no request holds yet: their reports come next. Does not block.
    pub fn purge_queued(&self) {
        self.purge(ffi::RD_KAFKA_PURGE_F_QUEUE | ffi::RD_KAFKA_PURGE_F_NON_BLOCKING);
    }

    /// Fails the messages that wait or are on their way: their reports come next. Waits for librdkafka's threads, not
    /// for a broker.
    pub fn purge_all(&self) {
        self.purge(ffi::RD_KAFKA_PURGE_F_QUEUE | ffi::RD_KAFKA_PURGE_F_INFLIGHT);
    }

    fn purge(&self, flags: i32) {
        // SAFETY: the handle is alive.
        unsafe { ffi::rd_kafka_purge(self.handle(), flags) };
    }
}

/// Returns the partition of a key, as Java's clients and the partitioner `murmur2_random` choose it.
pub fn partition_of_key(key: &[u8], partitions: usize) -> i32 {
    let (no_topic, no_opaque) = (std::ptr::null(), std::ptr::null_mut());
    let (count, start) = (partitions as i32, key.as_ptr().cast());
    // SAFETY: reads the key; the topic's handle is not looked at.
    unsafe { ffi::rd_kafka_msg_partitioner_murmur2(no_topic, start, key.len(), count, no_opaque, no_opaque) }
}
