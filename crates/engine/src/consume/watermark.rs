//! The watermark of a partition whose messages end in any order: all messages before it are done.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Instant;

use crate::kafka::Position;

/// The watermark of a partition whose messages end in any order.
#[derive(Debug, Default)]
pub(super) struct Watermark {
    /// The messages from the first that is not done on, in offset order.
    entries: VecDeque<Entry>,
    /// The next offset to commit; `None` before any message is done.
    position: Option<Position>,
    /// The number of messages with an ordinal.
    ordinals: u64,
    /// The number of entries that are done.
    done: usize,
    /// The end of the partition after the last entry, which may be after control records.
    end: Option<Position>,
}

#[derive(Debug)]
struct Entry {
    offset: i64,
    leader_epoch: i32,
    ordinal: u64,
    since: Instant,
    is_done: bool,
}

/// The change that the end of a message made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// None: it had ended before, or is not known.
    None,
    /// It is done, and an earlier message is not.
    Beyond,
    /// The watermark has moved.
    Moved,
}

/// The distance from the watermark to the last message that was begun, and the message that it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitGap {
    /// Messages from the first that is not done to the last that was begun.
    pub messages: usize,
    /// The number of them that are done.
    pub done: usize,
    /// The first that is not done.
    pub oldest_offset: i64,
    /// When it was begun.
    pub oldest_since: Instant,
}

impl Watermark {
    /// Begins a message, which must be after all that were begun. Returns its ordinal, counted from 0.
    pub(super) fn begin(&mut self, offset: i64, leader_epoch: i32, now: Instant) -> u64 {
        let ordinal = self.ordinals;
        self.ordinals += 1;
        self.end = None;
        self.entries.push_back(Entry { offset, leader_epoch, ordinal, since: now, is_done: false });
        ordinal
    }

    /// Skips a message that an earlier process has done, or that has expired; it gets no ordinal.
    pub(super) fn skip(&mut self, offset: i64, leader_epoch: i32, now: Instant) -> Change {
        self.entries.push_back(Entry { offset, leader_epoch, ordinal: u64::MAX, since: now, is_done: true });
        self.done += 1;
        self.advance()
    }

    /// Marks a message as done.
    pub(super) fn done(&mut self, offset: i64) -> Change {
        let Some(place) = self.place_of(offset) else { return Change::None };
        if std::mem::replace(&mut self.entries[place].is_done, true) {
            return Change::None;
        }
        self.done += 1;
        match self.advance() {
            Change::None => Change::Beyond,
            change => change,
        }
    }

    fn advance(&mut self) -> Change {
        let mut change = Change::None;
        while let Some(entry) = self.entries.pop_front_if(|entry| entry.is_done) {
            self.position = Some(Position { offset: entry.offset + 1, leader_epoch: entry.leader_epoch });
            self.done -= 1;
            change = Change::Moved;
        }
        if change == Change::Moved {
            self.move_to_end();
        }
        change
    }

    /// Notes the end of the partition. Returns whether the watermark moves there at once.
    pub(super) fn note_end(&mut self, end: Position) -> bool {
        self.end = Some(end);
        self.move_to_end()
    }

    fn move_to_end(&mut self) -> bool {
        let (Some(end), Some(position)) = (self.end, self.position.as_mut()) else { return false };
        let moves = self.entries.is_empty() && end.offset > position.offset;
        if moves {
            *position = end;
        }
        moves
    }

    /// Offsets rise by one, except for the gaps that compaction and transactions leave.
    fn place_of(&self, offset: i64) -> Option<usize> {
        let first = self.entries.front()?.offset;
        let guess = usize::try_from(offset - first).ok()?;
        if self.entries.get(guess).is_some_and(|entry| entry.offset == offset) {
            return Some(guess);
        }
        self.entries.binary_search_by_key(&offset, |entry| entry.offset).ok()
    }

    /// Returns the ordinal of a message that was begun and is not before the watermark.
    pub(super) fn ordinal_of(&self, offset: i64) -> Option<u64> {
        self.place_of(offset).map(|place| self.entries[place].ordinal)
    }

    /// Returns the next offset to commit; `None` before any message is done.
    pub(super) const fn position(&self) -> Option<Position> {
        self.position
    }

    /// Returns the place of the first message that was begun and is not done, with its own leader epoch, if no message
    /// was done before it. A log that has this message, of this epoch, has not been truncated before it.
    pub(super) fn first(&self) -> Option<Position> {
        let entry = self.entries.front().filter(|_| self.position.is_none())?;
        Some(Position { offset: entry.offset, leader_epoch: entry.leader_epoch })
    }

    /// Returns the number of messages from the first that is not done to the last that was begun.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns how far the watermark is behind; `None` when all messages are done.
    pub(super) fn commit_gap(&self) -> Option<CommitGap> {
        let oldest = self.entries.front()?;
        let (messages, done) = (self.entries.len(), self.done);
        Some(CommitGap { messages, done, oldest_offset: oldest.offset, oldest_since: oldest.since })
    }

    /// Returns the offset of the watermark; `None` when no message was begun.
    pub(super) fn offset(&self) -> Option<i64> {
        self.position.map(|position| position.offset).or_else(|| self.entries.front().map(|entry| entry.offset))
    }

    /// Returns the offset after all messages that were begun; `None` before the first.
    pub(super) fn next(&self) -> Option<i64> {
        self.entries.back().map(|entry| entry.offset + 1).or(self.position.map(|position| position.offset))
    }

    /// Returns the leader epoch of the last message that is done beyond the watermark; -1 when there is none.
    pub(super) fn finished_epoch(&self) -> i32 {
        self.entries.iter().rev().find(|entry| entry.is_done).map_or(-1, |entry| entry.leader_epoch)
    }

    /// Returns the messages that are done beyond the watermark, as ranges of offsets in order.
    pub(super) fn finished(&self) -> Vec<Range<i64>> {
        let mut ranges: Vec<Range<i64>> = Vec::new();
        let mut is_in_one = false;
        for entry in &self.entries {
            match ranges.last_mut() {
                Some(last) if entry.is_done && is_in_one => last.end = entry.offset + 1,
                _ if entry.is_done => ranges.push(entry.offset..entry.offset + 1),
                _ => (),
            }
            is_in_one = entry.is_done;
        }
        ranges
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::consume::finished::{decode, encode};
    use crate::consume::testing::Random;

    fn end(offset: i64) -> Position {
        Position { offset, leader_epoch: 4 }
    }

    fn begun(offsets: &[i64]) -> Watermark {
        let mut watermark = Watermark::default();
        for offset in offsets {
            watermark.begin(*offset, 3, Instant::now());
        }
        watermark
    }

    fn offset(watermark: &Watermark) -> Option<i64> {
        watermark.position().map(|position| position.offset)
    }

    #[test]
    fn it_moves_when_all_before_are_done() {
        let mut watermark = begun(&[5, 6, 9, 10]);
        assert_eq!(watermark.done(6), Change::Beyond);
        assert_eq!(offset(&watermark), None);
        assert_eq!(watermark.finished().first(), Some(&(6..7)));
        assert_eq!(watermark.done(5), Change::Moved);
        assert_eq!(offset(&watermark), Some(7));
        assert_eq!(watermark.done(5), Change::None);
        assert_eq!(watermark.done(10), Change::Beyond);
        assert_eq!(watermark.done(9), Change::Moved);
        assert_eq!(offset(&watermark), Some(11));
        assert_eq!(watermark.commit_gap(), None);
    }

    #[test]
    fn its_place_before_anything_is_done_has_the_leader_epoch_of_the_first_message() {
        let mut watermark = begun(&[5, 6]);
        watermark.done(6);
        assert_eq!(watermark.first(), Some(Position { offset: 5, leader_epoch: 3 }));
        watermark.done(5);
        assert_eq!(watermark.first(), None, "its position is known");
    }

    #[test]
    fn the_end_behind_control_records_is_the_position_when_all_is_done() {
        let mut watermark = begun(&[5, 6]);
        assert!(!watermark.note_end(end(8)), "nothing is done");
        assert_eq!(watermark.done(6), Change::Beyond);
        assert_eq!(watermark.done(5), Change::Moved);
        assert_eq!(offset(&watermark), Some(8));
        watermark.begin(8, 3, Instant::now());
        watermark.done(8);
        assert_eq!(offset(&watermark), Some(9), "an end counts until the next message");
    }

    #[test]
    fn messages_that_an_earlier_process_did_are_skipped() {
        let mut watermark = begun(&[0]);
        assert_eq!(watermark.skip(1, 3, Instant::now()), Change::None);
        assert_eq!(watermark.begin(2, 3, Instant::now()), 1);
        assert_eq!(watermark.done(0), Change::Moved);
        assert_eq!(offset(&watermark), Some(2));
        assert_eq!(watermark.ordinal_of(2), Some(1));
    }

    /// Random orders of completion, failures, skips and revocations, beside a model that remembers every offset.
    #[test]
    fn it_agrees_with_a_simple_model() {
        for seed in 0..300 {
            let mut random = Random::new(seed);
            // The committed offset with its metadata, and every offset that was ever done.
            let (mut committed, mut text) = (0i64, String::new());
            let mut ever_done = BTreeSet::new();
            let log: Vec<i64> = (0..400)
                .scan(0, |at, _| {
                    *at += 1 + if random.below(10) == 0 { random.below(4) as i64 } else { 0 };
                    Some(*at)
                })
                .collect();
            for _life in 0..4 {
                let mut watermark = Watermark::default();
                let earlier = decode(committed, &text);
                let mut open = Vec::new();
                let mut ordinals = 0;
                let mut rest = log.iter().copied().filter(|at| *at >= committed).peekable();
                for _step in 0..random.below(600) {
                    if random.below(2) == 0 && open.len() < 50 {
                        let Some(at) = rest.next() else { continue };
                        if earlier.iter().any(|range| range.contains(&at)) {
                            assert!(ever_done.contains(&at), "only messages that were done are skipped");
                            watermark.skip(at, 0, Instant::now());
                        } else {
                            assert_eq!(watermark.begin(at, 0, Instant::now()), ordinals);
                            ordinals += 1;
                            open.push(at);
                        }
                    } else if !open.is_empty() {
                        // A failure ends no message: it stays open, and ends or is skipped later.
                        if random.below(5) == 0 {
                            continue;
                        }
                        let at = open.swap_remove(random.below(open.len() as u64) as usize);
                        assert_ne!(watermark.done(at), Change::None);
                        ever_done.insert(at);
                    }
                    // The model: the first offset of the log from `committed` on that is not done.
                    let first_open = open.iter().min().copied();
                    let begun_until = rest.peek().copied().unwrap_or(i64::MAX);
                    if let Some(at) = offset(&watermark) {
                        assert!(first_open.is_none_or(|first| at <= first));
                        let before = log.iter().filter(|each| **each < at && **each >= committed);
                        assert!(before.clone().all(|each| ever_done.contains(each)));
                        let next = log.iter().find(|each| **each >= at && **each < begun_until);
                        assert_eq!(
                            next.copied().filter(|each| !open.contains(each)),
                            None,
                            "it is at the first message that is open"
                        );
                    }
                }
                // The partition is revoked: messages that are not done come again, those done beyond the watermark do
                // not.
                if let Some(at) = offset(&watermark).or_else(|| watermark.offset()) {
                    committed = at;
                    let limit = if random.below(3) == 0 { 12 } else { 4_000 };
                    text = encode(committed, &watermark.finished(), limit).0;
                    assert!(text.len() <= limit);
                }
            }
            assert!(log.iter().take_while(|at| **at < committed).all(|at| ever_done.contains(at)));
        }
    }
}
