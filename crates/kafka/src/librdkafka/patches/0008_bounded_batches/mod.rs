//! Patch 0008: a decompressed batch has a memory bound.
//!
//! Version: librdkafka 2.12.1
//! Wraps: rd_gz_decompress, rd_kafka_lz4_decompress, rd_kafka_snappy_java_uncompress, rd_kafka_snappy_uncompress,
//!     rd_kafka_snappy_uncompressed_length, rd_kafka_zstd_decompress
//! Systems: Linux
//! Upstream: pull request 3950, closed without a merge
//! Test: tests/security/test_compression_bombs.py
//!
//! Brokers bound a batch as it is compressed, and librdkafka has no bound for what it becomes. `decompression` has the
//! bound. Here is one file per format.

#![allow(clippy::doc_markdown)] // The head is the same in each patch.

mod gzip;
mod lz4;
mod snappy;
mod zstd;

use std::ffi::{c_int, c_void};

use crate::librdkafka::decompression::Compressed;

/// `RD_KAFKA_RESP_ERR__BAD_COMPRESSION`.
const REFUSED: c_int = -198;

/// librdkafka's `rd_kafka_broker_t *`.
type Broker = *mut c_void;

/// Memory from C's `malloc`, which grows. It is freed with this value, or given away.
struct Output {
    start: *mut u8,
    size: usize,
}

impl Output {
    /// Doubles its size, up to `most` bytes. Returns `false` if it cannot grow.
    fn grow(&mut self, most: usize) -> bool {
        let wanted = self.size.saturating_mul(2).min(most);
        if wanted <= self.size {
            return false;
        }
        // SAFETY: the memory is from C's allocator, and belongs to this value.
        let moved = unsafe { libc::realloc(self.start.cast(), wanted + 1) };
        if !moved.is_null() {
            (self.start, self.size) = (moved.cast(), wanted);
        }
        !moved.is_null()
    }

    /// Returns the memory, which the caller has to free.
    fn give_away(mut self) -> *mut c_void {
        std::mem::replace(&mut self.start, std::ptr::null_mut()).cast()
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        // SAFETY: the memory is from C's allocator, and belongs to this value; or it is null.
        unsafe { libc::free(self.start.cast()) };
    }
}

/// Keeps the decompressed batch, or frees it if it may not be read. Returns the code for librdkafka.
///
/// # Safety
/// The memory is from C's allocator, has this size, and belongs to the caller.
unsafe fn judged(batch: Compressed<'_>, output: *mut *mut c_void, size: usize) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        if batch.may_be_read(std::slice::from_raw_parts((*output).cast(), size)) {
            return 0;
        }
        libc::free(*output);
        *output = std::ptr::null_mut();
    }
    REFUSED
}
