//! What a worker finds when it holds a partition: what was kept for later, or what librdkafka has.
//!
//! Everything here is called by the one worker that holds the partition's lane.

use std::ops::RangeInclusive;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use super::{Found, Held, Interrupt, Parked, PartitionQueue, Seek};
use crate::consume::flow::Allowed;
use crate::consume::given::Rewind;
use crate::consume::lanes::{LaneBy, Lanes};
use crate::consume::open_partitions::OpenPartitions;
use crate::consume::{PullLimits, StartAt};
use crate::events::What;
use crate::kafka::{Batch, Code, FetchError, Position, Unread, batch_max, why_unread};

/// After so long a partition is looked at again that is not fetched yet.
const START_AGAIN: Duration = Duration::from_millis(50);

impl PartitionQueue {
    /// What is to be processed next. Does not wait; only the worker that holds the lane (of the partition, or of this slot)
    /// may call it.
    pub(in crate::consume) fn find(&self, slot: Option<usize>) -> Found {
        match (&self.lanes, slot) {
            (None, _) => self.look(self.limits()),
            (Some(lanes), None) => self.take_in(lanes),
            (Some(lanes), Some(slot)) => lanes.take(slot).map_or(Found::Nothing { is_exhausted: true }, Found::Job),
        }
    }

    /// Takes messages in for the lanes, as many as there is room for.
    fn take_in(&self, lanes: &Arc<Lanes>) -> Found {
        self.execute_seek();
        let room = lanes.room();
        if room == 0 {
            return Found::TakenIn { slots: self.slots_of(&lanes.look()), is_exhausted: true };
        }
        let bytes_max = self.flow.limits.bytes_max;
        let (parked, end, is_exhausted) = match self.look(PullLimits { messages_max: room, bytes_max }) {
            Found::Messages { parked, end, is_exhausted } => (parked, end, is_exhausted),
            Found::Nothing { is_exhausted } => {
                return Found::TakenIn { slots: self.slots_of(&lanes.look()), is_exhausted };
            }
            other => return other,
        };
        let Some(mut batch) = Arc::into_inner(parked.batch) else {
            return Found::Nothing { is_exhausted }; // Impossible: nobody has been given it.
        };
        let rest = batch.split_off(end.min(room));
        let is_exhausted = is_exhausted && rest.is_empty();
        if !rest.is_empty() {
            self.park(Parked { batch: Arc::new(rest), first: 0, attempts: 0 });
        }
        if lanes.settings().by == LaneBy::Route {
            return Found::ToSort { batch: Arc::new(batch), is_exhausted };
        }
        Found::TakenIn { slots: self.admit(batch, None), is_exhausted }
    }

    fn look(&self, limits: PullLimits) -> Found {
        self.execute_seek();
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner).take();
        match held {
            Some(Held::Parked(parked)) => self.allow(parked, false),
            Some(Held::Filling(batch, until)) => self.fill(batch, until),
            None => self.pull(limits),
        }
    }

    /// How much one job may hold now.
    fn limits(&self) -> PullLimits {
        let PullLimits { messages_max, bytes_max } = self.flow.limits;
        PullLimits { messages_max: messages_max.min(self.paced_messages_max()), bytes_max }
    }

    /// The most messages of a batch that takes about as long as it should.
    pub(in crate::consume) fn paced_messages_max(&self) -> usize {
        self.flow.pace.as_ref().map_or(usize::MAX, |pace| pace.messages_max())
    }

    /// What librdkafka has now.
    fn pull(&self, limits: PullLimits) -> Found {
        if self.is_end_due.swap(false, Ordering::Relaxed) {
            return Found::End;
        }
        // What is in the queue was fetched before that, and is dropped by it.
        if !self.start() {
            return Found::NotBefore(Instant::now() + START_AGAIN);
        }
        let mut pull = self.queue.pull(&self.at, limits.messages_max, limits.bytes_max);
        if self.is_seek_due() {
            // It came during the pull: what was pulled may be of before it or after it.
            self.hear(pull.errors);
            return Found::Nothing { is_exhausted: false };
        }
        if !pull.batch.is_empty() {
            self.is_position_wrong.store(false, Ordering::Relaxed);
        }
        let is_rewound = self.leave_out_repeated(&mut pull.batch);
        // Nothing is held, so all messages that were given out are done, but for those of lanes.
        self.note_end();
        let is_at_end = self.hear(pull.errors) && self.tells_end;
        if is_at_end && pull.batch.is_empty() {
            return Found::End;
        }
        self.is_end_due.store(is_at_end, Ordering::Relaxed);
        self.look_for_end(pull.is_exhausted);
        if pull.batch.is_empty() {
            self.note_end();
        } else {
            self.unstick();
        }
        let is_exhausted = pull.is_exhausted && !is_at_end && !is_rewound && !self.is_seek_due();
        if pull.batch.is_empty() {
            return Found::Nothing { is_exhausted };
        }
        match self.flow.wait_max {
            Some(wait) if is_exhausted && !limits.are_reached(pull.batch.len(), pull.batch.size_bytes()) => {
                self.wait_for_more(pull.batch, Instant::now() + wait)
            }
            _ => self.allow(Parked { batch: Arc::new(pull.batch), first: 0, attempts: 0 }, self.may_rest(is_exhausted)),
        }
    }

    /// Adds what has come to a batch that waits for more.
    fn fill(&self, mut batch: Batch, until: Instant) -> Found {
        let limits = self.limits();
        let missing = limits.messages_max.saturating_sub(batch.len());
        let mut pull = self.queue.pull(&self.at, missing, limits.bytes_max.saturating_sub(batch.size_bytes()));
        if !pull.batch.is_empty() {
            self.is_position_wrong.store(false, Ordering::Relaxed);
        }
        let is_rewound = self.leave_out_repeated(&mut pull.batch);
        self.hear(pull.errors);
        batch.append(pull.batch);
        self.look_for_end(pull.is_exhausted);
        let is_exhausted = pull.is_exhausted && !is_rewound && !self.is_seek_due();
        if is_exhausted && !limits.are_reached(batch.len(), batch.size_bytes()) && Instant::now() < until {
            return self.wait_for_more(batch, until);
        }
        self.allow(Parked { batch: Arc::new(batch), first: 0, attempts: 0 }, self.may_rest(is_exhausted))
    }

    /// Drops messages that were given out before; whether the log went back.
    ///
    /// Then the batch ends before the new log, and the next look seeks to its first message. The seek also makes librdkafka
    /// (2.12.1) forget its own position, which never goes back and to which a later rebalance would jump.
    fn leave_out_repeated(&self, batch: &mut Batch) -> bool {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        if let (None, Some(first)) = (given.next(), batch.iter().next()) {
            self.offsets.begin(&self.at, self.generation, first.offset());
        }
        let rewind = given.take(batch);
        drop(given);
        let Some(Rewind { from, to, reason }) = rewind else { return false };
        self.seek.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(Seek::To(to));
        self.client.emit(What::Rewound { at: self.at.clone(), from, to, reason });
        true
    }

    /// Whether an exhausted lane waits for messages: one with an end to note is looked at once more, when they are done.
    fn may_rest(&self, is_exhausted: bool) -> bool {
        is_exhausted && self.end.load(Ordering::Relaxed) < 0
    }

    /// Emits the errors of a pull. Returns whether the end of the partition was reached.
    fn hear(&self, errors: Vec<FetchError>) -> bool {
        let mut is_at_end = false;
        for FetchError { code, text, offset } in errors {
            if code == Code::PARTITION_EOF {
                is_at_end = true;
                continue;
            }
            self.mend_position(offset);
            match why_unread(offset, &text).filter(|_| code == Code::BAD_COMPRESSION) {
                Some(Unread::Later) => (),
                Some(Unread::TooLarge(offsets)) => self.note_unread(code, &offsets),
                None => self.note_failed(code, text),
            }
        }
        is_at_end
    }

    fn note_failed(&self, code: Code, text: String) {
        let is_final = OpenPartitions::is_final(code);
        if !is_final || !self.is_stuck.load(Ordering::Relaxed) {
            self.client.emit(What::FetchFailed { at: self.at.clone(), code, text: text.clone() });
        }
        if is_final {
            self.note_stuck(code, text, None);
        }
    }

    /// Notes that a batch would take too much memory.
    fn note_unread(&self, code: Code, offsets: &RangeInclusive<i64>) {
        let (first, last, most) = (offsets.start(), offsets.end(), batch_max() >> 20);
        let way = "raise `fetch_batch_max_mb` to read it, or pass over it by `awoke resume`";
        let text = format!("the batch of offsets {first} to {last} takes more than {most} MB when decompressed: {way}");
        self.note_stuck(code, text, Some(last.saturating_add(1)).filter(|_| *first >= 0));
    }

    /// Sets librdkafka's position right after an error.
    ///
    /// librdkafka (2.12.1) takes an error for a message: its position is one past it unless a later message moved it further, and
    /// a rebalance would go on there. Where fetching has ended there is nothing to seek in.
    fn mend_position(&self, offset: i64) {
        if offset >= 0 && self.next_offset().is_none_or(|next| next <= offset) {
            self.is_position_wrong.store(true, Ordering::Relaxed);
            self.client.seek(&self.at, Position { offset, leader_epoch: -1 });
        }
    }

    pub(super) fn is_seek_due(&self) -> bool {
        self.seek.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    fn note_stuck(&self, code: Code, text: String, beyond: Option<i64>) {
        if !self.is_stuck.swap(true, Ordering::AcqRel) {
            self.siblings.note_stuck(&self.at, code, &text, beyond);
            self.client.emit(What::Stuck { at: self.at.clone(), code, text });
        }
    }

    /// Messages come again.
    fn unstick(&self) {
        if self.is_stuck.swap(false, Ordering::AcqRel) {
            self.siblings.clear_stuck(&self.at);
        }
    }

    /// Notes that control records lie behind the last message that was pulled, when all there was has been pulled.
    fn look_for_end(&self, is_exhausted: bool) {
        let is_wrong = self.is_position_wrong.load(Ordering::Relaxed);
        if !is_exhausted || self.tells_end || is_wrong || self.is_seek_due() {
            return;
        }
        let Some(next) = self.next_offset() else { return };
        let position = self.client.position(&mut self.place.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some(position) = position.filter(|position| position.offset > next) {
            self.end_epoch.store(position.leader_epoch, Ordering::Relaxed);
            self.end.store(position.offset, Ordering::Relaxed);
        }
    }

    /// Stores the offset behind control records at the partition's end, as Java's consumer does: the lag is 0 then.
    fn note_end(&self) {
        let end = self.end.swap(-1, Ordering::Relaxed);
        if end < 0 || self.flow.stores_by_hand {
            return;
        }
        let end = Position { offset: end, leader_epoch: self.end_epoch.load(Ordering::Relaxed) };
        let is_news = match &self.lanes {
            Some(lanes) => lanes.note_end(end),
            None => self.offsets.store_end(&self.at, self.generation, end).unwrap_or(false),
        };
        match (is_news, self.is_transactional) {
            (true, true) => self.siblings.commit_in_transaction(&self.at),
            (true, false) => self.touch(),
            (false, _) => (),
        }
    }

    fn wait_for_more(&self, batch: Batch, until: Instant) -> Found {
        self.hold(Some(Held::Filling(batch, until)));
        Found::Until(until)
    }

    /// What the flow allows of these messages now.
    fn allow(&self, parked: Parked, is_exhausted: bool) -> Found {
        match self.flow.allow(&parked.batch, parked.first) {
            Allowed::Until(end) => Found::Messages { parked, end, is_exhausted },
            Allowed::NotBefore(moment) => {
                self.park(parked);
                Found::NotBefore(moment)
            }
        }
    }

    /// Goes to where reading is to go on. What is held and what is stored belong to what was read before.
    fn execute_seek(&self) {
        let seek = {
            let mut seek = self.seek.lock().unwrap_or_else(PoisonError::into_inner);
            self.end_interrupt(Interrupt::Seek);
            seek.take()
        };
        let Some(seek) = seek else { return };
        let (offset, fetches) = match seek {
            Seek::Refused(code, text) => return self.note_stuck(code, text, None),
            Seek::To(offset) => (offset, true),
            Seek::Restarted => (StartAt::EARLIEST, false),
            Seek::Renewed => {
                self.tell_renewed();
                // On the thread of the group member; a reader has none.
                (self.on_stored)();
                if self.tells_end {
                    self.siblings.learn_leaders(&self.client);
                }
                (0, true)
            }
        };
        if let Some(lanes) = &self.lanes {
            lanes.begin_anew();
        }
        self.hold(None);
        self.given.lock().unwrap_or_else(PoisonError::into_inner).forget();
        self.is_end_due.store(false, Ordering::Relaxed);
        self.end.store(-1, Ordering::Relaxed);
        self.unstick();
        self.offsets.rewind(&self.at, self.generation, offset);
        if fetches {
            self.seek_in_client(offset);
        } else {
            *self.go_to() = None;
        }
    }

    fn tell_renewed(&self) {
        let Some(from) = self.next_offset() else { return };
        let reason = "the topic was deleted and made again".into();
        self.client.emit(What::Rewound { at: self.at.clone(), from, to: 0, reason });
    }

    /// From here on librdkafka drops what is in the queue, message by message, when it is pulled. Before it begins to fetch, in the
    /// hook `assigned` say, it takes no seek: the owner's thread tries again then.
    fn seek_in_client(&self, offset: i64) {
        let position = Position { offset, leader_epoch: -1 };
        let mut go_to = self.go_to();
        let has_begun = self.client.seek(&self.at, position);
        *go_to = (!has_begun).then_some(position);
        self.is_start_due.store(!has_begun, Ordering::Release);
        drop(go_to);
        if !has_begun {
            (self.on_stored)();
        }
    }

    pub(super) fn hold(&self, held: Option<Held>) {
        // What was held is dropped after the lock is down.
        let _earlier = std::mem::replace(&mut *self.held.lock().unwrap_or_else(PoisonError::into_inner), held);
    }

    /// Keeps messages for a later job.
    pub(in crate::consume) fn park(&self, parked: Parked) {
        self.hold(Some(Held::Parked(parked)));
    }
}
