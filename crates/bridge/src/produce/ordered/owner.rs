//! The results of one job, which its worker and the runner of its queue refer to.

use std::sync::{Mutex, MutexGuard, PoisonError};

use awoke_engine::produce::Deliveries;
use pyo3::prelude::*;

use crate::produce::results::Kept;

/// Records that were sent: the answers to it are waited for as one.
pub type Sent = Deliveries<(i64, Kept)>;
/// Offsets of messages whose result could not be sent, and why.
pub type Failed = Vec<(i64, PyErr)>;

/// The results of one job.
pub struct Owner {
    /// The offset and the ordinal of each message, in the order of the job; `None` for a message of before a seek.
    pub places: Vec<(i64, Option<u64>)>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The place behind the last message that the function was called for, or that was skipped.
    next: usize,
    /// Places whose results wait for their turn.
    waiting: Vec<bool>,
    waits: usize,
    /// Nothing is added any more.
    is_sealed: bool,
    /// The runner sends results, and was not told that the job is sealed.
    is_sending: bool,
    /// Sent, and not handed out yet.
    sent: Sent,
    failed: Failed,
}

impl Owner {
    pub fn new(places: Vec<(i64, Option<u64>)>) -> Self {
        let state = State { waiting: vec![false; places.len()], ..State::default() };
        Self { places, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Goes on to the message with this offset. Returns its place, and where the messages before it begin that the
    /// function was not called for.
    pub fn go_to(&self, offset: i64) -> Option<(usize, usize)> {
        let mut state = self.state();
        let from = state.next;
        let place = self.place_from(from, offset)?;
        state.next = place + 1;
        Some((place, from))
    }

    /// Goes on to a place. Returns the places before it that were not come to.
    pub fn go_before(&self, place: usize) -> std::ops::Range<usize> {
        let mut state = self.state();
        let from = state.next;
        state.next = place.clamp(from, self.places.len());
        from..state.next
    }

    /// Returns the place of the message with this offset.
    pub fn place_of(&self, offset: i64) -> Option<usize> {
        self.place_from(0, offset)
    }

    fn place_from(&self, from: usize, offset: i64) -> Option<usize> {
        self.places[from..].iter().position(|(each, _)| *each == offset).map(|index| from + index)
    }

    pub fn push(&self, handle: std::sync::Arc<awoke_engine::produce::DeliveryHandle>, offset: i64, kept: Kept) {
        self.state().sent.push(handle, (offset, kept));
    }

    pub fn fail(&self, offset: i64, error: PyErr) {
        self.state().failed.push((offset, error));
    }

    /// Notes that the result at this place waits for its turn.
    pub fn wait(&self, place: usize) {
        let mut state = self.state();
        state.waiting[place] = true;
        state.waits += 1;
    }

    /// Notes that the turn of the result at this place has come.
    pub fn end_wait(&self, place: usize) {
        let mut state = self.state();
        if std::mem::take(&mut state.waiting[place]) {
            state.waits -= 1;
        }
    }

    /// Returns whether results wait for their turn.
    pub fn waits(&self) -> bool {
        self.state().waits > 0
    }

    /// Returns the offset of the first message, in the order of the job, whose result waits, or was refused.
    pub fn first_open(&self, refused: &[i64]) -> Option<i64> {
        let state = self.state();
        let waiting = state.waiting.iter().position(|waits| *waits);
        let refused = refused.iter().filter_map(|offset| self.place_of(*offset));
        let first = refused.chain(waiting).min()?;
        Some(self.places[first].0)
    }

    /// Begins a run of the runner's. Returns whether the job is sealed: then it is to be told before anything is sent.
    pub fn begin_sending(&self) -> bool {
        let mut state = self.state();
        state.is_sending = !state.is_sealed;
        state.is_sealed
    }

    /// Ends a run of the runner's. Returns what was sent, if the job is sealed.
    pub fn end_sending(&self) -> Option<(Sent, Failed)> {
        let mut state = self.state();
        state.is_sending = false;
        state.is_sealed.then(|| (std::mem::take(&mut state.sent), std::mem::take(&mut state.failed)))
    }

    /// Ends the adding. Returns what was sent, and whether the runner sends more at this moment.
    pub fn seal(&self) -> (Sent, Failed, bool) {
        let mut state = self.state();
        state.is_sealed = true;
        (std::mem::take(&mut state.sent), std::mem::take(&mut state.failed), state.is_sending)
    }
}
