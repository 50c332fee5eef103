//! Entries that come in any order and take effect in order: a ring of one word per index, and one token.
//!
//! The token rests at the first index that is missing. Whoever fills that index picks it up, is from then on the only one
//! who may append, appends all that is contiguous, for everybody, and puts the token down at the next missing index. Nobody
//! is woken for it. Only those who must wait (for their own entry, or for room) park, and each is woken once, when it can go
//! on, after the token is down: one that is woken earlier queues up behind the run again.
//!
//! **Sources.** The problem is that of Apache `IoTDB`'s log manager, which stripes one condition into many. Slots stamped with
//! their lap are the LMAX Disruptor's (`availableBuffer`); that one thread does the work of all who wait is flat combining
//! (Hendler, Incze, Shavit and Tzafrir 2010), here without its lock and without its search.
//!
//! **Memory ordering.** All that races for an index is in its word, and whatever may race there is a read-modify-write with
//! acquire and release: the `FILLED` of whoever comes and the `TOKEN` of whoever puts the token down are ordered, so that
//! exactly one of the two sees the other. An entry is written before its `FILLED` is released and read after that was
//! acquired. The token's acquire is the sink's lock. Two words meet in a wait alone: whoever waits announces itself in
//! `Waits`, then reads `appended`; a run writes `appended`, then reads what is announced. Both do that by a read-modify-write
//! of one word: whichever comes second sees what the other did before.
//!
//! **Costs.** A run goes on as long as entries come, so one thread may append for all others for a while; who waits for its
//! own entry is then woken once in every lap of the ring.

use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::time::Instant;

use crate::clock::Deadline;
use crate::sync::{AtomicU64, Mutex, UnsafeCell, lock};
use crate::waits::{Registration, Waits};
use crate::{Error, Result};
use crate::{Parker, Waker};

/// Somebody has taken the index.
const TAKEN: u64 = 1;
/// The entry is there.
const FILLED: u64 = 2;
/// There will be no entry: the run passes over the index.
const VOID: u64 = 4;
/// The token is here.
const TOKEN: u64 = 8;
/// The rest of a word counts how often the ring has gone round.
const LAP_SHIFT: u32 = 4;
/// The last index. A later one's lap would not fit into its slot's word, and would be taken for an earlier lap.
const INDEX_MAX: u64 = (u64::MAX >> LAP_SHIFT) - 1;

const OPEN: u64 = 0;
const CLOSED: u64 = 1;
const POISONED: u64 = 2;

/// After so many entries a run lets the sink flush and says how far it came.
const FLUSH_ENTRIES: u64 = 512;

/// Where entries go in order. One thread at a time calls it, whichever filled the gap, and no lock is held.
///
/// It may leave entries of its own behind, but must not wait for one, nor for room.
pub trait Sink<T>: Send {
    /// Takes the next entry.
    fn append(&mut self, index: u64, entry: T);

    /// Called before anybody hears that what was given so far has been appended; `false` poisons the sequencer.
    fn flush(&mut self) -> bool {
        true
    }
}

impl<T, F: FnMut(u64, T) + Send> Sink<T> for F {
    fn append(&mut self, index: u64, entry: T) {
        self(index, entry);
    }
}

/// Entries that come in any order and take effect in order.
pub struct Sequencer<T, S> {
    slots: Box<[Slot<T>]>,
    capacity_shift: u32,
    /// The next index for whoever has none of its own.
    next: AtomicU64,
    /// How many have been appended or passed over: all before this index.
    appended: AtomicU64,
    state: AtomicU64,
    waits: Waits,
    /// Where the token was put down last. For reports: orders nothing.
    resting: AtomicU64,
    /// The missing index whose time stands in `gap`. For reports: orders nothing.
    noted: AtomicU64,
    gap: Mutex<Option<Missing>>,
    /// Only the holder of the token is in here.
    sink: UnsafeCell<S>,
}

struct Slot<T> {
    word: AtomicU64,
    entry: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: an entry is written by the one thread that has taken its index, and read by the one that has claimed it from there,
// both ordered by the slot's word; the sink belongs to the holder of the token; the rest is atomic or has a lock.
unsafe impl<T: Send, S: Send> Sync for Sequencer<T, S> {}
// SAFETY: nothing in it belongs to a thread.
unsafe impl<T: Send, S: Send> Send for Sequencer<T, S> {}

/// An index that has not come though later ones have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Which.
    pub index: u64,
    /// Since when a later one waits for it.
    pub since: Instant,
}

/// What stands at an index.
enum Found<T> {
    Entry(T),
    Void,
    Missing(u64),
}

impl<T, S: Sink<T>> Sequencer<T, S> {
    /// A sequencer whose entries go to `sink`, with room for at least so many at once (a power of two is taken).
    pub fn new(capacity: usize, sink: S) -> Self {
        let capacity = capacity.max(1).next_power_of_two();
        let slot = |index| Slot {
            word: AtomicU64::new(if index == 0 { TOKEN } else { 0 }),
            entry: UnsafeCell::new(MaybeUninit::uninit()),
        };
        Self {
            slots: (0..capacity).map(slot).collect(),
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

    /// How many entries there is room for.
    pub const fn capacity(&self) -> u64 {
        1 << self.capacity_shift
    }

    /// How many have been appended or passed over: all before this index. Does not block.
    #[inline]
    pub fn appended(&self) -> u64 {
        self.appended.load(Acquire)
    }

    #[inline]
    fn slot(&self, index: u64) -> (&Slot<T>, u64) {
        let place = (index & (self.capacity() - 1)) as usize;
        (&self.slots[place], (index >> self.capacity_shift) << LAP_SHIFT)
    }

    /// The next index that nobody has, once there is room for it. Blocks the calling thread.
    ///
    /// # Errors
    /// [`Error::TimedOut`], and the index is void; [`Error::Closed`], [`Error::Poisoned`].
    #[inline]
    pub fn claim(&self, deadline: &Deadline) -> Result<Permit<'_, T, S>> {
        self.claim_on(None, deadline)
    }

    /// As `claim`, in a parking place that nobody has used yet.
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

    /// The next index that nobody has, if there is room for it. Does not block.
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

    /// This index, once there is room for it. Blocks the calling thread.
    ///
    /// Room is by index, not by number: a successor can't take the place of the entry that it waits for.
    ///
    /// # Errors
    /// [`Error::Invalid`]: somebody had it before, or it is beyond the last possible one; [`Error::TimedOut`]: no room in time; [`Error::Closed`], [`Error::Poisoned`].
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
                    Ok(_) => return Ok(Permit { sequencer: self, index }),
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

    #[cold]
    fn wait_for_room(&self, parker: &Arc<Parker>, index: u64, deadline: &Deadline) -> Result<()> {
        self.wait_on(parker, index + 1 - self.capacity(), deadline).map_err(|error| match error {
            Error::TimedOut { waited, .. } => {
                let operation = format!("take index {index} of a full ring of {}{}", self.capacity(), self.because());
                Error::TimedOut { operation, waited }
            }
            other => other,
        })
    }

    /// Waits until so many entries have been appended. Blocks the calling thread.
    ///
    /// # Errors
    /// [`Error::TimedOut`], [`Error::Closed`], [`Error::Poisoned`].
    #[inline]
    pub fn wait_for(&self, count: u64, deadline: &Deadline) -> Result<()> {
        if self.appended() >= count { Ok(()) } else { self.wait_on(&Arc::default(), count, deadline) }
    }

    /// As `wait_for`, in a parking place that nobody has used yet.
    pub fn wait_on(&self, parker: &Arc<Parker>, count: u64, deadline: &Deadline) -> Result<()> {
        let began = Instant::now();
        if let Some(registration) = self.register(count, Waker::Parker(Arc::clone(parker)))
            && !parker.park_until(deadline)
        {
            self.waits.unregister(registration);
        }
        if self.appended() >= count {
            return Ok(());
        }
        self.check_open()?;
        let operation = format!("wait for entry {}{}", count - 1, self.because());
        Err(Error::TimedOut { operation, waited: began.elapsed() })
    }

    fn because(&self) -> String {
        self.missing().map_or_else(String::new, |missing| {
            format!(" (entry {} has been missing for {:.3} s)", missing.index, missing.since.elapsed().as_secs_f64())
        })
    }

    /// Has a waker woken when so many entries have been appended, or when that will never be; `None` when it is so already.
    /// Does not block.
    pub fn register(&self, count: u64, waker: Waker) -> Option<Registration> {
        let registration = self.waits.register(count, waker);
        if self.appended() < count && self.state.load(Acquire) == OPEN {
            return Some(registration);
        }
        self.waits.unregister(registration);
        None
    }

    /// Takes a registration back. Does not block.
    pub fn unregister(&self, registration: Registration) {
        self.waits.unregister(registration);
    }

    /// Ends every wait, now and later. A run that is under way comes to its end; entries behind a gap stay where they are.
    pub fn close(&self) {
        self.end(CLOSED);
    }

    fn end(&self, state: u64) {
        if self.state.compare_exchange(OPEN, state, AcqRel, Acquire).is_ok() {
            self.waits.wake_all();
        }
    }

    /// Refuses when the sequencer is closed or poisoned.
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

    /// The index that has not come though later ones have, if there is one. Does not block.
    pub fn missing(&self) -> Option<Missing> {
        let index = self.appended();
        let (slot, lap) = self.slot(index);
        if slot.word.load(Acquire) & !TAKEN != lap | TOKEN {
            return None; // A run is under way.
        }
        let mut gap = lock(&self.gap);
        if let Some(noted) = gap.filter(|noted| noted.index == index) {
            return Some(noted);
        }
        let has_come = |later| {
            let (slot, lap) = self.slot(later);
            slot.word.load(Relaxed) == lap | TAKEN | FILLED
        };
        if (index + 1..index + self.capacity()).any(has_come) {
            *gap = Some(Missing { index, since: Instant::now() });
            return *gap;
        }
        None
    }

    /// Notes since when an index is missing: the first entry that comes behind it does.
    #[inline]
    fn note_gap(&self) {
        let resting = self.resting.load(Relaxed);
        if self.noted.load(Relaxed) != resting {
            self.noted.store(resting, Relaxed);
            *lock(&self.gap) = Some(Missing { index: resting, since: Instant::now() });
        }
    }

    /// Leaves the entry; where it was the missing one, appends all that is contiguous. What the caller appended.
    #[inline]
    fn fill(&self, index: u64, entry: T) -> Range<u64> {
        let (slot, _) = self.slot(index);
        // SAFETY: the caller alone has taken the index, and nobody reads before FILLED is set.
        slot.entry.with_mut(|cell| unsafe {
            (*cell).write(entry);
        });
        self.arrive(slot, index, FILLED)
    }

    fn void(&self, index: u64) -> Range<u64> {
        self.arrive(self.slot(index).0, index, VOID)
    }

    #[inline]
    fn arrive(&self, slot: &Slot<T>, index: u64, what: u64) -> Range<u64> {
        if slot.word.fetch_or(what, AcqRel) & TOKEN == 0 {
            self.note_gap();
            return index..index;
        }
        index..self.run(index)
    }

    /// Appends from an index at which we hold the token; returns where it rests now, or was lost.
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
                    // SAFETY: we hold the token.
                    self.sink.with_mut(|sink| unsafe { (*sink).append(at, entry) });
                    at += 1;
                }
                Found::Void => at += 1,
                Found::Missing(word) => {
                    // Before the token is down, so that a later run's word is the later one.
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

    /// What stands at an index; an entry leaves the ring, whose slot is then free for the next lap.
    #[inline]
    fn take_out(&self, index: u64) -> Found<T> {
        let (slot, lap) = self.slot(index);
        let next_lap = lap + (1 << LAP_SHIFT);
        let mut word = slot.word.load(Acquire);
        while word & FILLED != 0 {
            // Claimed before it is read: whoever left it may be taking it back at this moment.
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

    #[inline]
    fn publish(&self, at: u64) -> bool {
        // SAFETY: we hold the token.
        let is_well = self.sink.with_mut(|sink| unsafe { (*sink).flush() });
        if is_well {
            self.appended.store(at, Release);
        } else {
            self.end(POISONED);
        }
        is_well
    }

    /// Puts the token down at a missing index; `false`, and we still hold it, when the index has come meanwhile.
    #[inline]
    fn put_down(&self, index: u64, word: u64) -> bool {
        self.resting.store(index, Relaxed);
        let (slot, _) = self.slot(index);
        slot.word.compare_exchange(word, word | TOKEN, AcqRel, Acquire).is_ok()
    }

    /// Takes back an entry that was left and has not been appended; its index is void.
    fn withdraw(&self, index: u64) -> Option<T> {
        let (slot, lap) = self.slot(index);
        // As if it had been taken and not filled: from here on the cell is ours again.
        slot.word.compare_exchange(lap | TAKEN | FILLED, lap | TAKEN, AcqRel, Acquire).ok()?;
        // SAFETY: the entry was there, and nobody else reads it now.
        let entry = slot.entry.with_mut(|cell| unsafe { (*cell).assume_init_read() });
        self.void(index);
        Some(entry)
    }

    /// Passes over indexes that were given up while there was no room for them yet.
    #[cold]
    fn void_abandoned(&self) {
        while let Some(index) = self.waits.abandoned_before(self.appended() + self.capacity()) {
            // It has room, so that this does not wait.
            drop(self.take(index, &Deadline::NEVER));
        }
    }
}

impl<T, S> Drop for Sequencer<T, S> {
    fn drop(&mut self) {
        for slot in &self.slots {
            if slot.word.load(Acquire) & FILLED != 0 {
                // SAFETY: the entry is there, and nobody else is.
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

/// A sink that panics takes the token with it: nobody could know how far the run came.
struct PoisonOnPanic<'a, T, S: Sink<T>>(&'a Sequencer<T, S>);

impl<T, S: Sink<T>> Drop for PoisonOnPanic<'_, T, S> {
    fn drop(&mut self) {
        self.0.end(POISONED);
    }
}

/// An index that belongs to its holder alone. Dropped without an entry it is void: no gap is ever left behind.
#[must_use = "an index that is dropped is void"]
pub struct Permit<'a, T, S: Sink<T>> {
    sequencer: &'a Sequencer<T, S>,
    index: u64,
}

impl<'a, T, S: Sink<T>> Permit<'a, T, S> {
    /// Which index.
    pub const fn index(&self) -> u64 {
        self.index
    }

    /// The index, whose permit `permit_of` makes again.
    pub const fn into_index(self) -> u64 {
        let index = self.index;
        std::mem::forget(self);
        index
    }

    /// Leaves the entry and goes on. Whoever fills the gap appends for everybody, so this may call the sink, and never
    /// waits.
    #[inline]
    pub fn deposit(self, entry: T) -> Ticket<'a, T, S> {
        let sequencer = self.sequencer;
        let ticket = Ticket { sequencer, index: self.into_index() };
        sequencer.fill(ticket.index, entry);
        ticket
    }

    /// Leaves the entry; where it was the missing one, the run is the caller's. What the caller has appended: nothing, or its
    /// own entry and all that were waiting for it.
    #[inline]
    pub fn claim_run(self, entry: T) -> Range<u64> {
        let sequencer = self.sequencer;
        sequencer.fill(self.into_index(), entry)
    }

    /// Leaves the entry and waits until it has been appended. Blocks the calling thread.
    ///
    /// # Errors
    /// With the entry, which was not appended and whose index is void: [`Error::TimedOut`], [`Error::Closed`],
    /// [`Error::Poisoned`]. Without it, the same: somebody is appending it at this moment, or has panicked over it.
    #[inline]
    pub fn append(self, entry: T, deadline: &Deadline) -> std::result::Result<(), (Error, Option<T>)> {
        let ticket = self.deposit(entry);
        ticket.wait(deadline).map_err(|error| (error, ticket.cancel()))
    }

    /// Says that no entry will come: the index is passed over. May call the sink, and never waits.
    pub fn void(self) {
        drop(self);
    }
}

impl<T, S: Sink<T>> Drop for Permit<'_, T, S> {
    fn drop(&mut self) {
        self.sequencer.void(self.index);
    }
}

impl<T, S: Sink<T>> Sequencer<T, S> {
    /// The permit of an index that was taken before, and whose permit was forgotten by `into_index`.
    ///
    /// # Safety
    /// Nobody else has a permit of this index, nor has had one that ended otherwise.
    pub const unsafe fn permit_of(&self, index: u64) -> Permit<'_, T, S> {
        Permit { sequencer: self, index }
    }

    /// The ticket of an entry that was left.
    ///
    /// # Safety
    /// Nobody else has a ticket of this entry.
    pub const unsafe fn ticket_of(&self, index: u64) -> Ticket<'_, T, S> {
        Ticket { sequencer: self, index }
    }
}

/// An entry that was left, and whether it has been appended.
#[derive(Debug)]
pub struct Ticket<'a, T, S: Sink<T>> {
    sequencer: &'a Sequencer<T, S>,
    index: u64,
}

impl<T, S: Sink<T>> Ticket<'_, T, S> {
    /// Of which index.
    pub const fn index(&self) -> u64 {
        self.index
    }

    /// Whether the entry has been appended. Does not block.
    pub fn is_appended(&self) -> bool {
        self.sequencer.appended() > self.index
    }

    /// Waits until the entry has been appended. Blocks the calling thread.
    ///
    /// # Errors
    /// [`Error::TimedOut`]: not in time, it may still be; [`Error::Closed`], [`Error::Poisoned`].
    #[inline]
    pub fn wait(&self, deadline: &Deadline) -> Result<()> {
        self.sequencer.wait_for(self.index + 1, deadline)
    }

    /// Takes the entry back and makes its index void; `None` when it has been appended, or is about to be.
    pub fn cancel(self) -> Option<T> {
        self.sequencer.withdraw(self.index)
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use std::time::Duration;

    use super::*;

    type Log = Arc<std::sync::Mutex<Vec<u64>>>;

    fn collecting(capacity: usize) -> (Sequencer<u64, impl Sink<u64>>, Log) {
        let log = Log::default();
        let sink = {
            let log = Arc::clone(&log);
            move |index, entry| {
                assert_eq!(index, entry);
                log.lock().expect("no panic").push(entry);
            }
        };
        (Sequencer::new(capacity, sink), log)
    }

    fn seen(log: &Log) -> Vec<u64> {
        log.lock().expect("no panic").clone()
    }

    fn now() -> Deadline {
        Deadline::after(Some(Duration::ZERO))
    }

    fn soon() -> Deadline {
        Deadline::after(Some(Duration::from_secs(10)))
    }

    #[test]
    fn entries_in_reverse_order_are_appended_by_whoever_fills_the_gap() {
        let (sequencer, log) = collecting(8);
        for index in (1..8).rev() {
            assert!(sequencer.take(index, &now()).expect("room").claim_run(index).is_empty());
        }
        assert!(seen(&log).is_empty());
        assert_eq!(sequencer.take(0, &now()).expect("room").claim_run(0), 0..8);
        assert_eq!(seen(&log), (0..8).collect::<Vec<_>>());
        assert_eq!(sequencer.appended(), 8);
    }

    #[test]
    fn an_index_can_be_taken_once() {
        let (sequencer, _log) = collecting(4);
        let permit = sequencer.take(0, &now()).expect("room");
        assert!(matches!(sequencer.take(0, &now()), Err(Error::Invalid { .. })));
        permit.deposit(0);
        assert!(matches!(sequencer.take(0, &now()), Err(Error::Invalid { .. })));
    }

    #[test]
    fn a_dropped_permit_leaves_no_gap() {
        let (sequencer, log) = collecting(4);
        let first = sequencer.claim(&now()).expect("room");
        sequencer.claim(&now()).expect("room").deposit(1);
        drop(first);
        assert_eq!(seen(&log), [1]);
        assert_eq!(sequencer.appended(), 2);
    }

    #[test]
    fn room_is_by_index() {
        let (sequencer, _log) = collecting(2);
        sequencer.take(1, &now()).expect("room").deposit(1);
        assert!(matches!(sequencer.take(2, &now()), Err(Error::TimedOut { .. })));
        sequencer.take(0, &now()).expect("the missing one has room").deposit(0);
        sequencer.take(2, &now()).expect("room again").deposit(2);
        assert_eq!(sequencer.appended(), 3);
    }

    #[test]
    fn a_claim_that_gives_up_leaves_no_gap() {
        let (sequencer, log) = collecting(1);
        let first = sequencer.claim(&now()).expect("room");
        assert!(sequencer.try_claim().expect("open").is_none());
        assert!(matches!(sequencer.claim(&now()), Err(Error::TimedOut { .. })));
        first.deposit(0);
        assert_eq!(sequencer.appended(), 2);
        let third = sequencer.claim(&now()).expect("room");
        assert_eq!(third.index(), 2);
        third.deposit(2);
        assert_eq!(seen(&log), [0, 2]);
    }

    #[test]
    fn whoever_gives_up_gets_its_entry_back_and_its_index_is_void() {
        let (sequencer, log) = collecting(4);
        let second = sequencer.take(1, &now()).expect("room");
        let (error, entry) = second.append(1, &now()).expect_err("the first is missing");
        assert!(matches!(&error, Error::TimedOut { operation, .. } if operation.contains("entry 0 has been missing")));
        assert_eq!(entry, Some(1));
        sequencer.take(0, &now()).expect("room").deposit(0);
        assert_eq!(seen(&log), [0]);
        assert_eq!(sequencer.appended(), 2);
    }

    #[test]
    fn what_is_missing_is_named() {
        let (sequencer, _log) = collecting(8);
        assert_eq!(sequencer.missing(), None);
        sequencer.take(0, &now()).expect("room").deposit(0);
        assert_eq!(sequencer.missing(), None);
        sequencer.take(3, &now()).expect("room").deposit(3);
        let missing = sequencer.missing().expect("1 is missing");
        assert_eq!(missing.index, 1);
        sequencer.take(1, &now()).expect("room").deposit(1);
        assert_eq!(sequencer.missing().map(|missing| missing.index), Some(2));
        sequencer.take(2, &now()).expect("room").void();
        assert_eq!(sequencer.missing(), None);
    }

    #[test]
    fn closing_ends_waits_and_refuses_what_comes_later() {
        let (sequencer, _log) = collecting(4);
        let sequencer = Arc::new(sequencer);
        let waiter = std::thread::spawn({
            let sequencer = Arc::clone(&sequencer);
            move || sequencer.take(1, &soon()).expect("room").append(1, &soon())
        });
        while sequencer.missing().is_none() {
            std::thread::yield_now();
        }
        sequencer.close();
        let (error, entry) = waiter.join().expect("no panic").expect_err("closed");
        assert!(matches!(error, Error::Closed { .. }));
        assert_eq!(entry, Some(1));
        assert!(matches!(sequencer.claim(&soon()), Err(Error::Closed { .. })));
    }

    #[test]
    fn a_sink_that_panics_poisons_everything() {
        let sequencer = Arc::new(Sequencer::new(4, |index: u64, _: u64| assert_ne!(index, 1, "broken")));
        let waiter = std::thread::spawn({
            let sequencer = Arc::clone(&sequencer);
            move || sequencer.take(2, &soon()).expect("room").append(2, &soon())
        });
        while sequencer.missing().is_none() {
            std::thread::yield_now();
        }
        sequencer.take(0, &now()).expect("room").deposit(0);
        let filler = std::thread::spawn({
            let sequencer = Arc::clone(&sequencer);
            move || sequencer.take(1, &now()).expect("room").claim_run(1)
        });
        assert!(filler.join().is_err());
        let (error, _entry) = waiter.join().expect("no panic").expect_err("poisoned");
        assert!(matches!(error, Error::Poisoned { index: 1 }), "{error}");
        assert!(matches!(sequencer.take(3, &now()), Err(Error::Poisoned { .. })));
    }

    #[test]
    fn values_that_were_never_appended_are_dropped() {
        let entry = Arc::new(());
        let sequencer = Sequencer::new(4, |_, _: Arc<()>| ());
        sequencer.take(2, &now()).expect("room").deposit(Arc::clone(&entry));
        assert_eq!(Arc::strong_count(&entry), 2);
        drop(sequencer);
        assert_eq!(Arc::strong_count(&entry), 1);
    }

    #[test]
    fn many_threads_append_in_order_through_a_small_ring() {
        const THREADS: u64 = 16;
        const ENTRIES: u64 = 2_000;
        let (sequencer, log) = collecting(32);
        let sequencer = Arc::new(sequencer);
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let sequencer = Arc::clone(&sequencer);
                std::thread::spawn(move || {
                    for number in 0..ENTRIES {
                        let permit = sequencer.claim(&soon()).expect("room");
                        let index = permit.index();
                        match (thread + number) % 5 {
                            0 => drop(permit),
                            1 | 2 => {
                                permit.claim_run(index);
                            }
                            _ => permit.append(index, &soon()).expect("appended"),
                        }
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        assert_eq!(sequencer.appended(), THREADS * ENTRIES);
        let log = seen(&log);
        assert_eq!(log.len() as u64, THREADS * ENTRIES * 4 / 5);
        assert!(log.is_sorted());
    }
}
