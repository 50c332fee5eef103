//! The state of a partition's lanes, and its changes under the lock.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::time::Instant;

use super::lane::Lane;
use super::numbers::HashesNumbers;
use super::{Concurrency, LaneBy, LaneLease, LaneMessages, Leased, Notifications, Share, ShortJobs};
use crate::clock;
use crate::consume::finished::Earlier;
use crate::consume::watermark::Watermark;
use crate::kafka::Loose;

/// The state of a partition's lanes. `M` is a message, `R` messages that wait to be tried again.
pub(super) struct State<M = Loose, R = LaneMessages> {
    /// The number of the reading of the partition: a seek begins another one.
    pub(super) epoch: u64,
    lanes: HashMap<u64, Lane<M>, HashesNumbers>,
    /// Lanes with messages that no job leases; the one that has waited longest first.
    ready: VecDeque<u64>,
    /// Messages in those lanes.
    pub(super) ready_messages: usize,
    /// Messages that wait to be tried again, by their moment, with the lanes that wait for them.
    pub(super) parked: BTreeMap<(Instant, u64), (R, Vec<Leased>)>,
    retries: u64,
    /// Slots in which no worker is, and for which none was woken; the last is used first.
    idle: Vec<usize>,
    slots: Vec<Slot>,
    /// Slots that were woken and have not started.
    woken: usize,
    /// Messages that are admitted and not done.
    pub(super) in_flight: usize,
    pub(super) watermark: Watermark,
    /// Messages that an earlier process has done.
    pub(super) earlier: Earlier,
    /// Before this offset messages are processed one by one.
    pub(super) careful_until: i64,
    /// The partition waits until it may admit messages.
    pub(super) wants_capacity: bool,
    pub(super) short_jobs: ShortJobs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    Idle,
    Woken,
    Running,
}

/// A message, as far as lanes look at it.
pub(super) trait LaneMessage {
    fn offset(&self) -> i64;
    fn leader_epoch(&self) -> i32;
}

impl LaneMessage for Loose {
    fn offset(&self) -> i64 {
        Self::offset(self)
    }

    fn leader_epoch(&self) -> i32 {
        Self::leader_epoch(self)
    }
}

impl<M, R> Default for State<M, R> {
    fn default() -> Self {
        Self {
            epoch: 0,
            lanes: HashMap::default(),
            ready: VecDeque::new(),
            ready_messages: 0,
            parked: BTreeMap::new(),
            retries: 0,
            idle: Vec::new(),
            slots: Vec::new(),
            woken: 0,
            in_flight: 0,
            watermark: Watermark::default(),
            earlier: Earlier::default(),
            careful_until: 0,
            wants_capacity: false,
            short_jobs: ShortJobs::default(),
        }
    }
}

impl<M: LaneMessage, R> State<M, R> {
    pub(super) fn new(jobs_max: usize, share: Share) -> Self {
        let (idle, slots) = ((0..jobs_max).rev().collect(), vec![Slot::Idle; jobs_max]);
        Self { idle, slots, short_jobs: ShortJobs::new(share), ..Self::default() }
    }

    /// Starts another reading of the partition; jobs of the one before still run in their slots. Returns the state
    /// before.
    pub(super) fn reset(&mut self) -> Self {
        let (epoch, woken) = (self.epoch + 1, self.woken);
        let (idle, slots, short_jobs) = (self.idle.clone(), self.slots.clone(), self.short_jobs.clone());
        std::mem::replace(self, Self { epoch, idle, slots, woken, short_jobs, ..Self::default() })
    }

    /// Takes the messages that wait in lanes.
    pub(super) fn take_waiting(&mut self) -> impl Iterator<Item = M> {
        self.lanes.drain().flat_map(|(_, lane)| lane.waiting.into_messages())
    }

    /// Returns how many more messages may be admitted now.
    pub(super) fn capacity(&self, settings: &Concurrency) -> usize {
        if self.in_flight > 0 && self.watermark.offset().is_some_and(|offset| offset < self.careful_until) {
            return 0;
        }
        let in_flight = settings.in_flight_max.saturating_sub(self.in_flight);
        let most = in_flight.min(settings.commit_gap_max.saturating_sub(self.watermark.len()));
        if self.careful_until > 0 { most.min(1) } else { most }
    }

    /// Admits a message to the lane of this number.
    pub(super) fn admit(&mut self, number: u64, message: M, now: Instant) {
        self.watermark.begin(message.offset(), message.leader_epoch(), now);
        self.in_flight += 1;
        let lane = self.lanes.entry(number).or_default();
        lane.waiting.push(message);
        if !lane.is_leased {
            let is_first = lane.waiting.len() == 1;
            self.ready_messages += 1;
            if is_first {
                self.ready.push_back(number);
            }
        }
    }

    /// Ends the care after a crash, if the messages that may be its cause are done.
    pub(super) fn end_care(&mut self) {
        if self.watermark.offset().is_some_and(|offset| offset >= self.careful_until) {
            self.careful_until = 0;
        }
    }

    /// Returns the messages that are done beyond the watermark, in order, and the leader epoch of the last; -1 for
    /// none. Among them are those that an earlier process has done and this one has not read yet: the next process
    /// must not run them again either.
    pub(super) fn finished(&self) -> (Vec<Range<i64>>, i32) {
        let (mut finished, mut epoch) = (self.watermark.finished(), self.watermark.finished_epoch());
        if let Some(next) = self.watermark.next() {
            let (unread, unread_epoch) = self.earlier.from(next);
            let read = finished.len();
            finished.extend(unread);
            if finished.len() > read {
                epoch = epoch.max(unread_epoch);
            }
        }
        (finished, epoch)
    }

    /// Wakes an idle slot for each lane that is ready (for each share of them, where jobs are short) and each retry
    /// that is due, beyond the slots that were woken before.
    pub(super) fn wake_slots(&mut self, notifications: &mut Notifications) {
        let due = if self.parked.is_empty() { 0 } else { self.parked.range(..=(clock::now(), u64::MAX)).count() };
        let wanted = self.ready.len().div_ceil(self.short_jobs.messages_max()) + due;
        while self.woken < wanted
            && let Some(slot) = self.idle.pop()
        {
            self.slots[slot] = Slot::Woken;
            self.woken += 1;
            notifications.slots.push(slot);
        }
    }

    /// Starts a slot: its worker was woken, or came by itself.
    pub(super) fn start_slot(&mut self, slot: usize) {
        match self.slots[slot] {
            Slot::Woken => self.woken -= 1,
            Slot::Idle => self.idle.retain(|idle| *idle != slot),
            Slot::Running => (),
        }
        self.slots[slot] = Slot::Running;
    }

    /// Keeps messages until a moment.
    pub(super) fn park(&mut self, messages: R, lanes: Vec<Leased>, moment: Instant) {
        self.retries += 1;
        self.parked.insert((moment, self.retries), (messages, lanes));
    }

    /// Takes messages whose moment has come, with the lanes that wait for them.
    pub(super) fn due_retry(&mut self) -> Option<(R, Vec<Leased>)> {
        let first = self.parked.first_entry()?;
        (first.key().0 <= clock::now()).then(|| first.remove())
    }

    /// Leases the lane that has waited longest, and as many others as the route's share allows. Returns their messages:
    /// in offset order for batches, or else lane by lane.
    pub(super) fn take_lanes(&mut self, settings: &Concurrency) -> (Vec<M>, Vec<Leased>) {
        let even = self.ready_messages.div_ceil(settings.jobs_max);
        let share = if settings.share == Share::Even { even } else { self.short_jobs.share(even) };
        let (mut messages, mut lanes) = (Vec::new(), Vec::new());
        while messages.len() < share
            && let Some(number) = self.ready.pop_front()
        {
            let Some(lane) = self.lanes.get_mut(&number) else { continue };
            lane.is_leased = true;
            self.ready_messages -= lane.waiting.len();
            messages.extend(lane.waiting.take());
            lanes.push(Leased { number, end: messages.len() });
        }
        if settings.share == Share::Even && lanes.len() > 1 {
            messages.sort_unstable_by_key(M::offset);
            lanes.iter_mut().for_each(|lane| lane.end = messages.len());
        }
        (messages, lanes)
    }

    /// Returns a leased lane: it is ready again when messages have come for it, and dropped when not.
    pub(super) fn release(&mut self, number: u64) {
        let Entry::Occupied(mut entry) = self.lanes.entry(number) else { return };
        let lane = entry.get_mut();
        lane.is_leased = false;
        if lane.waiting.len() == 0 {
            entry.remove();
        } else {
            self.ready_messages += lane.waiting.len();
            self.ready.push_back(number);
        }
    }

    /// Takes a job out of its slot. Returns whether the slot has more to do; other slots are woken for the rest.
    pub(super) fn leave_slot(&mut self, lease: &mut LaneLease, notifications: &mut Notifications) -> bool {
        let slot = lease.slot.take();
        if let Some(slot) = slot {
            if let Some((messages, took)) = lease.ran.take() {
                self.short_jobs.note(messages, took);
            }
            // After the idle ones: the worker of this slot goes on, and no other one is woken.
            self.rest(slot);
        }
        self.wake_slots(notifications);
        let index = notifications.slots.iter().position(|woken| Some(*woken) == slot);
        index.map(|index| notifications.slots.swap_remove(index)).is_some()
    }

    pub(super) fn rest(&mut self, slot: usize) {
        self.slots[slot] = Slot::Idle;
        self.idle.push(slot);
    }
}

/// Returns the number of a message's lane. Two keys with the same number share a lane, which delays only those two.
pub(super) fn lane_number(by: LaneBy, offset: i64, key: Option<&[u8]>, given: Option<u64>) -> u64 {
    match (by, given) {
        (LaneBy::Route, Some(number)) => number,
        (LaneBy::Nothing, _) => offset as u64,
        (LaneBy::Key | LaneBy::Route, _) => key.map_or(offset as u64, |key| {
            let mut hasher = DefaultHasher::new();
            key.hash(&mut hasher);
            hasher.finish()
        }),
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::consume::finished::{split_metadata, write_metadata};

    /// The offset of a message.
    struct Fake(i64);

    impl LaneMessage for Fake {
        fn offset(&self) -> i64 {
            self.0
        }

        fn leader_epoch(&self) -> i32 {
            0
        }
    }

    type TestState = State<Fake, &'static str>;

    fn settings(share: Share) -> Concurrency {
        Concurrency {
            jobs_max: 2,
            by: LaneBy::Key,
            in_flight_max: 6,
            commit_gap_max: 8,
            share,
            careful_messages: 0,
            skip: None,
        }
    }

    /// A state of a second process: the first has done 11, 13 and 15 to 17, and committed 10.
    fn second(first: i64, end: i64) -> TestState {
        let (metadata, _) = write_metadata("", 10, &[11..12, 13..14, 15..18], 3, 0);
        let mut state = TestState::new(2, Share::OneLane);
        state.earlier = split_metadata(10, &metadata.expect("something is done")).1;
        for offset in first..end {
            if state.earlier.has(offset, 0) {
                state.watermark.skip(offset, 0, Instant::now());
            } else {
                state.admit(offset as u64, Fake(offset), Instant::now());
            }
        }
        state
    }

    #[test]
    fn messages_that_an_earlier_process_did_and_this_one_did_not_read_are_named_again() {
        let mut state = second(10, 13);
        assert_eq!(state.finished(), (vec![11..12, 13..14, 15..18], 3));
        state.watermark.done(12);
        assert_eq!(state.finished(), (vec![11..13, 13..14, 15..18], 3));
        state.watermark.done(10);
        assert_eq!(state.finished(), (vec![13..14, 15..18], 3), "the watermark is at 13");
        assert_eq!(second(10, 17).finished(), (vec![11..12, 13..14, 15..17, 17..18], 3), "in the middle of a range");
        assert_eq!(second(10, 20).finished(), (vec![11..12, 13..14, 15..18], 0), "all are read");
    }

    #[test]
    fn messages_of_a_log_that_was_truncated_since_are_not_named_again() {
        let mut state = second(10, 15);
        assert!(!state.earlier.has(15, 4), "15 is another message now");
        assert_eq!(state.finished(), (vec![11..12, 13..14], 0));
    }

    /// A state with messages, each the number of its lane; their offsets count from 0. Returns the slots that were
    /// woken, too.
    fn admitted(lanes: &[u64]) -> (TestState, Vec<usize>) {
        let mut state = TestState::new(2, Share::OneLane);
        for (offset, number) in (0..).zip(lanes) {
            state.admit(*number, Fake(offset), Instant::now());
        }
        let mut notifications = Notifications::default();
        state.wake_slots(&mut notifications);
        (state, notifications.slots)
    }

    fn lease(lanes: Vec<Leased>, slot: usize) -> LaneLease {
        LaneLease { lanes, epoch: 0, slot: Some(slot), ran: None }
    }

    fn offsets(messages: &[Fake]) -> Vec<i64> {
        messages.iter().map(|message| message.0).collect()
    }

    /// The numbers of lanes, and where each ends in the batch.
    fn ends(lanes: &[Leased]) -> Vec<(u64, usize)> {
        lanes.iter().map(|lane| (lane.number, lane.end)).collect()
    }

    #[test]
    fn a_slot_is_woken_for_each_ready_lane_and_no_more() {
        assert_eq!(admitted(&[7, 7, 7]).1, [0]);
        assert_eq!(admitted(&[7, 8, 9]).1, [0, 1]);
    }

    #[test]
    fn a_job_takes_all_messages_of_the_lane_that_has_waited_longest() {
        let (mut state, _) = admitted(&[7, 8, 7]);
        state.start_slot(0);
        let (messages, lanes) = state.take_lanes(&settings(Share::OneLane));
        assert_eq!((offsets(&messages), ends(&lanes)), (vec![0, 2], vec![(7, 2)]));
    }

    #[test]
    fn a_job_of_batches_takes_its_share_of_the_lanes_in_offset_order() {
        let (mut state, _) = admitted(&[7, 8, 7, 9, 10, 11]);
        let (messages, lanes) = state.take_lanes(&settings(Share::Even));
        assert_eq!((offsets(&messages), ends(&lanes)), (vec![0, 1, 2], vec![(7, 3), (8, 3)]));
    }

    #[test]
    fn a_job_takes_several_lanes_while_jobs_are_short() {
        let mut state = TestState::new(2, Share::WhileShort);
        state.short_jobs.note(1, Duration::from_micros(50));
        for (offset, number) in [7, 8, 7, 9, 10, 11, 12].into_iter().enumerate() {
            state.admit(number, Fake(offset as i64), Instant::now());
        }
        let mut notifications = Notifications::default();
        state.wake_slots(&mut notifications);
        assert_eq!(notifications.slots, [0, 1], "of six lanes four make up a job");
        let (messages, lanes) = state.take_lanes(&settings(Share::WhileShort));
        assert_eq!(offsets(&messages), [0, 2, 1, 3], "lane by lane");
        assert_eq!(ends(&lanes), [(7, 2), (8, 3), (9, 4)]);
    }

    #[test]
    fn messages_for_a_leased_lane_wait_until_it_is_released() {
        let (mut state, _) = admitted(&[7]);
        state.start_slot(0);
        let (_, lanes) = state.take_lanes(&settings(Share::OneLane));
        state.admit(7, Fake(1), Instant::now());
        assert!(state.take_lanes(&settings(Share::OneLane)).1.is_empty());
        lanes.iter().for_each(|lane| state.release(lane.number));
        let mut notifications = Notifications::default();
        assert!(state.leave_slot(&mut lease(lanes, 0), &mut notifications), "the same worker goes on");
        assert!(notifications.slots.is_empty());
        assert_eq!(offsets(&state.take_lanes(&settings(Share::OneLane)).0), [1]);
    }

    #[test]
    fn a_lane_without_messages_is_dropped() {
        let (mut state, _) = admitted(&[7]);
        let (_, lanes) = state.take_lanes(&settings(Share::OneLane));
        lanes.iter().for_each(|lane| state.release(lane.number));
        assert!(state.lanes.is_empty());
    }

    #[test]
    fn capacity_is_bounded_by_messages_in_flight_and_by_the_commit_gap() {
        let (mut state, _) = admitted(&[1, 2, 3, 4]);
        assert_eq!(state.capacity(&settings(Share::OneLane)), 2);
        for offset in 1..4 {
            state.watermark.done(offset);
            state.in_flight -= 1;
        }
        assert_eq!(state.capacity(&settings(Share::OneLane)), 4, "the first message is not done: the gap is 4 of 8");
    }

    #[test]
    fn after_a_crash_messages_are_admitted_one_by_one() {
        let mut state = TestState::new(2, Share::OneLane);
        state.careful_until = 1;
        assert_eq!(state.capacity(&settings(Share::OneLane)), 1);
        state.admit(1, Fake(0), Instant::now());
        assert_eq!(state.capacity(&settings(Share::OneLane)), 0);
        state.watermark.done(0);
        state.in_flight -= 1;
        state.end_care();
        assert_eq!(state.capacity(&settings(Share::OneLane)), 6);
    }

    #[test]
    fn a_retry_wakes_a_slot_when_its_moment_has_come() {
        let (mut state, _) = admitted(&[]);
        let now = Instant::now();
        state.park("later", vec![Leased { number: 7, end: 1 }], now + Duration::from_mins(1));
        let mut notifications = Notifications::default();
        state.wake_slots(&mut notifications);
        assert!(notifications.slots.is_empty() && state.due_retry().is_none());
        state.park("now", vec![Leased { number: 8, end: 1 }], now);
        state.wake_slots(&mut notifications);
        assert_eq!(notifications.slots.len(), 1);
        assert_eq!(state.due_retry(), Some(("now", vec![Leased { number: 8, end: 1 }])));
    }

    #[test]
    fn a_reset_keeps_the_slots_in_which_jobs_of_before_run() {
        let (mut state, _) = admitted(&[7, 8]);
        state.start_slot(0);
        let mut before = state.reset();
        assert_eq!(before.take_waiting().count(), 2);
        assert_eq!((state.epoch, state.in_flight, state.woken), (1, 0, 1));
        assert_eq!(state.slots, [Slot::Running, Slot::Woken]);
    }

    #[test]
    fn the_route_names_a_lane_or_else_the_key_does() {
        let by_key = lane_number(LaneBy::Key, 5, Some(b"a"), None);
        assert_eq!(by_key, lane_number(LaneBy::Route, 6, Some(b"a"), None));
        assert_eq!(lane_number(LaneBy::Route, 6, Some(b"a"), Some(9)), 9);
        assert_eq!(lane_number(LaneBy::Key, 6, None, None), 6, "without a key each has a lane of its own");
        assert_eq!(lane_number(LaneBy::Nothing, 6, Some(b"a"), Some(9)), 6);
    }
}
