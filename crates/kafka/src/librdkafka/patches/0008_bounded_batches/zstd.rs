//! Decompresses zstd.

use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};

use crate::librdkafka::decompression::{Compressed, batch_max};

use super::{Broker, Output, REFUSED, judged};

/// `ZSTD_CONTENTSIZE_UNKNOWN`; `ZSTD_CONTENTSIZE_ERROR` is one less.
const ZSTD_UNKNOWN_SIZE: c_ulonglong = c_ulonglong::MAX;
const ZSTD_NO_SIZE: c_ulonglong = c_ulonglong::MAX - 1;
/// `ZSTD_error_dstSize_tooSmall`.
const ZSTD_TOO_SMALL: c_int = 70;

unsafe extern "C" {
    fn ZSTD_getFrameContentSize(input: *const c_void, size: usize) -> c_ulonglong;
    fn ZSTD_decompress(output: *mut c_void, room: usize, input: *const c_void, size: usize) -> usize;
    fn ZSTD_isError(result: usize) -> c_uint;
    fn ZSTD_getErrorCode(result: usize) -> c_int;
    fn __real_rd_kafka_zstd_decompress(
        broker: Broker,
        input: *mut c_char,
        size: usize,
        output: *mut *mut c_void,
        output_size: *mut usize,
    ) -> c_int;
}

/// Decompresses zstd that does not state its size. librdkafka (2.12.1) would grow its output to
/// `receive.message.max.bytes`, 100 MB, and take a larger batch for a broken one.
///
/// # Errors
/// `true` if the output takes more than `most` bytes, `false` if the input is broken.
fn unsized_zstd(input: &[u8], most: usize) -> Result<(Output, usize), bool> {
    let mut output = Output { start: std::ptr::null_mut(), size: (input.len() * 2).max(256).min(most / 2) };
    while output.grow(most) {
        // SAFETY: the output has room for `output.size` bytes; the input is only read.
        let (size, code) = unsafe {
            let result = ZSTD_decompress(output.start.cast(), output.size, input.as_ptr().cast(), input.len());
            (result, if ZSTD_isError(result) == 0 { 0 } else { ZSTD_getErrorCode(result) })
        };
        match code {
            0 => return Ok((output, size)),
            ZSTD_TOO_SMALL => (),
            _ => return Err(false),
        }
    }
    Err(true)
}

/// # Safety
/// As librdkafka's `rd_kafka_zstd_decompress`, of a batch in a response.
#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_rd_kafka_zstd_decompress(
    broker: Broker,
    input: *mut c_char,
    size: usize,
    output: *mut *mut c_void,
    output_size: *mut usize,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        let batch = Compressed::new(input.cast(), size);
        let told = ZSTD_getFrameContentSize(input.cast(), size);
        if told == ZSTD_UNKNOWN_SIZE {
            return match unsized_zstd(batch.messages(), batch_max()) {
                Ok((decompressed, bytes)) => {
                    (*output_size, *output) = (bytes, decompressed.give_away());
                    judged(batch, output, bytes)
                }
                Err(is_too_large) => {
                    if is_too_large {
                        batch.refuse();
                    }
                    REFUSED
                }
            };
        }
        if told < ZSTD_NO_SIZE && told > batch_max() as c_ulonglong {
            batch.refuse();
            return REFUSED;
        }
        let code = __real_rd_kafka_zstd_decompress(broker, input, size, output, output_size);
        if code == 0 { judged(batch, output, *output_size) } else { code }
    }
}
