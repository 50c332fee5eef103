//! Entries that come in any order and leave in the order of their ordinals.
//!
//! The thread that brings the missing entry becomes the *runner*: it alone takes entries out, until the next one is
//! missing. Other threads only add theirs, so that no thread waits for another. The lock is held for moves only. The
//! buffer is as large as the gap between the missing entry and the last one that came.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// An empty buffer keeps memory for this number of entries.
const KEPT: usize = 1_024;

/// Entries by ordinal, from 0.
#[derive(Debug)]
pub struct ReorderBuffer<E> {
    state: Mutex<State<E>>,
}

#[derive(Debug)]
struct State<E> {
    /// The ordinal whose turn it is.
    next: u64,
    /// The places from `next` on.
    places: VecDeque<Place<E>>,
    /// There is a runner.
    has_runner: bool,
    is_closed: bool,
}

#[derive(Debug)]
enum Place<E> {
    Missing,
    /// No entry will come.
    Skipped,
    Entry(E),
}

/// The turn of an ordinal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It is now: the caller is the runner, and calls `end_turn`.
    Now,
    /// It comes later: the caller adds its entry.
    Later,
    /// It is over: the entry was there, or was skipped.
    Over,
    /// It will not come: the buffer was closed.
    Never,
}

/// The result of adding an entry.
#[derive(Debug, PartialEq, Eq)]
pub enum Added<E> {
    /// A later entry, or the runner of now, brings it out.
    Waits,
    /// The caller is the runner, and calls `take_run` until it returns nothing.
    Runs,
    /// Its turn is over.
    Late(E),
    /// The buffer was closed.
    Closed(E),
}

impl<E> Default for ReorderBuffer<E> {
    fn default() -> Self {
        let state = State { next: 0, places: VecDeque::new(), has_runner: false, is_closed: false };
        Self { state: Mutex::new(state) }
    }
}

impl<E> ReorderBuffer<E> {
    fn state(&self) -> MutexGuard<'_, State<E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins the turn of an ordinal, if it has come and there is no runner. Does not block.
    pub fn begin_turn(&self, ordinal: u64) -> Turn {
        let mut state = self.state();
        let turn = state.turn_of(ordinal);
        state.has_runner |= turn == Turn::Now;
        turn
    }

    /// Ends the turn that `begin_turn` began. With `is_done` the next ordinal's turn has come; else the place stays
    /// open. Returns whether there is more to take out: the caller then stays the runner, and calls `take_run`.
    pub fn end_turn(&self, is_done: bool) -> bool {
        let mut state = self.state();
        if is_done {
            state.places.pop_front();
            state.next += 1;
        }
        state.has_runner = state.has_more();
        state.has_runner
    }

    /// Adds an entry. Does not block.
    pub fn add(&self, ordinal: u64, entry: E) -> Added<E> {
        let mut state = self.state();
        match state.turn_of(ordinal) {
            Turn::Over => return Added::Late(entry),
            Turn::Never => return Added::Closed(entry),
            Turn::Now | Turn::Later => *state.place(ordinal) = Place::Entry(entry),
        }
        if state.begin_run() { Added::Runs } else { Added::Waits }
    }

    /// Skips the place of an ordinal, if its turn is not over. Returns whether the caller is the runner now, and calls
    /// `take_run`. Does not block.
    pub fn skip(&self, ordinal: u64) -> bool {
        let mut state = self.state();
        match state.turn_of(ordinal) {
            Turn::Over | Turn::Never => return false,
            Turn::Now | Turn::Later => *state.place(ordinal) = Place::Skipped,
        }
        state.begin_run()
    }

    /// Takes out up to `most` entries whose turn it is. When there are none, the caller is no longer the runner.
    pub fn take_run(&self, most: usize) -> Vec<E> {
        let (mut run, mut state) = (Vec::new(), self.state());
        while run.len() < most && state.has_more() {
            state.next += 1;
            if let Some(Place::Entry(entry)) = state.places.pop_front() {
                run.push(entry);
            }
        }
        state.has_runner = !run.is_empty();
        if state.places.is_empty() && state.places.capacity() > KEPT {
            state.places.shrink_to(KEPT);
        }
        run
    }

    /// Ends it: entries that wait are returned, and later ones are refused. A run that is under way comes to its end.
    #[must_use = "entries may own what must not be dropped under a lock"]
    pub fn close(&self) -> Vec<E> {
        let mut state = self.state();
        state.is_closed = true;
        let places = std::mem::take(&mut state.places);
        places
            .into_iter()
            .filter_map(|place| if let Place::Entry(entry) = place { Some(entry) } else { None })
            .collect()
    }
}

impl<E> State<E> {
    fn turn_of(&self, ordinal: u64) -> Turn {
        if self.is_closed {
            return Turn::Never;
        }
        let Some(index) = ordinal.checked_sub(self.next) else { return Turn::Over };
        match self.places.get(index as usize) {
            Some(Place::Skipped | Place::Entry(_)) => Turn::Over,
            _ if index == 0 && !self.has_runner => Turn::Now,
            _ => Turn::Later,
        }
    }

    fn place(&mut self, ordinal: u64) -> &mut Place<E> {
        let index = (ordinal - self.next) as usize;
        if self.places.len() <= index {
            self.places.resize_with(index + 1, || Place::Missing);
        }
        &mut self.places[index]
    }

    fn has_more(&self) -> bool {
        matches!(self.places.front(), Some(Place::Skipped | Place::Entry(_)))
    }

    /// Makes the caller the runner, if there is none and something to take out.
    fn begin_run(&mut self) -> bool {
        let begins = !self.has_runner && self.has_more();
        self.has_runner |= begins;
        begins
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use std::sync::Barrier;

    use super::*;

    fn run(buffer: &ReorderBuffer<u64>) -> Vec<u64> {
        let mut all = Vec::new();
        loop {
            let run = buffer.take_run(2);
            if run.is_empty() {
                return all;
            }
            all.extend(run);
        }
    }

    #[test]
    fn the_missing_entry_brings_out_those_behind_it() {
        let buffer = ReorderBuffer::default();
        assert_eq!(buffer.add(2, 2), Added::Waits);
        assert_eq!(buffer.add(1, 1), Added::Waits);
        assert_eq!(buffer.add(0, 0), Added::Runs);
        assert_eq!(run(&buffer), [0, 1, 2]);
        assert_eq!(buffer.begin_turn(3), Turn::Now);
    }

    #[test]
    fn a_skipped_place_holds_up_nothing() {
        let buffer = ReorderBuffer::default();
        assert!(!buffer.skip(1));
        assert_eq!(buffer.add(2, 2), Added::Waits);
        assert!(buffer.skip(0));
        assert_eq!(run(&buffer), [2]);
        assert!(!buffer.skip(0), "its turn is over");
    }

    #[test]
    fn an_entry_that_comes_during_a_run_is_taken_out_by_the_runner() {
        let buffer = ReorderBuffer::default();
        assert_eq!(buffer.add(0, 0), Added::Runs);
        assert_eq!(buffer.take_run(1), [0]);
        assert_eq!(buffer.begin_turn(1), Turn::Later);
        assert_eq!(buffer.add(1, 1), Added::Waits);
        assert!(!buffer.skip(2));
        assert_eq!(run(&buffer), [1]);
        assert_eq!(buffer.begin_turn(3), Turn::Now);
    }

    #[test]
    fn a_turn_that_failed_stays_open() {
        let buffer = ReorderBuffer::default();
        assert_eq!(buffer.begin_turn(0), Turn::Now);
        assert_eq!(buffer.begin_turn(0), Turn::Later);
        assert_eq!(buffer.add(1, 1), Added::Waits);
        assert!(!buffer.end_turn(false));
        assert_eq!(buffer.begin_turn(0), Turn::Now, "once more");
        assert!(buffer.end_turn(true));
        assert_eq!(run(&buffer), [1]);
    }

    #[test]
    fn an_entry_has_one_turn() {
        let buffer = ReorderBuffer::default();
        assert_eq!(buffer.add(1, 1), Added::Waits);
        assert_eq!(buffer.add(1, 7), Added::Late(7));
        assert_eq!(buffer.begin_turn(1), Turn::Over);
        assert_eq!(buffer.begin_turn(0), Turn::Now);
        assert!(buffer.end_turn(true));
        assert_eq!(buffer.add(0, 0), Added::Late(0));
    }

    #[test]
    fn a_closed_buffer_gives_back_what_waits_and_takes_nothing() {
        let buffer = ReorderBuffer::default();
        assert_eq!(buffer.add(1, 1), Added::Waits);
        assert!(!buffer.skip(2));
        assert_eq!(buffer.close(), [1]);
        assert_eq!((buffer.begin_turn(0), buffer.add(0, 0)), (Turn::Never, Added::Closed(0)));
        assert!(!buffer.skip(0));
    }

    #[test]
    fn a_run_ends_when_the_buffer_is_closed_meanwhile() {
        let buffer = ReorderBuffer::default();
        assert_eq!(buffer.begin_turn(0), Turn::Now);
        assert_eq!(buffer.add(1, 1), Added::Waits);
        assert_eq!(buffer.close(), [1]);
        assert!(!buffer.end_turn(true));
    }

    #[test]
    fn an_empty_buffer_keeps_little_memory() {
        let buffer = ReorderBuffer::default();
        for ordinal in (0..100_000).rev() {
            let expected = if ordinal == 0 { Added::Runs } else { Added::Waits };
            assert_eq!(buffer.add(ordinal, ordinal), expected);
        }
        assert_eq!(run(&buffer).len(), 100_000);
        assert!(buffer.state().places.capacity() <= 2 * KEPT);
    }

    #[test]
    fn entries_of_several_threads_leave_in_order_each_once() {
        const THREADS: u64 = 4;
        const EACH: u64 = 5_000;
        let (buffer, out, together) =
            (ReorderBuffer::default(), Mutex::new(Vec::new()), Barrier::new(THREADS as usize));
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (buffer, out, together) = (&buffer, &out, &together);
                scope.spawn(move || {
                    together.wait();
                    for ordinal in (0..EACH).map(|number| number * THREADS + thread) {
                        let runs = match buffer.begin_turn(ordinal) {
                            Turn::Now => {
                                out.try_lock().expect("one runner").push(ordinal);
                                buffer.end_turn(true)
                            }
                            _ => buffer.add(ordinal, ordinal) == Added::Runs,
                        };
                        if !runs {
                            continue;
                        }
                        while let run @ [_, ..] = &buffer.take_run(3)[..] {
                            out.try_lock().expect("one runner").extend(run);
                        }
                    }
                });
            }
        });
        assert_eq!(*out.lock().expect("no panic"), (0..THREADS * EACH).collect::<Vec<_>>());
    }
}
