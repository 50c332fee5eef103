//! The records inside a batch: only timestamps are read, for offsets by time, and whether there is a key.

use crate::batch::{HEADER, Header};

/// Returns the first record of a batch that is not older: its timestamp and its offset.
///
/// A compressed batch is not unpacked: its first record stands for it, so that a reader begins at most one batch early.
pub(crate) fn first_since(header: &Header, batch: &[u8], timestamp: i64) -> Option<(i64, i64)> {
    if header.has_append_time() || header.codec() != 0 {
        return Some((header.max_timestamp, header.base_offset));
    }
    let mut at = HEADER;
    for _ in 0..header.count {
        let length = number(batch, &mut at)?;
        let next = at + usize::try_from(length).ok()?;
        at += 1; // attributes
        let record_timestamp = header.base_timestamp + number(batch, &mut at)?;
        let offset = header.base_offset + number(batch, &mut at)?;
        if record_timestamp >= timestamp {
            return Some((record_timestamp, offset));
        }
        at = next;
    }
    None
}

/// Returns whether a record of a batch has no key. A compressed batch is not unpacked: its records count as having one.
pub(crate) fn lacks_a_key(header: &Header, batch: &[u8]) -> bool {
    let mut at = HEADER;
    let mut lacks_key = || {
        let length = number(batch, &mut at)?;
        let next = at + usize::try_from(length).ok()?;
        at += 1; // attributes
        number(batch, &mut at)?; // timestamp
        number(batch, &mut at)?; // offset
        let key = number(batch, &mut at)?;
        at = next;
        Some(key < 0)
    };
    header.codec() == 0 && (0..header.count).any(|_| lacks_key().unwrap_or(false))
}

/// Reads a zigzag number of variable length.
fn number(bytes: &[u8], at: &mut usize) -> Option<i64> {
    let (mut value, mut shift) = (0_u64, 0);
    loop {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some((value >> 1) as i64 ^ -((value & 1) as i64));
        }
        shift += 7;
        if shift > 63 {
            return None;
        }
    }
}
