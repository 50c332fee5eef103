//! What the extension gives librdkafka in the place of its decompressors: see `awoke_engine::kafka::Compressed`.
//!
//! The linker puts `__wrap_x` where librdkafka calls `x`, and `x` where `__real_x` is called (`build.rs`).

use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};
use std::mem::MaybeUninit;

use awoke_engine::kafka::{Compressed, batch_max};

/// `RD_KAFKA_RESP_ERR__BAD_COMPRESSION`.
const REFUSED: c_int = -198;
/// `-EINVAL`.
const INVALID: c_int = -22;
/// `ZSTD_CONTENTSIZE_UNKNOWN`; `ZSTD_CONTENTSIZE_ERROR` is one less.
const ZSTD_UNKNOWN_SIZE: c_ulonglong = c_ulonglong::MAX;
const ZSTD_NO_SIZE: c_ulonglong = c_ulonglong::MAX - 1;
/// `ZSTD_error_dstSize_tooSmall`.
const ZSTD_TOO_SMALL: c_int = 70;
/// For zlib, to read the headers of gzip and of zlib.
const ANY_WINDOW: c_int = 15 + 32;
const Z_FINISH: c_int = 4;
const Z_OK: c_int = 0;
const Z_STREAM_END: c_int = 1;
const Z_BUF_ERROR: c_int = -5;

/// zlib's `z_stream`.
#[repr(C)]
struct ZStream {
    next_in: *const u8,
    avail_in: c_uint,
    total_in: libc::c_ulong,
    next_out: *mut u8,
    avail_out: c_uint,
    total_out: libc::c_ulong,
    others: [*mut c_void; 5],
    data_type: c_int,
    adler: libc::c_ulong,
    reserved: libc::c_ulong,
}

type Broker = *mut c_void;

unsafe extern "C" {
    fn zlibVersion() -> *const c_char;
    fn inflateInit2_(stream: *mut ZStream, window: c_int, version: *const c_char, size: c_int) -> c_int;
    fn inflate(stream: *mut ZStream, flush: c_int) -> c_int;
    fn inflateEnd(stream: *mut ZStream) -> c_int;
    fn ZSTD_getFrameContentSize(input: *const c_void, size: usize) -> c_ulonglong;
    fn ZSTD_decompress(output: *mut c_void, room: usize, input: *const c_void, size: usize) -> usize;
    fn ZSTD_isError(result: usize) -> c_uint;
    fn ZSTD_getErrorCode(result: usize) -> c_int;
    fn __real_rd_kafka_snappy_uncompressed_length(input: *const c_char, size: usize, result: *mut usize) -> bool;
    fn __real_rd_kafka_snappy_uncompress(input: *const c_char, size: usize, output: *mut c_char) -> c_int;
    fn __real_rd_kafka_snappy_java_uncompress(
        input: *const c_char,
        size: usize,
        output_size: *mut usize,
        reason: *mut c_char,
        reason_size: usize,
    ) -> *mut c_char;
    fn __real_rd_kafka_lz4_decompress(
        broker: Broker,
        is_proper: c_int,
        offset: i64,
        input: *mut c_char,
        size: usize,
        output: *mut *mut c_void,
        output_size: *mut usize,
    ) -> c_int;
    fn __real_rd_kafka_zstd_decompress(
        broker: Broker,
        input: *mut c_char,
        size: usize,
        output: *mut *mut c_void,
        output_size: *mut usize,
    ) -> c_int;
}

/// Memory of C's, which grows; freed with this, or given away.
struct Output {
    start: *mut u8,
    size: usize,
}

impl Output {
    /// Makes it larger, up to `most` bytes; `false` when it can't be.
    fn grow(&mut self, most: usize) -> bool {
        let wanted = self.size.saturating_mul(2).min(most);
        if wanted <= self.size {
            return false;
        }
        // SAFETY: the memory is C's and ours.
        let moved = unsafe { libc::realloc(self.start.cast(), wanted + 1) };
        if !moved.is_null() {
            (self.start, self.size) = (moved.cast(), wanted);
        }
        !moved.is_null()
    }

    fn give_away(mut self) -> *mut c_void {
        std::mem::replace(&mut self.start, std::ptr::null_mut()).cast()
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        // SAFETY: the memory is C's and ours, or null.
        unsafe { libc::free(self.start.cast()) };
    }
}

/// Decompresses gzip in one pass, where librdkafka makes two; `None` for what is none, or takes more than `most` bytes.
fn inflated(input: &[u8], most: usize) -> Result<(Output, usize), bool> {
    let mut stream = MaybeUninit::<ZStream>::zeroed();
    // SAFETY: zeros are what zlib asks for; it writes only where `next_out` and `avail_out` say, and reads where the input is.
    unsafe {
        let size = size_of::<ZStream>() as c_int;
        if inflateInit2_(stream.as_mut_ptr(), ANY_WINDOW, zlibVersion(), size) != Z_OK {
            return Err(false);
        }
        let stream = stream.assume_init_mut();
        (stream.next_in, stream.avail_in) = (input.as_ptr(), input.len() as c_uint);
        let mut output = Output { start: std::ptr::null_mut(), size: (input.len() * 2).max(256) };
        let mut has_room = output.grow(usize::MAX);
        let found = loop {
            if !has_room {
                break Err(true);
            }
            let written = stream.total_out as usize;
            let room = (output.size - written).min(c_uint::MAX as usize) as c_uint;
            (stream.next_out, stream.avail_out) = (output.start.add(written), room);
            match inflate(stream, Z_FINISH) {
                Z_STREAM_END => break Ok(stream.total_out as usize),
                Z_OK | Z_BUF_ERROR if stream.avail_out == 0 => has_room = output.grow(most),
                _ => break Err(false),
            }
        };
        inflateEnd(stream);
        found.map(|size| (output, size))
    }
}

/// # Safety
/// As librdkafka's `rd_gz_decompress`, of a batch in a response.
#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_rd_gz_decompress(input: *const c_void, size: c_int, output_size: *mut u64) -> *mut c_void {
    // SAFETY: librdkafka calls it for batches in responses.
    let batch = unsafe { Compressed::new(input.cast(), size as usize) };
    match inflated(batch.messages(), batch_max()) {
        Err(is_too_large) => {
            if is_too_large {
                batch.refuse();
            }
            std::ptr::null_mut()
        }
        Ok((output, size)) => {
            // SAFETY: so much was written; the caller's place for the size is valid.
            unsafe {
                if !batch.may_be_read(std::slice::from_raw_parts(output.start, size)) {
                    return std::ptr::null_mut();
                }
                *output_size = size as u64;
            }
            output.give_away()
        }
    }
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
/// As librdkafka's `rd_kafka_snappy_uncompress`, of a batch in a response whose length has been asked for.
#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_rd_kafka_snappy_uncompress(
    input: *const c_char,
    size: usize,
    output: *mut c_char,
) -> c_int {
    let mut output_size = 0;
    // SAFETY: the caller's promise; there is room for the length that the input says.
    unsafe {
        let code = __real_rd_kafka_snappy_uncompress(input, size, output);
        if code != 0 || !__real_rd_kafka_snappy_uncompressed_length(input, size, &raw mut output_size) {
            return code;
        }
        let decompressed = std::slice::from_raw_parts(output.cast(), output_size);
        if Compressed::new(input.cast(), size).may_be_read(decompressed) { 0 } else { INVALID }
    }
}

/// What the chunks of snappy-java's format will take: each has its length before it.
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
/// As librdkafka's `rd_kafka_snappy_java_uncompress`, of a batch in a response whose 16 bytes of snappy-java's header were left out.
#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_rd_kafka_snappy_java_uncompress(
    input: *const c_char,
    size: usize,
    output_size: *mut usize,
    reason: *mut c_char,
    reason_size: usize,
) -> *mut c_char {
    const HEADER: usize = 16;
    // SAFETY: the caller's promise; what comes back is as large as it says.
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

/// Keeps what was decompressed, or frees it when it may not be read; the code for librdkafka.
///
/// # Safety
/// The memory is C's, as large as it says, and belongs to the caller.
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
    // SAFETY: the caller's promise. LZ4 makes at most 255 bytes of one, so librdkafka's own memory for it is bounded by the batch.
    unsafe {
        let code = __real_rd_kafka_lz4_decompress(broker, is_proper, offset, input, size, output, output_size);
        if code == 0 { judged(Compressed::new(input.cast(), size), output, *output_size) } else { code }
    }
}

/// Decompresses zstd that does not say its size; `Err` for no zstd (`false`), or when it takes more than `most` bytes (`true`).
///
/// librdkafka (2.12.1) would grow its output to `receive.message.max.bytes`, 100 MB, and take a larger batch for a broken one.
fn unsized_zstd(input: &[u8], most: usize) -> Result<(Output, usize), bool> {
    let mut output = Output { start: std::ptr::null_mut(), size: (input.len() * 2).max(256).min(most / 2) };
    while output.grow(most) {
        // SAFETY: the output has this much room; the input is read only.
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
