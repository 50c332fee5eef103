//! The messages of a partition that were handed out: tells a repeated message from one of a log that went back.
//!
//! In a rebalance librdkafka (2.12.1) pauses a partition that stays, and later fetches from the position that it had
//! noted. A pull that is under way at that moment notes its own position only when it ends, so its last step is fetched
//! twice. A log may also go back: an unclean leader election truncates it, or the topic is deleted and made again. Both
//! show messages below the position. A repeated message is recognised because it is the same record: same offset,
//! timestamp and leader epoch.

use std::collections::VecDeque;

use crate::kafka::{Batch, MessageRef, Position};

/// Messages that can come twice: those of the last step of a pull.
const REPEATED_MAX: usize = 256;

/// The identity of a record: it distinguishes a record of a partition from another one at the same offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    offset: i64,
    timestamp_ms: i64,
    leader_epoch: i32,
}

impl Identity {
    fn of(message: MessageRef<'_>) -> Self {
        let (timestamp_ms, _) = message.timestamp();
        Self { offset: message.offset(), timestamp_ms, leader_epoch: message.leader_epoch() }
    }

    const fn position(&self) -> Position {
        Position { offset: self.offset, leader_epoch: self.leader_epoch }
    }
}

/// The messages of a partition that were handed out.
#[derive(Debug, Default)]
pub(super) struct FetchHistory {
    /// One past the last message, or the group's committed offset before the first; `None` where there is none.
    next: Option<i64>,
    /// The last messages, in offset order.
    last: VecDeque<Identity>,
    /// Where the last seek went; `None` when there was none, or a message was handed out since.
    sought: Option<i64>,
}

/// A log that went back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rewind {
    /// The offset that would have been next.
    pub(super) from: i64,
    /// The place of the message that came, with its leader epoch.
    pub(super) to: Position,
    /// The cause, as far as it is known.
    pub(super) reason: String,
}

/// The result of comparing a record with the records handed out before.
#[derive(Debug, PartialEq, Eq)]
enum Classification {
    New,
    Repeated,
    Rewound(Rewind),
}

impl FetchHistory {
    /// Drops repeated messages from a pulled batch and notes the others as handed out.
    ///
    /// Where the log went back, the batch ends before the first message of the new log. Returns the rewind then.
    pub(super) fn drop_repeated(&mut self, batch: &mut Batch) -> Option<Rewind> {
        if !self.is_in_order(batch) {
            return self.drop_known(batch);
        }
        self.note(batch);
        None
    }

    /// Returns one past the last message, or the group's committed offset before the first; `None` where there is none.
    pub(super) const fn next(&self) -> Option<i64> {
        self.next
    }

    /// Begins where the group's last commit stands: a message before it is one of a log that went back.
    pub(super) fn begin(&mut self, offset: i64) {
        *self = Self { next: Some(offset), last: VecDeque::new(), sought: None };
    }

    /// Forgets everything, because reading goes on from this offset (-2 the first, -1 the end).
    pub(super) fn seek(&mut self, offset: i64) {
        *self = Self { sought: Some(offset), ..Self::default() };
    }

    /// Returns where fetching has to go on: after the last message, or where a seek went since.
    pub(super) fn resume_offset(&self) -> Option<i64> {
        self.next.or(self.sought)
    }

    /// Returns whether each message is after the one before it: nearly always.
    fn is_in_order(&self, batch: &Batch) -> bool {
        let mut next = self.next.unwrap_or(i64::MIN);
        batch.iter().all(|message| message.offset() >= std::mem::replace(&mut next, message.offset() + 1))
    }

    fn drop_known(&mut self, batch: &mut Batch) -> Option<Rewind> {
        let mut rewind = None;
        batch.retain_while(|message| match self.classify(Identity::of(message)) {
            Classification::New => Some(true),
            Classification::Repeated => Some(false),
            Classification::Rewound(found) => {
                rewind = Some(found);
                None
            }
        });
        rewind
    }

    /// Compares a record with the records handed out before. A new one is noted as handed out.
    fn classify(&mut self, record: Identity) -> Classification {
        let Some(next) = self.next.filter(|next| record.offset < *next) else {
            self.next = Some(record.offset + 1);
            self.note_record(record);
            return Classification::New;
        };
        let place = self.last.binary_search_by_key(&record.offset, |each| each.offset);
        if place.is_ok_and(|place| self.last[place] == record) {
            return Classification::Repeated;
        }
        let epoch = self.last.back().map_or(-1, |last| last.leader_epoch);
        Classification::Rewound(Rewind {
            from: next,
            to: record.position(),
            reason: reason(epoch, record.leader_epoch),
        })
    }

    fn note(&mut self, batch: &Batch) {
        if let Some(last) = batch.len().checked_sub(1) {
            self.next = Some(batch.message(last).offset() + 1);
        }
        let first = batch.len().saturating_sub(REPEATED_MAX);
        (first..batch.len()).for_each(|index| self.note_record(Identity::of(batch.message(index))));
    }

    fn note_record(&mut self, record: Identity) {
        if self.last.len() >= REPEATED_MAX {
            self.last.pop_front();
        }
        self.last.push_back(record);
    }
}

fn reason(before: i32, now: i32) -> String {
    if now > before && before >= 0 {
        return format!("the log was truncated in a leader election (leader epoch {before}, now {now})");
    }
    "the log begins anew: the topic was made again, or the fetch position was out of range and was reset".into()
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    fn record(offset: i64, timestamp_ms: i64, leader_epoch: i32) -> Identity {
        Identity { offset, timestamp_ms, leader_epoch }
    }

    /// Records 100 to 109 have been handed out, written at the times 1,100 to 1,109.
    fn history() -> FetchHistory {
        let mut history = FetchHistory::default();
        for offset in 100..110 {
            assert_eq!(history.classify(record(offset, 1_000 + offset, 3)), Classification::New);
        }
        history
    }

    #[test]
    fn records_that_come_twice_are_repeated_and_those_behind_them_new() {
        let mut history = history();
        for offset in 104..110 {
            assert_eq!(history.classify(record(offset, 1_000 + offset, 3)), Classification::Repeated);
        }
        assert_eq!(history.classify(record(112, 1_112, 3)), Classification::New, "offsets have holes");
    }

    #[test]
    fn a_step_may_be_repeated_twice() {
        let mut history = history();
        assert_eq!(history.classify(record(110, 1_110, 3)), Classification::New);
        assert_eq!(history.classify(record(105, 1_105, 3)), Classification::Repeated);
        assert_eq!(history.classify(record(111, 1_111, 3)), Classification::New);
        assert_eq!(history.classify(record(105, 1_105, 3)), Classification::Repeated);
    }

    #[test]
    fn another_record_at_a_known_offset_is_a_log_that_went_back() {
        let mut history = history();
        let Classification::Rewound(rewind) = history.classify(record(105, 2_000, 4)) else {
            panic!("it is no repetition")
        };
        assert_eq!((rewind.from, rewind.to), (110, Position { offset: 105, leader_epoch: 4 }));
        assert!(rewind.reason.contains("leader epoch 3, now 4"), "{}", rewind.reason);
    }

    #[test]
    fn a_new_log_of_the_same_epoch_is_known_by_its_times() {
        let Classification::Rewound(rewind) = history().classify(record(100, 5_000, 3)) else {
            panic!("it is no repetition")
        };
        assert!(rewind.reason.contains("begins anew"), "{}", rewind.reason);
    }

    #[test]
    fn what_lies_before_the_last_step_is_a_log_that_went_back() {
        let found = history().classify(record(7, 1_007, 3));
        assert!(
            matches!(found, Classification::Rewound(Rewind { from: 110, to: Position { offset: 7, .. }, .. })),
            "{found:?}"
        );
    }

    #[test]
    fn a_message_before_the_committed_offset_is_a_log_that_went_back() {
        let mut history = FetchHistory::default();
        history.begin(100);
        let found = history.classify(record(60, 2_000, 4));
        assert!(
            matches!(found, Classification::Rewound(Rewind { from: 100, to: Position { offset: 60, .. }, .. })),
            "{found:?}"
        );
        assert_eq!(history.classify(record(100, 2_001, 4)), Classification::New);
    }

    #[test]
    fn after_a_seek_any_offset_is_new() {
        let mut history = history();
        history.seek(3);
        assert_eq!(history.classify(record(3, 1_003, 3)), Classification::New);
    }

    #[test]
    fn reading_resumes_after_the_last_message_or_where_a_seek_went_since() {
        let mut history = history();
        assert_eq!(history.resume_offset(), Some(110));
        history.seek(42);
        assert_eq!((history.next(), history.resume_offset()), (None, Some(42)));
        assert_eq!(history.classify(record(50, 1_050, 3)), Classification::New, "there is a gap after the offset");
        assert_eq!(history.resume_offset(), Some(51));
    }
}
