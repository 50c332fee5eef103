//! Decompresses snappy, in its own format and in snappy-java's.

use std::ffi::{c_char, c_int};

use crate::librdkafka::decompression::{Compressed, batch_max};

/// `-EINVAL`.
const INVALID: c_int = -22;

unsafe extern "C" {
    fn __real_rd_kafka_snappy_uncompressed_length(input: *const c_char, size: usize, result: *mut usize) -> bool;
    fn __real_rd_kafka_snappy_uncompress(input: *const c_char, size: usize, output: *mut c_char) -> c_int;
    fn __real_rd_kafka_snappy_java_uncompress(
        input: *const c_char,
        size: usize,
        output_size: *mut usize,
        reason: *mut c_char,
        reason_size: usize,
    ) -> *mut c_char;
}

/// # Safety
/// As librdkafka's `rd_kafka_snappy_uncompressed_length`, of a batch in a response.
#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_rd_kafka_snappy_uncompressed_length(
    input: *const c_char,
    size: usize,
    result: *mut usize,
) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        if !__real_rd_kafka_snappy_uncompressed_length(input, size, result) {
            return false;
        }
        let is_allowed = *result <= batch_max();
        if !is_allowed {
            Compressed::new(input.cast(), size).refuse();
        }
        is_allowed
    }
}

/// # Safety
/// As librdkafka's `rd_kafka_snappy_uncompress`, of a batch in a response, after a call for its length.
#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_rd_kafka_snappy_uncompress(
    input: *const c_char,
    size: usize,
    output: *mut c_char,
) -> c_int {
    let mut output_size = 0;
    // SAFETY: the caller's promise; the output has room for the length that the input states.
    unsafe {
        let code = __real_rd_kafka_snappy_uncompress(input, size, output);
        if code != 0 || !__real_rd_kafka_snappy_uncompressed_length(input, size, &raw mut output_size) {
            return code;
        }
        let decompressed = std::slice::from_raw_parts(output.cast(), output_size);
        if Compressed::new(input.cast(), size).may_be_read(decompressed) { 0 } else { INVALID }
    }
}

/// Returns the decompressed size of chunks in snappy-java's format, where each chunk follows its length.
fn java_size(mut chunks: &[u8]) -> usize {
    let mut total = 0usize;
    while let Some((length, rest)) = chunks.split_first_chunk::<4>() {
        let Some((chunk, after)) = rest.split_at_checked(u32::from_be_bytes(*length) as usize) else { break };
        let mut size = 0;
        // SAFETY: reads no more than the chunk's bytes.
        if !unsafe { __real_rd_kafka_snappy_uncompressed_length(chunk.as_ptr().cast(), chunk.len(), &raw mut size) } {
            break;
        }
        total = total.saturating_add(size);
        chunks = after;
    }
    total
}

/// # Safety
/// As librdkafka's `rd_kafka_snappy_java_uncompress`, of a batch in a response. `input` begins after the 16 bytes of
/// snappy-java's header.
#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_rd_kafka_snappy_java_uncompress(
    input: *const c_char,
    size: usize,
    output_size: *mut usize,
    reason: *mut c_char,
    reason_size: usize,
) -> *mut c_char {
    const HEADER: usize = 16;
    // SAFETY: the caller's promise; the output has the size that librdkafka returns.
    unsafe {
        let batch = Compressed::new(input.cast::<u8>().sub(HEADER), size + HEADER);
        if reason_size > 0 {
            *reason = 0;
        }
        if java_size(&batch.messages()[HEADER..]) > batch_max() {
            batch.refuse();
            return std::ptr::null_mut();
        }
        let output = __real_rd_kafka_snappy_java_uncompress(input, size, output_size, reason, reason_size);
        if !output.is_null() && !batch.may_be_read(std::slice::from_raw_parts(output.cast(), *output_size)) {
            libc::free(output.cast());
            return std::ptr::null_mut();
        }
        output
    }
}
