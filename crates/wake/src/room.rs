//! How many messages, and bytes, may wait for their delivery report: the producer's bound and its waiting line.
//!
//! First come, first served. Whoever leaves makes room and hands it to the head of the line itself, so that each wake-up
//! lets one thread go on and no crowd runs for one place. A report thread leaves once per batch of reports.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use crate::Parker;
use crate::clock::Deadline;
use crate::sync::{Mutex, MutexGuard, lock};
use crate::{Error, Result};

/// How many messages, and bytes, may wait for their delivery report.
#[derive(Debug)]
pub struct Room {
    state: Mutex<State>,
    messages_max: usize,
    bytes_max: usize,
}

#[derive(Debug, Default)]
struct State {
    messages: usize,
    bytes: usize,
    line: VecDeque<Arc<Place>>,
    is_closed: bool,
}

/// One who waits in line.
#[derive(Debug)]
struct Place {
    bytes: usize,
    parker: Arc<Parker>,
}

impl Room {
    /// An empty room for that many messages and bytes.
    pub fn new(messages_max: usize, bytes_max: usize) -> Self {
        Self { state: Mutex::new(State::default()), messages_max, bytes_max }
    }

    /// Enters at once; `false` when there is no room, or others were here before. Does not block.
    pub fn try_enter(&self, bytes: usize) -> Result<bool> {
        let mut state = lock(&self.state);
        if state.is_closed {
            return Err(Error::Closed { what: "producer" });
        }
        let fits = state.line.is_empty() && self.fits(&state, bytes);
        if fits {
            state.admit(bytes);
        }
        Ok(fits)
    }

    /// Has as many of these enter, in their order, as there is room for now; how many. Does not block.
    pub fn try_enter_many(&self, bytes: impl Iterator<Item = usize>) -> Result<usize> {
        let mut state = lock(&self.state);
        if state.is_closed {
            return Err(Error::Closed { what: "producer" });
        }
        if !state.line.is_empty() {
            return Ok(0);
        }
        let before = state.messages;
        for bytes in bytes {
            if !self.fits(&state, bytes) {
                break;
            }
            state.admit(bytes);
        }
        Ok(state.messages - before)
    }

    /// Enters, waiting for room. Blocks the calling thread.
    ///
    /// # Errors
    /// [`Error::QueueFull`] when the deadline passed first, [`Error::Closed`] when the room was closed.
    pub fn enter(&self, bytes: usize, deadline: &Deadline) -> Result<()> {
        self.enter_on(&Arc::default(), bytes, deadline)
    }

    /// As `enter`, in a parking place that nobody has used yet.
    pub fn enter_on(&self, parker: &Arc<Parker>, bytes: usize, deadline: &Deadline) -> Result<()> {
        let since = Instant::now();
        if self.try_enter(bytes)? {
            return Ok(());
        }
        let place = Arc::new(Place { bytes, parker: Arc::clone(parker) });
        {
            let mut state = lock(&self.state);
            if state.is_closed {
                return Err(Error::Closed { what: "producer" }); // Closed since the look above: nobody would wake us.
            }
            state.line.push_back(Arc::clone(&place));
            self.admit_line(state);
        }
        parker.park_until(deadline);
        let mut state = lock(&self.state);
        let in_line = state.line.iter().position(|waiting| Arc::ptr_eq(waiting, &place));
        match in_line {
            // Whoever took us out of the line has counted us in, even if the deadline passed meanwhile.
            None if !state.is_closed => Ok(()),
            None => Err(Error::Closed { what: "producer" }),
            Some(index) => {
                state.line.remove(index);
                let (messages, bytes) = (state.messages, state.bytes);
                // A large message at the head may have held up smaller ones that fit.
                self.admit_line(state);
                Err(Error::QueueFull { waited: since.elapsed(), messages, bytes })
            }
        }
    }

    /// Makes room for those in line. Does not block.
    pub fn leave(&self, messages: usize, bytes: usize) {
        let mut state = lock(&self.state);
        state.messages -= messages;
        state.bytes -= bytes;
        self.admit_line(state);
    }

    /// Turns everybody away, now and later.
    pub fn close(&self) {
        let mut state = lock(&self.state);
        state.is_closed = true;
        let line = std::mem::take(&mut state.line);
        drop(state);
        line.iter().for_each(|place| place.parker.unpark());
    }

    /// Messages and bytes inside.
    pub fn occupancy(&self) -> (usize, usize) {
        let state = lock(&self.state);
        (state.messages, state.bytes)
    }

    /// A message larger than the whole room may enter when it is alone.
    fn fits(&self, state: &State, bytes: usize) -> bool {
        state.messages < self.messages_max && (state.messages == 0 || state.bytes + bytes <= self.bytes_max)
    }

    /// Admits those at the head of the line who fit, and wakes them when the lock is down: they take it first of all.
    fn admit_line(&self, mut state: MutexGuard<'_, State>) {
        let mut admitted = Vec::new();
        while state.line.front().is_some_and(|place| self.fits(&state, place.bytes)) {
            let place = state.line.pop_front().expect("the line has a head");
            state.admit(place.bytes);
            admitted.push(place);
        }
        drop(state);
        admitted.iter().for_each(|place| place.parker.unpark());
    }
}

impl State {
    const fn admit(&mut self, bytes: usize) {
        self.messages += 1;
        self.bytes += bytes;
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use std::time::Duration;

    use super::*;

    fn passed() -> Deadline {
        Deadline::after(Some(Duration::ZERO))
    }

    #[test]
    fn a_full_room_refuses_and_says_how_full() {
        let room = Room::new(2, 100);
        assert!(room.try_enter(10).expect("open") && room.try_enter(10).expect("open"));
        match room.enter(10, &passed()) {
            Err(Error::QueueFull { messages: 2, bytes: 20, .. }) => (),
            other => panic!("{other:?}"),
        }
        room.leave(1, 10);
        assert!(room.try_enter(10).expect("open"));
    }

    #[test]
    fn bytes_are_bounded_too_and_a_giant_enters_alone() {
        let room = Room::new(10, 100);
        assert!(room.try_enter(1_000).expect("open"));
        assert!(!room.try_enter(1).expect("open"));
        room.leave(1, 1_000);
        assert!(room.try_enter(100).expect("open"));
        assert!(!room.try_enter(1).expect("open"));
    }

    #[test]
    fn of_many_as_many_enter_as_there_is_room_for() {
        let room = Room::new(4, 100);
        assert_eq!(room.try_enter_many([10, 10].into_iter()).expect("open"), 2);
        assert_eq!(room.try_enter_many([10, 80, 10].into_iter()).expect("open"), 1);
        assert_eq!(room.occupancy(), (3, 30));
        assert_eq!(room.try_enter_many([10; 3].into_iter()).expect("open"), 1);
        assert_eq!(room.try_enter_many([10; 3].into_iter()).expect("open"), 0);
        room.close();
        assert!(matches!(room.try_enter_many([10].into_iter()), Err(Error::Closed { .. })));
    }

    #[test]
    fn those_who_wait_enter_in_the_order_in_which_they_came() {
        let room = Arc::new(Room::new(1, 100));
        room.enter(1, &passed()).expect("empty");
        let order = Arc::new(std::sync::Mutex::new(Vec::new()));
        let threads: Vec<_> = (0..5)
            .map(|index| {
                let (room_of_thread, order) = (Arc::clone(&room), Arc::clone(&order));
                let thread = std::thread::spawn(move || {
                    room_of_thread.enter(1, &Deadline::NEVER).expect("open");
                    order.lock().expect("no panic").push(index);
                    room_of_thread.leave(1, 1);
                });
                while lock(&room.state).line.len() <= index {
                    std::thread::yield_now();
                }
                thread
            })
            .collect();
        room.leave(1, 1);
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        assert_eq!(*order.lock().expect("no panic"), [0, 1, 2, 3, 4]);
        assert_eq!(room.occupancy(), (0, 0));
    }

    #[test]
    fn closing_turns_those_who_wait_away() {
        let room = Arc::new(Room::new(0, 0));
        let waiting = std::thread::spawn({
            let room = Arc::clone(&room);
            move || room.enter(1, &Deadline::NEVER)
        });
        room.close();
        assert!(matches!(waiting.join().expect("no panic"), Err(Error::Closed { .. })));
    }
}
