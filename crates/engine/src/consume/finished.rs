//! The messages that are done beyond the committed offset, as a text that fits into a commit's metadata.
//!
//! Before it stand the id of the topic, because an offset of a topic says nothing about one that was made again under
//! its name; how far the changelogs of the route's tables go, because the rows up to there belong to the offset; and
//! the note of user code.
//!
//! The idea is that of Confluent's Parallel Consumer: after a restart these messages are skipped. The text has two
//! forms, and the one that names more within the limit is used: `r`, alternating lengths of ranges that are not done
//! and that are, and `b`, a bit for each offset; both from the committed offset on, in base 64 without padding.
//! Messages that do not fit are left out, and processed again.

use std::ops::Range;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;

use crate::kafka::TopicId;

/// The most that a commit's metadata may have beside the topic's id, of the 4,096 bytes that a broker takes by default.
const METADATA_BYTES_MAX: usize = 4_000 - TOPIC_BYTES;
/// The mark before the id of the topic, and the end of that.
const TOPIC_MARK: &str = "awoke:topic=";
const TOPIC_END: char = ';';
/// The bytes that they and an id take.
const TOPIC_BYTES: usize = TOPIC_MARK.len() + 22 + 1;
/// The mark before how far changelogs go, and the end of that.
const ROWS_MARK: &str = "awoke:rows=";
const ROWS_END: char = ';';
/// The most bytes that one changelog takes of it, and the mark for all.
const ROWS_BYTES_MAX: usize = 16 + 1 + 19 + 1;
/// The mark before the text, after the note of user code.
const MARK: &str = "awoke:done=";
/// Between the leader epoch of the last message that is done, and the text.
const EPOCH_END: char = '.';
/// The most bytes that the mark and an epoch take.
const HEAD_BYTES_MAX: usize = MARK.len() + 12;

/// The messages that an earlier process has done beyond the committed offset.
#[derive(Debug, Default)]
pub(super) struct Earlier {
    /// In order.
    ranges: Vec<Range<i64>>,
    /// The leader epoch of the last of them.
    epoch: i32,
}

impl Earlier {
    /// Returns whether a message was done. A message of a later leader epoch shows that the log was truncated
    /// meanwhile, or went on: no message from there on was done.
    pub(super) fn has(&mut self, offset: i64, leader_epoch: i32) -> bool {
        if leader_epoch > self.epoch {
            self.ranges.clear();
        }
        let place = self.ranges.partition_point(|range| range.end <= offset);
        self.ranges.get(place).is_some_and(|range| range.contains(&offset))
    }

    /// Returns the messages that were done from an offset on, in order, and the leader epoch of the last.
    pub(super) fn from(&self, offset: i64) -> (impl Iterator<Item = Range<i64>>, i32) {
        let ranges = self.ranges.iter().filter(move |range| range.end > offset);
        (ranges.map(move |range| range.start.max(offset)..range.end), self.epoch)
    }

    /// Returns one past the last message that was done.
    pub(super) fn end(&self) -> Option<i64> {
        self.ranges.last().map(|last| last.end)
    }
}

/// How far a changelog goes at a commit: the mark of its name, and one past its last record.
pub(super) type RowsUntil = (u64, i64);

/// Returns the bytes that this number of changelogs takes of a commit's metadata.
pub(super) const fn bytes_of_rows(changelogs: usize) -> usize {
    if changelogs == 0 { 0 } else { ROWS_MARK.len() + changelogs * ROWS_BYTES_MAX }
}

/// Writes the id of the topic, and how far changelogs go, before a commit's metadata.
pub(super) fn with_heads(topic: Option<&TopicId>, rows: &[RowsUntil], metadata: Option<Arc<str>>) -> Option<Arc<str>> {
    if topic.is_none() && rows.is_empty() {
        return metadata;
    }
    let mut text = String::new();
    if let Some(TopicId(id)) = topic {
        text.extend([TOPIC_MARK, id]);
        text.push(TOPIC_END);
    }
    if !rows.is_empty() {
        let all: Vec<_> = rows.iter().map(|(mark, until)| format!("{mark:x}:{until}")).collect();
        text.extend([ROWS_MARK, &all.join(",")]);
        text.push(ROWS_END);
    }
    text.push_str(metadata.as_deref().unwrap_or_default());
    Some(text.into())
}

/// Splits a commit's metadata into the id of the topic and the rest.
pub(super) fn split_topic(metadata: &str) -> (Option<TopicId>, &str) {
    let split = metadata.strip_prefix(TOPIC_MARK).and_then(|rest| rest.split_once(TOPIC_END));
    split.map_or((None, metadata), |(id, rest)| (Some(TopicId(id.into())), rest))
}

/// Splits what follows the id of the topic into how far changelogs go, and the rest.
pub(super) fn split_rows(metadata: &str) -> (Vec<RowsUntil>, &str) {
    let split = metadata.strip_prefix(ROWS_MARK).and_then(|rest| rest.split_once(ROWS_END));
    let Some((rows, rest)) = split else { return (Vec::new(), metadata) };
    let read = |each: &str| {
        let (mark, until) = each.split_once(':')?;
        Some((u64::from_str_radix(mark, 16).ok()?, until.parse().ok()?))
    };
    (rows.split(',').filter_map(read).collect(), rest)
}

/// Splits a commit's metadata into the note of user code or of a crash record, and the messages that are done beyond
/// the offset.
pub(super) fn split_metadata(base: i64, text: &str) -> (Option<&str>, Earlier) {
    let (_, text) = split_rows(split_topic(text).1);
    let (note, finished) = text.split_once(MARK).unwrap_or((text, ""));
    // A text without an epoch is of a release that did not write it.
    let (epoch, finished) = finished.split_once(EPOCH_END).unwrap_or(("", finished));
    let earlier = Earlier { ranges: decode(base, finished), epoch: epoch.parse().unwrap_or(i32::MAX) };
    ((!note.is_empty()).then_some(note), earlier)
}

/// Returns the messages that a commit says are done, beyond its offset.
#[cfg(feature = "simulated")]
pub fn finished_beyond(offset: i64, metadata: &str) -> Vec<Range<i64>> {
    split_metadata(offset, metadata).1.ranges
}

/// Makes a commit's metadata of a note and the messages that are done; `epoch` is that of the last one, and `taken` the
/// bytes that are for others. Returns whether it names all.
pub(super) fn write_metadata(
    note: &str,
    base: i64,
    finished: &[Range<i64>],
    epoch: i32,
    taken: usize,
) -> (Option<Arc<str>>, bool) {
    let limit = METADATA_BYTES_MAX.saturating_sub(note.len() + HEAD_BYTES_MAX + taken);
    let (text, is_whole) = encode(base, finished, limit);
    let metadata = match (note, &*text) {
        ("", "") => None,
        (note, "") => Some(note.into()),
        (note, text) => Some(format!("{note}{MARK}{epoch}{EPOCH_END}{text}").into()),
    };
    (metadata, is_whole)
}

/// Returns the text for the messages that are done from `base` on, of at most `limit` bytes, and whether it names all;
/// empty for none.
pub(super) fn encode(base: i64, finished: &[Range<i64>], limit: usize) -> (String, bool) {
    let Some(last) = finished.last() else { return (String::new(), true) };
    let Some(room) = limit.checked_sub(1).map(|left| left / 4 * 3) else { return (String::new(), false) };
    let ((runs, runs_end), (bits, bits_end)) = (as_runs(base, finished, room), as_bits(base, finished, room));
    let runs_are_better = (runs_end, std::cmp::Reverse(runs.len())) >= (bits_end, std::cmp::Reverse(bits.len()));
    let (form, bytes, end) = if runs_are_better { ('r', runs, runs_end) } else { ('b', bits, bits_end) };
    let text = if bytes.is_empty() { String::new() } else { format!("{form}{}", BASE64.encode(bytes)) };
    (text, end >= last.end)
}

/// Returns the messages that a text names; none when it is not such a text.
pub(super) fn decode(base: i64, text: &str) -> Vec<Range<i64>> {
    let mut characters = text.chars();
    let (form, rest) = (characters.next(), characters.as_str());
    let Ok(bytes) = BASE64.decode(rest) else { return Vec::new() };
    match form {
        Some('r') => of_runs(base, &bytes).unwrap_or_default(),
        Some('b') => of_bits(base, &bytes),
        _ => Vec::new(),
    }
}

/// Returns the bytes, and the first offset after those that they cover.
fn as_runs(base: i64, finished: &[Range<i64>], room: usize) -> (Vec<u8>, i64) {
    let (mut bytes, mut at) = (Vec::new(), base);
    for range in finished {
        let before = bytes.len();
        put_number(&mut bytes, (range.start - at) as u64);
        put_number(&mut bytes, (range.end - range.start) as u64);
        if bytes.len() > room {
            bytes.truncate(before);
            break;
        }
        at = range.end;
    }
    (bytes, at)
}

fn of_runs(base: i64, bytes: &[u8]) -> Option<Vec<Range<i64>>> {
    let (mut ranges, mut at, mut rest) = (Vec::new(), base, bytes);
    while !rest.is_empty() {
        let start = at.checked_add(i64::try_from(take_number(&mut rest)?).ok()?)?;
        at = start.checked_add(i64::try_from(take_number(&mut rest)?).ok()?)?;
        ranges.push(start..at);
    }
    Some(ranges)
}

fn as_bits(base: i64, finished: &[Range<i64>], room: usize) -> (Vec<u8>, i64) {
    let mut bytes = Vec::new();
    let end = base.saturating_add(room as i64 * 8);
    let mut at = base;
    for offset in finished.iter().flat_map(Clone::clone).take_while(|offset| *offset < end) {
        let place = (offset - base) as usize;
        bytes.resize(place / 8 + 1, 0);
        bytes[place / 8] |= 1 << (place % 8);
        at = offset + 1;
    }
    (bytes, at)
}

fn of_bits(base: i64, bytes: &[u8]) -> Vec<Range<i64>> {
    let mut ranges: Vec<Range<i64>> = Vec::new();
    let is_set = |place: &usize| bytes[place / 8] & (1 << (place % 8)) != 0;
    let offsets = (0..bytes.len() * 8).filter(is_set).map_while(|place| base.checked_add(place as i64));
    for offset in offsets.take_while(|offset| *offset < i64::MAX) {
        match ranges.last_mut() {
            Some(last) if last.end == offset => last.end += 1,
            _ => ranges.push(offset..offset + 1),
        }
    }
    ranges
}

/// Seven bits a byte, the lowest first; the eighth says that more follow.
fn put_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(first & 0x7f).checked_shl(shift)?;
        if first & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::consume::testing::Random;
    use crate::fuzzing::cases;

    proptest! {
        #![proptest_config(cases())]

        #[test]
        fn fuzz_any_metadata_is_read_as_ranges_in_order(
            base in prop_oneof![0..1_000i64, Just(-1_001), (i64::MAX - 9)..=i64::MAX, any::<i64>()],
            text in prop_oneof![".{0,99}", "(note)?(awoke:done=)?(-?[0-9]{0,12}\\.)?[rb]?[A-Za-z0-9_-]{0,60}={0,2}"],
            at in any::<i64>(), epoch in any::<i32>(),
        ) {
            let (note, mut earlier) = split_metadata(base, &text);
            prop_assert!(note.is_none_or(|note| text.starts_with(note)));
            let mut before = base;
            for range in &earlier.ranges {
                prop_assert!(before <= range.start && range.start <= range.end, "{base} {text}: {:?}", earlier.ranges);
                before = range.end;
            }
            let is_done = earlier.has(at, epoch);
            prop_assert!(!is_done || (at >= base && earlier.end().is_some_and(|end| at < end)));
        }

        #[test]
        fn fuzz_what_is_read_is_written_again(base in 0..i64::MAX / 2, seed: u64, epoch in 0..9i32) {
            let mut random = Random::new(seed);
            let ranges = random_ranges(&mut random, 50, 90, 90);
            let ranges: Vec<_> = ranges.iter().map(|range| range.start + base..range.end + base).collect();
            let (metadata, is_whole) = write_metadata("note", base, &ranges, epoch, 0);
            let metadata = metadata.expect("something is done");
            prop_assert!(is_whole && metadata.len() <= METADATA_BYTES_MAX);
            let (note, earlier) = split_metadata(base, &metadata);
            prop_assert_eq!((note, &earlier.ranges, earlier.epoch), (Some("note"), &ranges, epoch));
            prop_assert_eq!(write_metadata("note", base, &earlier.ranges, earlier.epoch, 0).0, Some(metadata));
        }
    }

    #[test]
    fn the_id_of_a_topic_and_the_ends_of_changelogs_stand_before_what_else_a_commit_says() {
        let id = TopicId("4XwkzPZ3QeGVkUzXs/bE+w".into());
        for (rest, note) in [("", None), ("note", Some("note")), ("noteawoke:done=3.rAgM", Some("note"))] {
            for rows in [vec![], vec![(u64::MAX, i64::MAX)], vec![(7, 0), (8, 9)]] {
                for id in [None, Some(&id)] {
                    let text = with_heads(id, &rows, Some(rest.into())).expect("a text");
                    let (found, behind) = split_topic(&text);
                    assert_eq!((found.as_ref(), split_rows(behind)), (id, (rows.clone(), rest)));
                    assert_eq!(split_metadata(10, &text).0, note);
                    let room = TOPIC_BYTES + bytes_of_rows(rows.len()) + rest.len();
                    assert!(text.len() <= room, "{} of {room}", text.len());
                }
            }
        }
        assert_eq!(split_topic("note;"), (None, "note;"), "a commit of before");
        assert_eq!(split_rows("awoke:rows=x:1,7,:,9:9;note"), (vec![(9, 9)], "note"), "what is wrong is left out");
        assert_eq!(with_heads(None, &[], None), None);
    }

    fn offsets(ranges: &[Range<i64>]) -> Vec<i64> {
        ranges.iter().flat_map(Clone::clone).collect()
    }

    /// Ranges in order that do not touch.
    fn random_ranges(random: &mut Random, count: u64, gap_max: u64, run_max: u64) -> Vec<Range<i64>> {
        let mut at = 0;
        (0..count)
            .map(|_| {
                let start = at + 1 + random.below(gap_max) as i64;
                at = start + 1 + random.below(run_max) as i64;
                start..at
            })
            .collect()
    }

    #[test]
    fn what_is_written_is_read_again() {
        for seed in 0..500 {
            let mut random = Random::new(seed);
            let (count, gap, run) = (random.below(200), 1 + random.below(300), 1 + random.below(300));
            let ranges = random_ranges(&mut random, count, gap, run);
            let (text, is_whole) = encode(-1, &ranges, 4_000);
            assert!(text.len() <= 4_000);
            let found = offsets(&decode(-1, &text));
            assert_eq!(is_whole, found == offsets(&ranges), "it is known whether all is said");
            assert!(offsets(&ranges).starts_with(&found), "nothing is said that is not so");
            if count < 100 && gap < 100 && run < 100 {
                assert_eq!(found, offsets(&ranges), "so little fits whole");
            }
        }
    }

    #[test]
    fn what_lies_beyond_the_last_possible_offset_is_left_out() {
        let every = format!("b{}", BASE64.encode([0xff; 4]));
        assert_eq!(decode(i64::MAX - 3, &every), std::slice::from_ref(&(i64::MAX - 3..i64::MAX)));
        assert_eq!(decode(i64::MAX, &every), []);
        let (far, mut bytes) = (u64::MAX >> 1, Vec::new());
        put_number(&mut bytes, far);
        put_number(&mut bytes, far);
        assert_eq!(decode(5, &format!("r{}", BASE64.encode(bytes))), []);
    }

    #[test]
    fn what_does_not_fit_is_left_out_from_the_end() {
        for limit in [0, 1, 4, 5, 100, 4_000] {
            let every_other: Vec<_> = (0..50_000).map(|each| 2 * each + 1..2 * each + 2).collect();
            let (text, is_whole) = encode(0, &every_other, limit);
            assert!(!is_whole);
            assert!(text.len() <= limit);
            let found = offsets(&decode(0, &text));
            assert!(offsets(&every_other).starts_with(&found));
            if limit == 4_000 {
                assert!(found.len() > 11_900, "a bit for each offset: {}", found.len());
            }
        }
        let far: Vec<_> = (0..50_000).map(|each| 1_000 * each + 1..1_000 * each + 900).collect();
        let found = decode(0, &encode(0, &far, 4_000).0);
        assert!(found.len() > 700, "four bytes for each gap and run: {}", found.len());
        assert_eq!(found[..], far[..found.len()]);
    }

    #[test]
    fn what_was_done_of_a_log_that_was_truncated_since_is_not_done() {
        let (metadata, _) = write_metadata("note", 100, &[103..105, 107..108], 3, 0);
        let metadata = metadata.expect("something is done");
        let (note, mut earlier) = split_metadata(100, &metadata);
        assert_eq!((note, earlier.end()), (Some("note"), Some(108)));
        assert!(earlier.has(103, 3) && !earlier.has(105, 3));
        assert!(!earlier.has(106, 4) && !earlier.has(107, 4), "107 is another message now");
    }

    #[test]
    fn a_text_without_an_epoch_is_believed() {
        let (text, _) = encode(100, &[103..105, 107..108], 100);
        let (_, mut earlier) = split_metadata(100, &format!("{MARK}{text}"));
        assert!(earlier.has(104, 9) && earlier.has(107, 9));
    }

    #[test]
    fn other_texts_say_nothing() {
        for text in [
            "",
            "r",
            "b",
            "x",
            "rAA",
            "r////",
            "hello",
            "awoke",
            "b\u{e9}",
            "r_____________________w",
            "rgICAgICAgICAgAE",
        ] {
            let found = decode(10, text);
            assert!(found.iter().all(|range| range.start >= 10), "{text}: {found:?}");
        }
        assert_eq!(decode(0, "hello"), []);
    }
}
