//! The calls of a producer that concern all of its messages.

use std::ffi::{c_char, c_void};

use super::{Client, Code, TopicPartition, Unanswered, ffi, text_of};

type Tell = unsafe extern "C" fn(*mut c_void, *const c_char, i32, i32, i64);

unsafe extern "C" {
    /// Patch 0018.
    fn awoke_unanswered(rk: *mut ffi::rd_kafka_t, tell: Tell, opaque: *mut c_void);
}

/// Adds a partition to a list.
///
/// # Safety
/// `list` is a `Vec<Unanswered>` that no other code uses, and `topic` a text of C.
unsafe extern "C" fn add(list: *mut c_void, topic: *const c_char, partition: i32, leader: i32, waiting: i64) {
    // SAFETY: the caller's promise.
    let (list, topic) = unsafe { (&mut *list.cast::<Vec<Unanswered>>(), text_of(topic)) };
    list.push(Unanswered { at: TopicPartition::new(topic, partition), leader, waiting: waiting as u64 });
}

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

    /// Returns the partitions with messages that have no answer. Does not block.
    pub fn unanswered(&self) -> Vec<Unanswered> {
        let mut list = Vec::new();
        // SAFETY: the handle is alive; the list outlives the call, which adds to it on this thread.
        unsafe { awoke_unanswered(self.handle(), add, (&raw mut list).cast()) };
        list
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
