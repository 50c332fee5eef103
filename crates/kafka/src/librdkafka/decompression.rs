//! Bounds what a compressed batch of messages may become in memory.
//!
//! A producer can make a batch of 69 kB that takes 1.2 GB when it is read: gzip shrinks equal bytes a thousandfold, and
//! librdkafka (2.12.1) adds about 320 bytes to each message. Brokers bound a batch as it is compressed, and librdkafka
//! reads whatever they send. So patch 0008 stands before librdkafka's decompressors, and calls these functions. A batch
//! that would take more than the bound is not read: its partition is stuck, and the offsets of the batch are told.
//! Several batches of one response that together take more are read one after the other.

#![cfg_attr(not(target_os = "linux"), allow(dead_code))] // Only Linux's linker can wrap a function.

use std::cell::Cell;
use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::Unread;

/// The bytes that librdkafka (2.12.1) adds to each message.
const MESSAGE_BYTES: usize = 320;
/// The least that a message takes in the format before Kafka 0.11, whose messages are counted by this.
const OLD_MESSAGE_BYTES: usize = 26;
/// The header of a batch, which stands right before its compressed messages.
const HEADER_BYTES: usize = 61;
/// Batches of one response lie at most this far from each other.
const RESPONSE_GAP_MAX: usize = 1024 * 1024;
/// Of this many batches that were not read the reason is kept.
const REMEMBERED: usize = 256;

static BATCH_MAX: AtomicUsize = AtomicUsize::new(256 * 1024 * 1024);
static UNREAD: Mutex<VecDeque<(i64, usize, Unread)>> = Mutex::new(VecDeque::new());

thread_local! {
    /// Where the last batch ended that this thread of librdkafka's has read, and what it and those before it in its
    /// response take.
    static RESPONSE: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

/// Bounds what one batch may take, in bytes, for all consumers of the process from here on.
pub fn set_batch_max(bytes: usize) {
    BATCH_MAX.store(bytes, Ordering::Relaxed);
}

/// Returns the most memory of one batch, in bytes.
pub fn batch_max() -> usize {
    BATCH_MAX.load(Ordering::Relaxed)
}

/// A batch as librdkafka gives it to a decompressor.
#[derive(Clone, Copy, Debug)]
pub struct Compressed<'a> {
    /// Its header and its compressed messages.
    whole: &'a [u8],
}

impl<'a> Compressed<'a> {
    /// # Safety
    /// The compressed messages lie in a response of a broker, behind at least 61 bytes of it, and stay there for as
    /// long as this does.
    pub unsafe fn new(messages: *const u8, size: usize) -> Self {
        // SAFETY: the caller's promise.
        Self { whole: unsafe { std::slice::from_raw_parts(messages.sub(HEADER_BYTES), HEADER_BYTES + size) } }
    }

    /// Its compressed messages.
    pub fn messages(&self) -> &'a [u8] {
        &self.whole[HEADER_BYTES..]
    }

    /// First and last offset; the first is -1 for a batch of the format before Kafka 0.11.
    fn offsets(&self) -> RangeInclusive<i64> {
        let (size, magic) = (number(self.whole, 8, 4), self.whole[16]);
        if magic != 2 || size != (HEADER_BYTES - 12 + self.messages().len()) as i64 {
            return -1..=-1;
        }
        let first = number(self.whole, 0, 8);
        first..=first.saturating_add(number(self.whole, 23, 4))
    }

    /// Notes that it would take more than the bound.
    pub fn refuse(&self) {
        self.note(Unread::TooLarge(self.offsets()));
    }

    /// Returns whether these, its messages, may be read now. Notes why not.
    pub fn may_be_read(&self, decompressed: &[u8]) -> bool {
        let bytes = weigh(decompressed);
        if bytes > batch_max() {
            self.refuse();
            return false;
        }
        let (begin, end) = (self.whole.as_ptr() as usize, self.whole.as_ptr_range().end as usize);
        let (before, taken) = RESPONSE.get();
        let taken = if (before..before.saturating_add(RESPONSE_GAP_MAX)).contains(&begin) { taken } else { 0 };
        if taken + bytes > batch_max() {
            RESPONSE.set((0, 0)); // So that it is read next time, wherever it lies then.
            self.note(Unread::Later);
            return false;
        }
        RESPONSE.set((end, taken + bytes));
        true
    }

    fn note(&self, unread: Unread) {
        let mut notes = UNREAD.lock().unwrap_or_else(PoisonError::into_inner);
        if notes.len() == REMEMBERED {
            notes.pop_front();
        }
        notes.push_back((*self.offsets().start(), self.messages().len(), unread));
    }
}

/// Why librdkafka could not decompress a batch, by its error; `None` when it was not for its size.
pub fn why_unread(offset: i64, error: &str) -> Option<Unread> {
    let notes = UNREAD.lock().unwrap_or_else(PoisonError::into_inner);
    let is_meant = |(first, size, _): &&(i64, usize, Unread)| {
        (*first == offset || *first < 0) && error.contains(&format!(" of {size} bytes "))
    };
    notes.iter().rev().find(is_meant).map(|(_, _, unread)| unread.clone())
}

/// Returns the memory that messages will take, in bytes.
fn weigh(messages: &[u8]) -> usize {
    messages.len() + MESSAGE_BYTES * count(messages)
}

/// Returns the number of messages in a batch without its header: each begins with its length.
fn count(messages: &[u8]) -> usize {
    let (mut rest, mut count) = (messages, 0);
    while !rest.is_empty() {
        let Some(after) = skip_one(rest) else { return count + rest.len() / OLD_MESSAGE_BYTES };
        (rest, count) = (after, count + 1);
    }
    count
}

/// Returns the bytes behind the first message; `None` when there is no message.
fn skip_one(messages: &[u8]) -> Option<&[u8]> {
    let mut length = 0u64;
    for (place, byte) in messages.iter().take(5).enumerate() {
        length |= u64::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            // Zigzag: the lowest bit is the sign.
            let is_length = length > 0 && length & 1 == 0;
            return messages.get(place + 1 + (length >> 1) as usize..).filter(|_| is_length);
        }
    }
    None
}

fn number(bytes: &[u8], from: usize, size: usize) -> i64 {
    bytes[from..from + size].iter().fold(0, |number, byte| number << 8 | i64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(first: i64, count: i32, compressed: &[u8]) -> Vec<u8> {
        let mut whole = vec![0; HEADER_BYTES];
        whole[..8].copy_from_slice(&first.to_be_bytes());
        whole[8..12].copy_from_slice(&((HEADER_BYTES - 12 + compressed.len()) as i32).to_be_bytes());
        whole[16] = 2;
        whole[23..27].copy_from_slice(&(count - 1).to_be_bytes());
        whole.extend(compressed);
        whole
    }

    fn of(whole: &[u8]) -> Compressed<'_> {
        Compressed { whole }
    }

    /// Messages of this many bytes each, behind their length.
    fn messages(count: usize, size: u8) -> Vec<u8> {
        assert!(size < 64);
        std::iter::repeat_n([vec![size * 2], vec![7; size as usize]].concat(), count).flatten().collect()
    }

    #[test]
    fn messages_are_counted_whatever_stands_there() {
        assert_eq!(count(&messages(1_000, 6)), 1_000);
        assert_eq!(count(&[]), 0);
        assert_eq!(count(&[0; 2_600]), 100, "the old format");
        assert_eq!(count(&[0xff; 2_600]), 100);
        assert_eq!(count(&[126, 1, 2]), 0, "a message that is cut off");
        assert_eq!(weigh(&messages(10, 6)), 10 * (7 + MESSAGE_BYTES));
    }

    #[test]
    fn a_batch_that_takes_too_much_is_told_by_its_offsets() {
        let whole = batch(1_005, 100, &[1; 33]);
        of(&whole).refuse();
        let error = "Decompression (codec 0x1) of message at 1005 of 33 bytes failed: Local: Invalid compressed data";
        assert_eq!(why_unread(1_005, error), Some(Unread::TooLarge(1_005..=1_104)));
        assert_eq!(why_unread(1_006, error), None);
        assert_eq!(why_unread(1_005, &error.replace("33", "34")), None);
    }

    #[test]
    fn batches_of_one_response_wait_for_the_next_when_they_take_too_much_together() {
        let most = batch_max() / (7 + MESSAGE_BYTES) * 2 / 3;
        let (decompressed, mut response) = (messages(most, 6), Vec::new());
        for number in 0..3 {
            response.extend(batch(7_000 + number, 1, &[2; 44]));
        }
        let size = response.len() / 3;
        let each: Vec<_> = response.chunks(size).map(of).collect();
        assert!(each[0].may_be_read(&decompressed));
        assert!(!each[1].may_be_read(&decompressed));
        assert_eq!(why_unread(7_001, "at 7001 of 44 bytes failed"), Some(Unread::Later));
        assert!(each[1].may_be_read(&decompressed), "in the next response, wherever it lies");
        assert!(!each[2].may_be_read(&decompressed));
    }
}
