//! The messages that a worker finds in a partition: those that were kept, or those that librdkafka has.
//!
//! Only the one worker that has the partition calls these functions.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use super::{Buffered, Found, Parked, PartitionQueue};
use crate::clock;
use crate::consume::PullLimits;
use crate::consume::fetch_history::Rewind;
use crate::consume::flow::Allowed;
use crate::consume::lanes::{LaneBy, Lanes};
use crate::events::What;
use crate::kafka::Batch;

/// After this time a partition is checked again that is not fetched yet.
const START_AGAIN: Duration = Duration::from_millis(50);

impl PartitionQueue {
    /// Returns what is to be processed next. Does not block; only the worker that has the unit (of the partition, or of
    /// this slot) may call it.
    pub(in crate::consume) fn find(&self, slot: Option<usize>) -> Found {
        match (&self.lanes, slot) {
            (None, _) => self.next_messages(self.limits()),
            (Some(lanes), None) => self.fill_lanes(lanes),
            (Some(lanes), Some(slot)) => {
                let (work, notifications) = lanes.take(slot);
                self.notify(&notifications);
                work.map_or(Found::Nothing { is_exhausted: true }, Found::Lanes)
            }
        }
    }

    /// Admits messages to the lanes, up to their capacity.
    fn fill_lanes(&self, lanes: &Arc<Lanes>) -> Found {
        self.execute_seek();
        self.give_lanes_on(lanes);
        let capacity = lanes.capacity();
        if capacity == 0 {
            return Found::Admitted { slots: self.units_of(&lanes.wake_due()), is_exhausted: true };
        }
        let bytes_max = self.flow.limits.bytes_max;
        let (parked, end, is_exhausted) = match self.next_messages(PullLimits { messages_max: capacity, bytes_max }) {
            Found::Messages { parked, end, is_exhausted } => (parked, end, is_exhausted),
            Found::Nothing { is_exhausted } => {
                return Found::Admitted { slots: self.units_of(&lanes.wake_due()), is_exhausted };
            }
            other => return other,
        };
        let Some(mut batch) = Arc::into_inner(parked.batch) else {
            return Found::Nothing { is_exhausted }; // Impossible: it was handed to no worker.
        };
        let rest = batch.split_off(end.min(capacity));
        let is_exhausted = is_exhausted && rest.is_empty();
        if !rest.is_empty() {
            self.park(Parked { batch: Arc::new(rest), first: 0, attempts: 0 });
        }
        if lanes.settings().by == LaneBy::Route {
            return Found::Unassigned { batch: Arc::new(batch), is_exhausted };
        }
        Found::Admitted { slots: self.admit(batch, None), is_exhausted }
    }

    /// Returns the messages that were kept, or else those that librdkafka has.
    fn next_messages(&self, limits: PullLimits) -> Found {
        self.execute_seek();
        let buffered = self.buffered.lock().unwrap_or_else(PoisonError::into_inner).take();
        match buffered {
            Some(Buffered::Parked(parked)) => self.allow(parked, false),
            Some(Buffered::Filling(batch, until)) => self.fill(batch, until),
            None => self.pull(limits),
        }
    }

    /// Returns how much one job may have now.
    fn limits(&self) -> PullLimits {
        let PullLimits { messages_max, bytes_max } = self.flow.limits;
        PullLimits { messages_max: messages_max.min(self.paced_messages_max()), bytes_max }
    }

    /// Returns the most messages of a batch that takes about as long as it should.
    pub(in crate::consume) fn paced_messages_max(&self) -> usize {
        self.flow.pace.as_ref().map_or(usize::MAX, |pace| pace.messages_max())
    }

    /// Pulls the messages that librdkafka has now.
    fn pull(&self, limits: PullLimits) -> Found {
        if self.is_end_due.swap(false, Ordering::Relaxed) {
            return Found::End;
        }
        // The messages in the queue were fetched before the start is executed, which drops them.
        if !self.start() {
            return Found::NotBefore(clock::now() + START_AGAIN);
        }
        let mut pull = self.queue.pull(&self.at, limits.messages_max, limits.bytes_max);
        if self.is_seek_due() {
            // It came during the pull: the messages may be of before it or after it.
            self.report_errors(pull.errors);
            return Found::Nothing { is_exhausted: false };
        }
        let is_rewound = self.drop_repeated(&mut pull.batch);
        // No messages are buffered, so all that were handed out are done, except those of lanes.
        self.store_end();
        let is_at_end = self.report_errors(pull.errors) && self.context.tells_end;
        if is_at_end && pull.batch.is_empty() {
            return Found::End;
        }
        self.is_end_due.store(is_at_end, Ordering::Relaxed);
        self.find_end(pull.is_exhausted);
        let is_exhausted = pull.is_exhausted && !is_at_end && !is_rewound && !self.is_seek_due();
        if pull.batch.is_empty() {
            self.store_end();
            return Found::Nothing { is_exhausted };
        }
        self.clear_stuck();
        match self.flow.wait_max {
            Some(wait) if is_exhausted && !limits.are_reached(pull.batch.len(), pull.batch.size_bytes()) => {
                self.wait_for_more(pull.batch, clock::now() + wait)
            }
            _ => self.allow(Parked { batch: Arc::new(pull.batch), first: 0, attempts: 0 }, self.may_rest(is_exhausted)),
        }
    }

    /// Adds the messages that have come to a batch that waits for more.
    fn fill(&self, mut batch: Batch, until: Instant) -> Found {
        let limits = self.limits();
        let missing = limits.messages_max.saturating_sub(batch.len());
        let mut pull = self.queue.pull(&self.at, missing, limits.bytes_max.saturating_sub(batch.size_bytes()));
        let is_rewound = self.drop_repeated(&mut pull.batch);
        self.report_errors(pull.errors);
        batch.append(pull.batch);
        self.find_end(pull.is_exhausted);
        let is_exhausted = pull.is_exhausted && !is_rewound && !self.is_seek_due();
        if is_exhausted && !limits.are_reached(batch.len(), batch.size_bytes()) && clock::now() < until {
            return self.wait_for_more(batch, until);
        }
        self.allow(Parked { batch: Arc::new(batch), first: 0, attempts: 0 }, self.may_rest(is_exhausted))
    }

    /// Drops messages that were handed out before. Returns whether the log went back.
    ///
    /// Then the batch ends before the new log, and the next worker seeks to its first message. The seek also makes
    /// librdkafka (2.12.1) forget its own position, which never goes back and to which a later rebalance would jump.
    fn drop_repeated(&self, batch: &mut Batch) -> bool {
        if !batch.is_empty() {
            self.is_position_wrong.store(false, Ordering::Relaxed);
        }
        let mut history = self.history();
        if let (None, Some(first)) = (history.next(), batch.iter().next()) {
            self.context.offsets.begin(&self.at, self.generation, first.offset());
        }
        let rewind = history.drop_repeated(batch);
        drop(history);
        let Some(Rewind { from, to, reason }) = rewind else { return false };
        self.rewind_to(to);
        self.context.client.emit(What::Rewound { at: self.at.clone(), from, to: to.offset, reason });
        true
    }

    /// Returns whether an exhausted unit waits for messages. One with an end to store is checked once more, when its
    /// messages are done.
    fn may_rest(&self, is_exhausted: bool) -> bool {
        is_exhausted && self.end.load(Ordering::Relaxed) < 0
    }

    fn wait_for_more(&self, batch: Batch, until: Instant) -> Found {
        self.buffer(Some(Buffered::Filling(batch, until)));
        Found::Until(until)
    }

    /// Returns those of these messages that the flow allows now.
    fn allow(&self, parked: Parked, is_exhausted: bool) -> Found {
        match self.flow.allow(&parked.batch, parked.first) {
            Allowed::Until(end) => Found::Messages { parked, end, is_exhausted },
            Allowed::NotBefore(moment) => {
                self.park(parked);
                Found::NotBefore(moment)
            }
        }
    }
}
