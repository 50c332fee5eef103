//! The lanes of a partition whose route works on several of its messages at once.
//!
//! A lane is made when a message comes for it and forgotten when its last one is done, so there are as many as there are
//! keys under way. At most so many jobs run at once, each in a *slot*, which is what the scheduler knows. A job takes the
//! lane that has waited longest (and, where user code wants batches, as many more as make up its share), holds it until it
//! ends, and gives it back. A lane in a back-off keeps its messages and no slot.
//!
//! Nothing waits for anything here: there is no barrier between batches. What bounds it are the messages that are taken in
//! and not done, and how far the first of those may be behind the last: then the partition takes in no more.
//!
//! The lock is held for moves only, and no other one is taken under it.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use super::finished::{Earlier, write_metadata};
use super::offsets::ToCommit;
use super::watermark::{Change, Trail, Watermark};
use crate::kafka::{Batch, Client, Loose, Position, TopicPartition};

/// What messages share a lane by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneBy {
    /// Their key; a message without one has a lane of its own.
    Key,
    /// Nothing: each has a lane of its own.
    Nothing,
    /// A number that the route says for each.
    Route,
}

/// How many messages of a partition are worked on at once, and which not.
#[derive(Clone, Debug)]
pub struct Concurrency {
    /// The most jobs at once.
    pub jobs_max: usize,
    /// What messages share a lane by.
    pub by: LaneBy,
    /// The most messages that are taken in and not done.
    pub in_flight_max: usize,
    /// The most messages from the first that is not done on.
    pub trail_max: usize,
    /// Whether a job may hold several lanes, because user code wants batches.
    pub shares: bool,
    /// After a crash, how many messages are taken one by one.
    pub careful_messages: usize,
    /// Which messages are skipped; `None`: none is.
    pub skip: Option<Arc<dyn SkipPolicy>>,
}

/// Decides which messages are completed without being processed. Any thread; must not block.
pub trait SkipPolicy: std::fmt::Debug + Send + Sync {
    /// Returns whether this message is skipped, at a time in milliseconds since 1970.
    fn skips(&self, message: &Loose, now_ms: u64) -> bool;
}

/// What a job of a lane carries with it.
#[derive(Debug)]
pub(super) struct Hold {
    /// The lanes that it holds.
    lanes: Vec<u64>,
    /// Which reading of the partition it belongs to: after a seek, what it reports is nobody's concern.
    pub(super) epoch: u64,
    /// The slot that it runs in; `None` when it has left it.
    pub(super) slot: Option<usize>,
}

impl Hold {
    /// For messages whose lanes another job goes on to hold.
    pub(super) const fn without_lanes(&self) -> Self {
        Self { lanes: Vec::new(), epoch: self.epoch, slot: None }
    }
}

/// Messages for a job, and how often the first was tried.
pub(super) struct Taken {
    pub(super) batch: Arc<Batch>,
    pub(super) first: usize,
    pub(super) end: usize,
    pub(super) attempts: u32,
    pub(super) hold: Hold,
}

/// Messages to be tried again.
pub(super) struct Retry {
    pub(super) batch: Arc<Batch>,
    pub(super) first: usize,
    pub(super) end: usize,
    /// How often the first was tried.
    pub(super) attempts: u32,
}

/// Whom to tell after a change: the lock is down then.
#[derive(Debug, Default)]
pub(super) struct Wakes {
    /// Slots that have something to do.
    pub(super) slots: Vec<usize>,
    /// The partition may take in more.
    pub(super) takes_in: bool,
    /// There is something to commit.
    pub(super) is_news: bool,
}

/// The lanes of a partition.
pub(super) struct Lanes {
    at: TopicPartition,
    settings: Concurrency,
    client: Arc<Client>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    epoch: u64,
    lanes: HashMap<u64, Lane>,
    /// Lanes with messages that no job holds; the one that has waited longest first.
    ready: VecDeque<u64>,
    /// Messages in those lanes.
    ready_messages: usize,
    /// Jobs that wait for their time.
    parked: BTreeMap<(Instant, u64), (Retry, Vec<u64>)>,
    retries: u64,
    /// Slots that nobody works in, nor has been told to.
    idle: Vec<usize>,
    slots: Vec<Slot>,
    /// Slots that have been told of work and have not come for it.
    told: usize,
    /// Messages taken in and not done.
    in_flight: usize,
    watermark: Watermark,
    /// What was done in an earlier life.
    earlier: Earlier,
    /// Where the group's last commit stood at the start.
    start: Option<Position>,
    /// Before this offset messages are taken one by one.
    careful_until: i64,
    /// The partition waits for room.
    wants_room: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    Idle,
    Told,
    Running,
}

#[derive(Default)]
struct Lane {
    waiting: VecDeque<Loose>,
    is_held: bool,
}

impl Lanes {
    pub(super) fn new(at: TopicPartition, settings: Concurrency, client: Arc<Client>) -> Self {
        let jobs_max = settings.jobs_max.max(1);
        let state =
            State { idle: (0..jobs_max).rev().collect(), slots: vec![Slot::Idle; jobs_max], ..State::default() };
        Self { at, settings: Concurrency { jobs_max, ..settings }, client, state: Mutex::new(state) }
    }

    pub(super) const fn settings(&self) -> &Concurrency {
        &self.settings
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Goes on where an earlier life ended: passes over what its last commit says is done.
    ///
    /// `is_careful`: it ended in a crash, so that messages are taken one by one until those are through that may be the cause.
    pub(super) fn remember(&self, committed: Position, earlier: Earlier, is_careful: bool) {
        let mut state = self.state();
        if is_careful {
            let last = earlier.end().unwrap_or(committed.offset);
            state.careful_until = last.saturating_add(self.settings.careful_messages as i64);
        }
        state.earlier = earlier;
        state.start = Some(committed);
    }

    /// How many more messages may be taken in now; with none, the partition is told when there is room.
    pub(super) fn room(&self) -> usize {
        let mut state = self.state();
        let room = self.room_of(&state);
        state.wants_room = room == 0;
        room
    }

    fn room_of(&self, state: &State) -> usize {
        if state.in_flight > 0 && state.watermark.offset().is_some_and(|offset| offset < state.careful_until) {
            return 0;
        }
        let in_flight = self.settings.in_flight_max.saturating_sub(state.in_flight);
        let most = in_flight.min(self.settings.trail_max.saturating_sub(state.watermark.len()));
        if state.careful_until > 0 { most.min(1) } else { most }
    }

    /// Takes messages in, in offset order. `told` are the numbers of their lanes, where the route says them.
    pub(super) fn admit(&self, batch: Batch, told: Option<&[u64]>) -> Wakes {
        let now = Instant::now();
        let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
        let mut passed_over = Vec::new();
        let mut state = self.state();
        let mut wakes = Wakes::default();
        for (place, message) in batch.into_loose().into_iter().enumerate() {
            let (offset, leader_epoch) = (message.offset(), message.leader_epoch());
            let is_skipped = self.settings.skip.as_ref().is_some_and(|policy| policy.skips(&message, now_ms));
            if is_skipped || state.earlier.has(offset, leader_epoch) {
                wakes.is_news |= state.watermark.pass_over(offset, leader_epoch, now) == Change::Moved;
                passed_over.push(message);
                continue;
            }
            let number = match (self.settings.by, told.and_then(|told| told.get(place))) {
                (LaneBy::Route, Some(number)) => *number,
                (LaneBy::Nothing, _) => offset as u64,
                (LaneBy::Key | LaneBy::Route, _) => message.key().map_or(offset as u64, number_of),
            };
            state.watermark.begin(offset, leader_epoch, now);
            state.in_flight += 1;
            let lane = state.lanes.entry(number).or_default();
            lane.waiting.push_back(message);
            if !lane.is_held {
                let is_first = lane.waiting.len() == 1;
                state.ready_messages += 1;
                if is_first {
                    state.ready.push_back(number);
                }
            }
        }
        if state.watermark.offset().is_some_and(|offset| offset >= state.careful_until) {
            state.careful_until = 0;
        }
        state.wake_slots(&mut wakes);
        drop(state);
        drop(Batch::of_loose(self.at.clone(), passed_over, Arc::clone(&self.client)));
        wakes
    }

    /// Messages for the job that runs in a slot; `None`, and the slot is idle, when there are none.
    pub(super) fn take(&self, slot: usize) -> Option<Taken> {
        let mut state = self.state();
        state.come(slot);
        let epoch = state.epoch;
        if let Some((Retry { batch, first, end, attempts }, lanes)) = state.due_retry() {
            let hold = Hold { lanes, epoch, slot: Some(slot) };
            return Some(Taken { batch, first, end, attempts, hold });
        }
        let (messages, lanes) = state.take_lanes(&self.settings);
        if lanes.is_empty() {
            state.rest(slot);
            return None;
        }
        drop(state);
        let batch = Arc::new(Batch::of_loose(self.at.clone(), messages, Arc::clone(&self.client)));
        let (end, hold) = (batch.len(), Hold { lanes, epoch, slot: Some(slot) });
        Some(Taken { batch, first: 0, end, attempts: 0, hold })
    }

    /// Ends the back-off of all jobs that wait for their time.
    pub(super) fn hasten(&self) -> Wakes {
        let now = Instant::now();
        let mut wakes = Wakes::default();
        let mut state = self.state();
        let parked = std::mem::take(&mut state.parked);
        state.parked = parked.into_iter().map(|((_, number), job)| ((now, number), job)).collect();
        state.wake_slots(&mut wakes);
        wakes
    }

    /// Slots for jobs whose back-off is over.
    pub(super) fn look(&self) -> Wakes {
        let mut wakes = Wakes::default();
        self.state().wake_slots(&mut wakes);
        wakes
    }

    /// Says that messages are done.
    pub(super) fn done(&self, hold: &Hold, offsets: impl Iterator<Item = i64>) -> Wakes {
        let mut wakes = Wakes::default();
        let mut state = self.state();
        if state.epoch == hold.epoch {
            for offset in offsets {
                let change = state.watermark.done(offset);
                if change != Change::None {
                    state.in_flight -= 1;
                    wakes.is_news = true;
                }
            }
            self.wake_intake(&mut state, &mut wakes);
        }
        wakes
    }

    /// Ends a job that leaves nothing behind; whether its slot has more to do.
    pub(super) fn give_back(&self, hold: &mut Hold) -> (bool, Wakes) {
        let mut wakes = Wakes::default();
        let mut state = self.state();
        if state.epoch == hold.epoch {
            for number in std::mem::take(&mut hold.lanes) {
                state.release(number);
            }
            self.wake_intake(&mut state, &mut wakes);
        }
        let has_more = state.leave_slot(hold, &mut wakes);
        (has_more, wakes)
    }

    /// Ends a job with messages that are to be tried again, not before a moment; its lanes wait for it.
    pub(super) fn park(&self, hold: &mut Hold, retry: Retry, moment: Instant) -> (bool, Wakes) {
        let mut wakes = Wakes::default();
        let mut state = self.state();
        if state.epoch == hold.epoch {
            state.retries += 1;
            let (number, lanes) = (state.retries, std::mem::take(&mut hold.lanes));
            state.parked.insert((moment, number), (retry, lanes));
        }
        let has_more = state.leave_slot(hold, &mut wakes);
        (has_more, wakes)
    }

    /// Lets a job go on outside its slot; whether the slot has more to do.
    pub(super) fn step_aside(&self, hold: &mut Hold) -> (bool, Wakes) {
        let mut wakes = Wakes::default();
        let has_more = self.state().leave_slot(hold, &mut wakes);
        (has_more, wakes)
    }

    /// Forgets everything, because reading goes on from another offset.
    pub(super) fn begin_anew(&self) {
        let mut state = self.state();
        let (epoch, told) = (state.epoch + 1, state.told);
        // Jobs of before still run in their slots.
        let (idle, slots) = (state.idle.clone(), state.slots.clone());
        let before = std::mem::replace(&mut *state, State { epoch, idle, slots, told, ..State::default() });
        drop(state);
        self.free(before);
    }

    /// The ordinals of messages, counted from 0 in the order in which they were taken in.
    pub(super) fn ordinals(&self, hold: &Hold, offsets: impl Iterator<Item = i64>) -> Vec<Option<u64>> {
        let state = self.state();
        offsets.map(|offset| state.watermark.ordinal_of(offset).filter(|_| state.epoch == hold.epoch)).collect()
    }

    /// What is to be committed, and the text for what is done beyond it.
    pub(super) fn position(&self, note: Option<(i64, &str)>) -> Option<ToCommit> {
        let state = self.state();
        let finished = state.watermark.finished();
        // Before the first is done, only for the sake of what is to be noted beside it.
        let is_noted = note.is_some() || !finished.is_empty();
        let start = || Some(state.start_at(state.watermark.offset().filter(|_| is_noted)?));
        let position = state.watermark.position().or_else(start)?;
        let epoch = state.watermark.finished_epoch();
        drop(state);
        let note = note.filter(|(offset, _)| *offset == position.offset).map_or("", |(_, text)| text);
        let (metadata, is_whole) = write_metadata(note, position.offset, &finished, epoch);
        Some(ToCommit { position, metadata, is_whole })
    }

    /// The offset that the watermark stands at; `None` before anything was taken in.
    pub(super) fn offset(&self) -> Option<i64> {
        self.state().watermark.offset()
    }

    /// The next offset to commit.
    pub(super) fn stored(&self) -> Option<i64> {
        self.state().watermark.position().map(|position| position.offset)
    }

    /// How far the watermark is behind; `None` when everything is done.
    pub(super) fn trail(&self) -> Option<Trail> {
        self.state().watermark.trail()
    }

    /// Notes the end of the partition: when all messages before it are done, the position is there. Whether it is now.
    pub(super) fn note_end(&self, end: Position) -> bool {
        self.state().watermark.note_end(end)
    }

    fn wake_intake(&self, state: &mut State, wakes: &mut Wakes) {
        // Not for each message that ends, but when slots may soon have nothing to do.
        if state.wants_room && state.ready_messages <= self.settings.jobs_max && self.room_of(state) > 0 {
            state.wants_room = false;
            wakes.takes_in = true;
        }
    }

    /// Frees what nobody will process.
    fn free(&self, mut state: State) {
        let waiting = state.lanes.drain().flat_map(|(_, lane)| lane.waiting);
        drop(Batch::of_loose(self.at.clone(), waiting, Arc::clone(&self.client)));
    }
}

impl std::fmt::Debug for Lanes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Lanes({}, {:?})", self.at, self.settings)
    }
}

impl Drop for Lanes {
    fn drop(&mut self) {
        let state = std::mem::take(&mut *self.state());
        self.free(state);
    }
}

impl State {
    /// An offset that nothing before it has moved, with the epoch that was committed beside it.
    fn start_at(&self, offset: i64) -> Position {
        let start = self.start.filter(|start| start.offset == offset);
        start.unwrap_or(Position { offset, leader_epoch: -1 })
    }

    /// Tells as many idle slots as there is work for, beyond those that have been told before.
    fn wake_slots(&mut self, wakes: &mut Wakes) {
        let due = if self.parked.is_empty() { 0 } else { self.parked.range(..=(Instant::now(), u64::MAX)).count() };
        while self.told < self.ready.len() + due
            && let Some(slot) = self.idle.pop()
        {
            self.slots[slot] = Slot::Told;
            self.told += 1;
            wakes.slots.push(slot);
        }
    }

    /// A worker is here for a slot: because it was told of work, or by itself.
    fn come(&mut self, slot: usize) {
        match self.slots[slot] {
            Slot::Told => self.told -= 1,
            Slot::Idle => self.idle.retain(|idle| *idle != slot),
            Slot::Running => (),
        }
        self.slots[slot] = Slot::Running;
    }

    fn due_retry(&mut self) -> Option<(Retry, Vec<u64>)> {
        let first = self.parked.first_entry()?;
        (first.key().0 <= Instant::now()).then(|| first.remove())
    }

    /// The messages of the lane that has waited longest; for batches, of as many as make up a share.
    fn take_lanes(&mut self, settings: &Concurrency) -> (Vec<Loose>, Vec<u64>) {
        let share = if settings.shares { self.ready_messages.div_ceil(settings.jobs_max) } else { 1 };
        let (mut messages, mut lanes) = (Vec::new(), Vec::new());
        while messages.len() < share
            && let Some(number) = self.ready.pop_front()
        {
            let Some(lane) = self.lanes.get_mut(&number) else { continue };
            lane.is_held = true;
            self.ready_messages -= lane.waiting.len();
            messages.extend(lane.waiting.drain(..));
            lanes.push(number);
        }
        if lanes.len() > 1 {
            messages.sort_unstable_by_key(Loose::offset);
        }
        (messages, lanes)
    }

    /// Gives a lane back: it stands in line again when messages have come for it, and is forgotten when not.
    fn release(&mut self, number: u64) {
        let Entry::Occupied(mut entry) = self.lanes.entry(number) else { return };
        let lane = entry.get_mut();
        lane.is_held = false;
        if lane.waiting.is_empty() {
            entry.remove();
        } else {
            self.ready_messages += lane.waiting.len();
            self.ready.push_back(number);
        }
    }

    /// Leaves a job's slot; whether there is more to do in it. What else there is to do, others are told of.
    fn leave_slot(&mut self, hold: &mut Hold, wakes: &mut Wakes) -> bool {
        let slot = hold.slot.take();
        if let Some(slot) = slot {
            // On top of those that wait: whoever works now goes on, and nobody need be woken.
            self.rest(slot);
        }
        self.wake_slots(wakes);
        let place = wakes.slots.iter().position(|told| Some(*told) == slot);
        place.map(|place| wakes.slots.swap_remove(place)).is_some()
    }

    fn rest(&mut self, slot: usize) {
        self.slots[slot] = Slot::Idle;
        self.idle.push(slot);
    }
}

/// The number of a key's lane: two keys with one number share it, which holds nothing up but the two.
fn number_of(key: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}
