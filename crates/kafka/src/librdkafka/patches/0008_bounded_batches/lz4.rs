//! Decompresses LZ4.

use std::ffi::{c_char, c_int, c_void};

use crate::librdkafka::decompression::Compressed;

use super::{Broker, judged};

unsafe extern "C" {
    fn __real_rd_kafka_lz4_decompress(
        broker: Broker,
        is_proper: c_int,
        offset: i64,
        input: *mut c_char,
        size: usize,
        output: *mut *mut c_void,
        output_size: *mut usize,
    ) -> c_int;
}

/// # Safety
/// As librdkafka's `rd_kafka_lz4_decompress`, of a batch in a response.
#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_rd_kafka_lz4_decompress(
    broker: Broker,
    is_proper: c_int,
    offset: i64,
    input: *mut c_char,
    size: usize,
    output: *mut *mut c_void,
    output_size: *mut usize,
) -> c_int {
    // SAFETY: the caller's promise. LZ4 makes at most 255 bytes of one, so the batch bounds librdkafka's own memory.
    unsafe {
        let code = __real_rd_kafka_lz4_decompress(broker, is_proper, offset, input, size, output, output_size);
        if code == 0 { judged(Compressed::new(input.cast(), size), output, *output_size) } else { code }
    }
}
