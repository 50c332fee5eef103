//! Works around a bug of librdkafka (2.12.1): an `OffsetFetch` response may say that the group's coordinator has moved.
//! librdkafka then asks the client's own group for the new one. An admin client has no group, and the process ended
//! with SIGSEGV.
//!
//! The linker puts `__wrap_x` where librdkafka calls `x`, and `x` where `__real_x` is called (`wrapped.txt`).

use std::ffi::{c_int, c_void};

/// librdkafka's `rd_kafka_replyq_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct ReplyQueue {
    queue: *mut c_void,
    version: i32,
}

unsafe extern "C" {
    fn __real_rd_kafka_cgrp_op(
        group: *mut c_void,
        partition: *mut c_void,
        replies: ReplyQueue,
        kind: c_int,
        error: c_int,
    );
}

/// # Safety
/// As librdkafka's `rd_kafka_cgrp_op`, but `group` may be null: then this does nothing, and librdkafka's own retry
/// finds the new coordinator.
#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_rd_kafka_cgrp_op(
    group: *mut c_void,
    partition: *mut c_void,
    replies: ReplyQueue,
    kind: c_int,
    error: c_int,
) {
    if !group.is_null() {
        // SAFETY: the caller's promise.
        unsafe { __real_rd_kafka_cgrp_op(group, partition, replies, kind, error) };
    }
}
