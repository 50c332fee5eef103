//! A sequencer: entries arrive in any order and take effect in order. A ring with one atomic word per index, and one
//! token.
//!
//! The token rests at the first missing index. The thread that fills this index takes the token. From then on it alone
//! may append. It appends all contiguous entries, for every thread, and puts the token down at the next missing index.
//! No thread is woken to append. A thread parks only if it must wait for its own entry or for room. It is woken once,
//! when it can continue, after the token is down: a thread that is woken earlier waits behind the run again.
//!
//! **Sources.** The problem is that of Apache `IoTDB`'s log manager, which stripes one condition into many. Slots
//! stamped with their lap are the LMAX Disruptor's (`availableBuffer`). One thread that does the work of all waiting
//! threads is flat combining (Hendler, Incze, Shavit and Tzafrir 2010), here without its lock and without its search.
//!
//! **Memory ordering.** All threads that race for an index race on its word. Each racing access is a read-modify-write
//! with acquire and release. So the `FILLED` of an arriving entry and the `TOKEN` of a run that ends are ordered, and
//! exactly one of the two threads sees the other's. An entry is written before its `FILLED` is released, and read after
//! that was acquired. The token's acquire is the sink's lock. Two words meet in a wait alone. A waiting thread
//! registers in `Waits`, then reads `appended`; a run writes `appended`, then reads the registrations. Both do so by a
//! read-modify-write of one word, so the second one sees what the first one did before.
//!
//! **Costs.** A run goes on as long as entries come, so one thread may append for all others for a while. A thread that
//! waits for its own entry is then woken once in every lap of the ring.
//!
//! One file per part: `slot` (the words), `run` (the token), `wait`, `waits` (registrations), `missing` (reports),
//! `permit` and `ticket` (what a caller holds), `count` (what it waits for).

mod count;
mod missing;
mod permit;
mod run;
mod slot;
mod ticket;
mod wait;
mod waits;

#[cfg(all(test, not(feature = "model")))]
mod tests;

use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

pub use count::Count;
pub use missing::Missing;
pub use permit::Permit;
pub use ticket::Ticket;
pub use waits::Registration;

use crate::Parker;
use crate::clock::Deadline;
use crate::sync::{AtomicU64, Mutex, UnsafeCell};
use crate::{Error, Result};
use slot::{FILLED, INDEX_MAX, LAP_SHIFT, Slot, TAKEN, TOKEN};
use waits::Waits;

const OPEN: u64 = 0;
const CLOSED: u64 = 1;
const POISONED: u64 = 2;

/// The destination of the entries. Gets them in order, from one thread at a time: the one that filled the gap. No lock
/// is held during a call.
///
/// It may deposit entries of its own, but must not wait for one, nor for room.
pub trait Sink<T>: Send {
    /// Takes the next entry.
    fn append(&mut self, index: u64, entry: T);

    /// Flushes, before the entries that were taken count as appended. Returns `false` to poison the sequencer.
    fn flush(&mut self) -> bool {
        true
    }
}

impl<T, F: FnMut(u64, T) + Send> Sink<T> for F {
    fn append(&mut self, index: u64, entry: T) {
        self(index, entry);
    }
}

/// A queue whose entries arrive in any order and take effect in order.
pub struct Sequencer<T, S> {
    slots: Box<[Slot<T>]>,
    capacity_shift: u32,
    /// The next index for a caller that does not name one.
    next: AtomicU64,
    /// The number of indexes that were appended or skipped: all before this index.
    appended: AtomicU64,
    state: AtomicU64,
    waits: Waits,
    /// The index where the token was put down last. For reports: orders nothing.
    resting: AtomicU64,
    /// The missing index whose time stands in `gap`. For reports: orders nothing.
    noted: AtomicU64,
    gap: Mutex<Option<Missing>>,
    /// Only the thread with the token accesses it.
    sink: UnsafeCell<S>,
}

// SAFETY: an entry is written by the one thread that has taken its index, and read by the one that has claimed it from
// there, both ordered by the slot's word; the sink belongs to the holder of the token; the rest is atomic or has a
// lock.
unsafe impl<T: Send, S: Send> Sync for Sequencer<T, S> {}
// SAFETY: nothing in it belongs to a thread.
unsafe impl<T: Send, S: Send> Send for Sequencer<T, S> {}

impl<T, S: Sink<T>> Sequencer<T, S> {
    /// Makes a sequencer that gives its entries to `sink`, with room for at least `capacity` entries, rounded up to a
    /// power of two.
    pub fn new(capacity: usize, sink: S) -> Self {
        let capacity = capacity.max(1).next_power_of_two();
        Self {
            slots: (0..capacity).map(|index| Slot::new(index == 0)).collect(),
            capacity_shift: capacity.trailing_zeros(),
            next: AtomicU64::new(0),
            appended: AtomicU64::new(0),
            state: AtomicU64::new(OPEN),
            waits: Waits::default(),
            resting: AtomicU64::new(0),
            noted: AtomicU64::new(u64::MAX),
            gap: Mutex::new(None),
            sink: UnsafeCell::new(sink),
        }
    }

    /// Returns the number of entries that there is room for.
    pub const fn capacity(&self) -> u64 {
        1 << self.capacity_shift
    }

    /// Returns the number of indexes that were appended or skipped: all before this index. Does not block.
    #[inline]
    pub fn appended(&self) -> u64 {
        self.appended.load(Acquire)
    }

    /// Returns the slot of an index, and the index's lap in the form that the slot's word has.
    #[inline]
    fn slot(&self, index: u64) -> (&Slot<T>, u64) {
        let place = (index & (self.capacity() - 1)) as usize;
        (&self.slots[place], (index >> self.capacity_shift) << LAP_SHIFT)
    }

    /// Takes the next free index, once there is room for it. Blocks the calling thread.
    ///
    /// # Errors
    /// [`Error::TimedOut`], and the index is void; [`Error::Closed`], [`Error::Poisoned`].
    #[inline]
    pub fn claim(&self, deadline: &Deadline) -> Result<Permit<'_, T, S>> {
        self.claim_on(None, deadline)
    }

    /// Takes the next free index, as `claim`, with a parker that was not used before.
    ///
    /// # Errors
    /// As for `claim`.
    #[inline]
    pub fn claim_on(&self, parker: Option<Arc<Parker>>, deadline: &Deadline) -> Result<Permit<'_, T, S>> {
        self.check_open()?;
        let index = self.next.fetch_add(1, Relaxed);
        let permit = self.take_on(parker, index, deadline);
        if let Err(Error::TimedOut { .. }) = permit {
            self.waits.abandon(index);
            self.void_abandoned();
        }
        permit
    }

    /// Takes the next free index, if there is room for it. Does not block.
    ///
    /// # Errors
    /// [`Error::Closed`], [`Error::Poisoned`].
    pub fn try_claim(&self) -> Result<Option<Permit<'_, T, S>>> {
        self.check_open()?;
        let mut index = self.next.load(Relaxed);
        while index < self.appended() + self.capacity() {
            match self.next.compare_exchange_weak(index, index + 1, Relaxed, Relaxed) {
                Ok(_) => return self.take(index, &Deadline::NEVER).map(Some),
                Err(other) => index = other,
            }
        }
        Ok(None)
    }

    /// Takes this index, once there is room for it. Blocks the calling thread.
    ///
    /// Room is by index, not by number: a later entry cannot take the room of the entry that it waits for.
    ///
    /// # Errors
    /// [`Error::Invalid`]: the index was taken before, or is beyond the last possible one. [`Error::TimedOut`]: there
    /// was no room in time. [`Error::Closed`], [`Error::Poisoned`].
    #[inline]
    pub fn take(&self, index: u64, deadline: &Deadline) -> Result<Permit<'_, T, S>> {
        if index > INDEX_MAX {
            return Err(Error::Invalid {
                reason: format!("entry {index} is beyond the last possible one, {INDEX_MAX}"),
            });
        }
        self.take_on(None, index, deadline)
    }

    #[inline]
    fn take_on(&self, parker: Option<Arc<Parker>>, index: u64, deadline: &Deadline) -> Result<Permit<'_, T, S>> {
        self.check_open()?;
        let mut parker = parker;
        let (slot, lap) = self.slot(index);
        let mut word = slot.word.load(Acquire);
        loop {
            if word & !TOKEN == lap {
                match slot.word.compare_exchange_weak(word, word | TAKEN, AcqRel, Acquire) {
                    Ok(_) => return Ok(Permit::new(self, index)),
                    Err(other) => word = other,
                }
            } else if word >> LAP_SHIFT >= lap >> LAP_SHIFT {
                return Err(Error::Invalid { reason: format!("entry {index} has been there before") });
            } else {
                self.wait_for_room(&parker.take().unwrap_or_default(), index, deadline)?;
                word = slot.word.load(Acquire);
            }
        }
    }

    /// Ends every wait, now and later. A run that is under way comes to its end. Entries behind a gap are not appended.
    pub fn close(&self) {
        self.end(CLOSED);
    }

    fn end(&self, state: u64) {
        if self.state.compare_exchange(OPEN, state, AcqRel, Acquire).is_ok() {
            self.waits.wake_all();
        }
    }

    /// Checks that the sequencer is neither closed nor poisoned.
    ///
    /// # Errors
    /// [`Error::Closed`], [`Error::Poisoned`].
    #[inline]
    pub fn check_open(&self) -> Result<()> {
        match self.state.load(Acquire) {
            OPEN => Ok(()),
            CLOSED => Err(Error::Closed { what: "sequencer" }),
            _ => Err(Error::Poisoned { index: self.appended() }),
        }
    }
}

impl<T, S> Drop for Sequencer<T, S> {
    fn drop(&mut self) {
        for slot in &self.slots {
            if slot.word.load(Acquire) & FILLED != 0 {
                // SAFETY: the entry is there, and no other thread has the sequencer.
                slot.entry.with_mut(|cell| unsafe { (*cell).assume_init_drop() });
            }
        }
    }
}

impl<T, S: Sink<T>> std::fmt::Debug for Sequencer<T, S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Sequencer({} appended, capacity {})", self.appended(), self.capacity())
    }
}
