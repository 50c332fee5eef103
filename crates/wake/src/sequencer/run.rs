//! Filling an index, and the run of the thread that has the token.

use std::ops::Range;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use super::slot::{FILLED, LAP_SHIFT, Slot, TAKEN, TOKEN, VOID};
use super::{POISONED, Sequencer, Sink};
use crate::clock::Deadline;

/// After this number of entries a run has the sink flush, and publishes its progress.
const FLUSH_ENTRIES: u64 = 512;

/// The content of an index.
enum Found<T> {
    Entry(T),
    Void,
    /// Neither has come; with the word of the slot.
    Missing(u64),
}

impl<T, S: Sink<T>> Sequencer<T, S> {
    /// Deposits the entry. If its index was the missing one, appends all contiguous entries. Returns the indexes that
    /// the caller has appended.
    #[inline]
    pub(super) fn fill(&self, index: u64, entry: T) -> Range<u64> {
        let (slot, _) = self.slot(index);
        // SAFETY: the caller alone has taken the index, and no thread reads the entry before FILLED is set.
        slot.entry.with_mut(|cell| unsafe {
            (*cell).write(entry);
        });
        self.arrive(slot, index, FILLED)
    }

    /// Makes an index void that has no entry. Returns the indexes that the caller has appended.
    pub(super) fn void(&self, index: u64) -> Range<u64> {
        self.arrive(self.slot(index).0, index, VOID)
    }

    #[inline]
    fn arrive(&self, slot: &Slot<T>, index: u64, flag: u64) -> Range<u64> {
        if slot.word.fetch_or(flag, AcqRel) & TOKEN == 0 {
            self.note_gap();
            return index..index;
        }
        index..self.run(index)
    }

    /// Appends from the index where this thread holds the token. Returns the index where the token rests now, or was
    /// lost.
    #[inline]
    fn run(&self, from: u64) -> u64 {
        let guard = PoisonOnPanic(self);
        let (mut at, mut flushed, mut woken) = (from, from, from);
        loop {
            if at - flushed == FLUSH_ENTRIES {
                if !self.publish(at) {
                    break;
                }
                flushed = at;
                if at - woken >= self.capacity() {
                    self.waits.wake(at);
                    woken = at;
                }
            }
            match self.take_out(at) {
                Found::Entry(entry) => {
                    // SAFETY: this thread holds the token.
                    self.sink.with_mut(|sink| unsafe { (*sink).append(at, entry) });
                    at += 1;
                }
                Found::Void => at += 1,
                Found::Missing(word) => {
                    // Before the token is down, so that a later run publishes the higher number.
                    if at != flushed && !self.publish(at) {
                        break;
                    }
                    flushed = at;
                    if self.put_down(at, word) {
                        break;
                    }
                }
            }
        }
        std::mem::forget(guard);
        self.waits.wake(flushed);
        if self.waits.has_abandoned() {
            self.void_abandoned();
        }
        at
    }

    /// Returns the content of an index. An entry leaves the ring; its slot is then free for the next lap.
    #[inline]
    fn take_out(&self, index: u64) -> Found<T> {
        let (slot, lap) = self.slot(index);
        let next_lap = lap + (1 << LAP_SHIFT);
        let mut word = slot.word.load(Acquire);
        while word & FILLED != 0 {
            // Claimed before it is read: another thread may withdraw the entry at this moment.
            match slot.word.compare_exchange_weak(word, lap | TAKEN | TOKEN, AcqRel, Acquire) {
                Ok(_) => {
                    // SAFETY: the entry is there, and the holder of the token alone reads what it has claimed.
                    let entry = slot.entry.with_mut(|cell| unsafe { (*cell).assume_init_read() });
                    slot.word.store(next_lap, Release);
                    return Found::Entry(entry);
                }
                Err(other) => word = other,
            }
        }
        if word & VOID != 0 {
            slot.word.store(next_lap, Release);
            return Found::Void;
        }
        Found::Missing(word)
    }

    /// Has the sink flush, and publishes the number of appended entries. Returns `false` if the sink failed.
    #[inline]
    fn publish(&self, at: u64) -> bool {
        // SAFETY: this thread holds the token.
        let is_well = self.sink.with_mut(|sink| unsafe { (*sink).flush() });
        if is_well {
            self.appended.store(at, Release);
        } else {
            self.end(POISONED);
        }
        is_well
    }

    /// Puts the token down at a missing index. Returns `false`, and keeps the token, if the entry has come meanwhile.
    #[inline]
    fn put_down(&self, index: u64, word: u64) -> bool {
        self.resting.store(index, Relaxed);
        let (slot, _) = self.slot(index);
        slot.word.compare_exchange(word, word | TOKEN, AcqRel, Acquire).is_ok()
    }

    /// Withdraws a deposited entry, if it has not been appended, and makes its index void.
    pub(super) fn withdraw(&self, index: u64) -> Option<T> {
        let (slot, lap) = self.slot(index);
        // As if it had been taken and not filled: from here on the cell belongs to this thread again.
        slot.word.compare_exchange(lap | TAKEN | FILLED, lap | TAKEN, AcqRel, Acquire).ok()?;
        // SAFETY: the entry was there, and no other thread reads it now.
        let entry = slot.entry.with_mut(|cell| unsafe { (*cell).assume_init_read() });
        self.void(index);
        Some(entry)
    }

    /// Makes those indexes void whose claims timed out before there was room, and that have room now.
    #[cold]
    pub(super) fn void_abandoned(&self) {
        while let Some(index) = self.waits.abandoned_before(self.appended() + self.capacity()) {
            // It has room, so that this does not wait.
            drop(self.take(index, &Deadline::NEVER));
        }
    }
}

/// Poisons the sequencer if the sink panics. The token is lost with it: the progress of the run is unknown.
struct PoisonOnPanic<'a, T, S: Sink<T>>(&'a Sequencer<T, S>);

impl<T, S: Sink<T>> Drop for PoisonOnPanic<'_, T, S> {
    fn drop(&mut self) {
        self.0.end(POISONED);
    }
}
