//! Decompresses gzip.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::mem::MaybeUninit;

use crate::librdkafka::decompression::{Compressed, batch_max};

use super::Output;

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

unsafe extern "C" {
    fn zlibVersion() -> *const c_char;
    fn inflateInit2_(stream: *mut ZStream, window: c_int, version: *const c_char, size: c_int) -> c_int;
    fn inflate(stream: *mut ZStream, flush: c_int) -> c_int;
    fn inflateEnd(stream: *mut ZStream) -> c_int;
}

/// Decompresses gzip in one pass; librdkafka makes two.
///
/// # Errors
/// `true` if the output takes more than `most` bytes, `false` if the input is broken.
fn inflated(input: &[u8], most: usize) -> Result<(Output, usize), bool> {
    let mut stream = MaybeUninit::<ZStream>::zeroed();
    // SAFETY: zlib asks for zeros. It writes only where `next_out` and `avail_out` say, and reads only the input.
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
            // SAFETY: `size` bytes were written; the caller's place for the size is valid.
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
