//! Why messages of a partition do not come.

use std::ops::RangeInclusive;
use std::sync::atomic::Ordering;

use super::PartitionQueue;
use crate::consume::open_partitions::OpenPartitions;
use crate::events::What;
use crate::kafka::{Code, FetchError, Position, Unread, batch_max, why_unread};

impl PartitionQueue {
    /// Emits the errors of a pull. Returns whether the end of the partition was reached.
    pub(super) fn report_errors(&self, errors: Vec<FetchError>) -> bool {
        let mut is_at_end = false;
        for FetchError { code, text, offset } in errors {
            if code == Code::PARTITION_EOF {
                is_at_end = true;
                continue;
            }
            self.correct_position(offset);
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
            self.context.client.emit(What::FetchFailed { at: self.at.clone(), code, text: text.clone() });
        }
        if is_final {
            self.note_stuck(code, text, None);
        }
    }

    /// Notes that a batch would take too much memory.
    fn note_unread(&self, code: Code, offsets: &RangeInclusive<i64>) {
        let (first, last, most) = (offsets.start(), offsets.end(), batch_max() >> 20);
        let way = "raise `fetch_batch_max_mb` to read it, or skip it by `awoke resume`";
        let text = format!("the batch of offsets {first} to {last} takes more than {most} MB when decompressed: {way}");
        self.note_stuck(code, text, Some(last.saturating_add(1)).filter(|_| *first >= 0));
    }

    /// Sets librdkafka's position right after an error.
    ///
    /// librdkafka (2.12.1) takes an error for a message: its position is one past it unless a later message moved it
    /// further, and a rebalance would go on there. Where fetching has ended there is nothing to seek in.
    fn correct_position(&self, offset: i64) {
        if offset >= 0 && self.next_offset().is_none_or(|next| next <= offset) {
            self.is_position_wrong.store(true, Ordering::Relaxed);
            self.context.client.seek(&self.at, Position { offset, leader_epoch: -1 });
        }
    }

    /// Notes that messages do not come any more; `beyond` is the offset after a batch that cannot be read.
    pub(super) fn note_stuck(&self, code: Code, text: String, beyond: Option<i64>) {
        if !self.is_stuck.swap(true, Ordering::AcqRel) {
            self.context.open_partitions.note_stuck(&self.at, code, &text, beyond);
            self.context.client.emit(What::Stuck { at: self.at.clone(), code, text });
        }
    }

    /// Notes that messages come again.
    pub(super) fn clear_stuck(&self) {
        if self.is_stuck.swap(false, Ordering::AcqRel) {
            self.context.open_partitions.clear_stuck(&self.at);
        }
    }
}
