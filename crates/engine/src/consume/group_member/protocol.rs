//! The calls of librdkafka's consumer that change an assignment.

use crate::kafka::{Client, Code, TopicPartitionList, ffi};
use crate::{Error, Result};

pub(super) fn subscribe(client: &Client, topics: &[String]) -> Result<()> {
    let list = TopicPartitionList::of_topics(topics)?;
    // SAFETY: handle and list are alive; librdkafka copies the list.
    let code = Code::of(unsafe { ffi::rd_kafka_subscribe(client.handle(), list.as_ptr()) });
    code.check(format!("subscribe to {}", topics.join(", ")))
}

/// Returns whether the present revocation is of partitions that the group has given to others already.
pub(super) fn is_lost(client: &Client) -> bool {
    // SAFETY: the handle is alive.
    unsafe { ffi::rd_kafka_assignment_lost(client.handle()) != 0 }
}

pub(super) fn is_cooperative(client: &Client) -> bool {
    // SAFETY: the handle is alive; the string is a constant.
    let protocol = unsafe { crate::kafka::text_of(ffi::rd_kafka_rebalance_protocol(client.handle())) };
    protocol == "COOPERATIVE"
}

/// Assigns partitions: these beside the present ones in a cooperative group, these in place of them in an eager one.
pub(super) fn assign(client: &Client, list: &TopicPartitionList) -> Result<()> {
    // SAFETY: handle and list are alive; librdkafka copies the list.
    unsafe {
        if is_cooperative(client) {
            check("assign", ffi::rd_kafka_incremental_assign(client.handle(), list.as_ptr()))
        } else {
            Code::of(ffi::rd_kafka_assign(client.handle(), list.as_ptr())).check("assign")
        }
    }
}

/// Takes these partitions back in a cooperative group, all in an eager one.
pub(super) fn unassign(client: &Client, list: &TopicPartitionList) -> Result<()> {
    // SAFETY: handle and list are alive; a null list takes all partitions back.
    unsafe {
        if is_cooperative(client) && !list.is_empty() {
            check("unassign", ffi::rd_kafka_incremental_unassign(client.handle(), list.as_ptr()))
        } else {
            Code::of(ffi::rd_kafka_assign(client.handle(), std::ptr::null())).check("unassign")
        }
    }
}

pub(super) fn unsubscribe(client: &Client) {
    // SAFETY: the handle is alive.
    unsafe { ffi::rd_kafka_unsubscribe(client.handle()) };
}

/// Begins to leave the group; its last rebalance comes to this queue. Returns `false` after a fatal error: there is no
/// group to leave.
pub(super) fn begin_close(client: &Client, closing: &crate::kafka::Queue) -> bool {
    // SAFETY: handle and queue are alive; the error, if any, is ours to destroy.
    unsafe {
        let error = ffi::rd_kafka_consumer_close_queue(client.handle(), closing.as_ptr());
        if !error.is_null() {
            ffi::rd_kafka_error_destroy(error);
        }
        error.is_null()
    }
}

/// Returns whether the consumer has left its group.
pub(super) fn is_closed(client: &Client) -> bool {
    // SAFETY: the handle is alive.
    unsafe { ffi::rd_kafka_consumer_closed(client.handle()) != 0 }
}

/// # Safety
/// `error` is null or an error that is ours to destroy.
unsafe fn check(operation: &str, error: *mut ffi::rd_kafka_error_t) -> Result<()> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: the caller's promise.
    unsafe {
        let code = Code::of(ffi::rd_kafka_error_code(error));
        let text = crate::kafka::text_of(ffi::rd_kafka_error_string(error));
        ffi::rd_kafka_error_destroy(error);
        Err(Error::kafka(operation, code, text))
    }
}
