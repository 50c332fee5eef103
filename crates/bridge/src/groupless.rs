//! Keeps librdkafka (2.12.1) from a fault of its own: an answer to "which offsets has this group?" that says that the group's coordinator has
//! moved makes it ask its own group for the new one. An admin client has no group, and the process ended with SIGSEGV.
//!
//! The linker puts `__wrap_x` where librdkafka calls `x`, and `x` where `__real_x` is called (`build.rs`).

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
/// As librdkafka's `rd_kafka_cgrp_op`, but that there may be no group: then nothing is asked. The caller asks again by itself.
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
