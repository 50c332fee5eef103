//! One slot of the ring: a word with the state of its index, and the entry.

use std::mem::MaybeUninit;

use crate::sync::{AtomicU64, UnsafeCell};

/// A permit of the index was given out.
pub(super) const TAKEN: u64 = 1;
/// The entry is there.
pub(super) const FILLED: u64 = 2;
/// No entry will come: the run skips the index.
pub(super) const VOID: u64 = 4;
/// The token is here.
pub(super) const TOKEN: u64 = 8;
/// The rest of a word counts the laps of the ring.
pub(super) const LAP_SHIFT: u32 = 4;
/// The last index. A later one's lap would not fit into its slot's word, and would be taken for an earlier lap.
pub(super) const INDEX_MAX: u64 = (u64::MAX >> LAP_SHIFT) - 1;

/// One slot of the ring. In each lap of the ring it belongs to another index.
pub(super) struct Slot<T> {
    pub(super) word: AtomicU64,
    pub(super) entry: UnsafeCell<MaybeUninit<T>>,
}

impl<T> Slot<T> {
    /// Makes an empty slot of the first lap, with or without the token.
    pub(super) fn new(has_token: bool) -> Self {
        Self { word: AtomicU64::new(if has_token { TOKEN } else { 0 }), entry: UnsafeCell::new(MaybeUninit::uninit()) }
    }
}
