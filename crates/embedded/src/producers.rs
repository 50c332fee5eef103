//! The knowledge of a partition about the producers that number their batches: it takes each batch once and in order.
//!
//! Kafka's `ProducerStateManager` and KIP-98: the last five batches of a producer are remembered, since a client keeps
//! at most five on their way.

use std::collections::{HashMap, VecDeque};

use kafka_protocol::ResponseError;

use crate::batch::Header;

const REMEMBERED: usize = 5;

/// A batch that was written.
#[derive(Clone, Copy, Debug)]
struct Written {
    first_sequence: i32,
    last_sequence: i32,
    base_offset: i64,
}

/// A producer that has written to the partition.
#[derive(Debug)]
pub(crate) struct Known {
    pub epoch: i16,
    batches: VecDeque<Written>,
    /// When it wrote last, in ms since 1970.
    pub timestamp: i64,
    /// The first offset of its open transaction.
    pub transaction_start: Option<i64>,
}

impl Known {
    /// Returns the number of its last record, or -1.
    pub fn last_sequence(&self) -> i32 {
        self.batches.back().map_or(-1, |batch| batch.last_sequence)
    }
}

/// The decision about a batch.
pub(crate) enum Verdict {
    Append,
    /// It is in the log already, at this offset.
    Duplicate(i64),
}

/// The producers of a partition, by their ids.
#[derive(Debug, Default)]
pub(crate) struct Producers {
    known: HashMap<i64, Known>,
}

impl Producers {
    /// Decides on a batch by its producer's epoch and its sequence.
    ///
    /// # Errors
    /// `InvalidProducerEpoch` for a producer that was replaced, `OutOfOrderSequenceNumber` for a gap.
    pub fn judge(&self, header: &Header) -> Result<Verdict, ResponseError> {
        if header.producer_id < 0 {
            return Ok(Verdict::Append);
        }
        let Some(known) = self.known.get(&header.producer_id) else { return Ok(Verdict::Append) };
        if header.producer_epoch < known.epoch {
            return Err(ResponseError::InvalidProducerEpoch);
        }
        let first = header.base_sequence;
        if header.producer_epoch > known.epoch {
            return if first == 0 { Ok(Verdict::Append) } else { Err(ResponseError::OutOfOrderSequenceNumber) };
        }
        let last = later(first, header.last_offset_delta);
        let same = |batch: &&Written| batch.first_sequence == first && batch.last_sequence == last;
        if let Some(batch) = known.batches.iter().find(same) {
            return Ok(Verdict::Duplicate(batch.base_offset));
        }
        match known.batches.back() {
            Some(batch) if later(batch.last_sequence, 1) != first => Err(ResponseError::OutOfOrderSequenceNumber),
            _ => Ok(Verdict::Append),
        }
    }

    /// Notes a batch that was appended, or the marker that ends its producer's transaction.
    pub fn note(&mut self, header: &Header) {
        if header.producer_id < 0 {
            return;
        }
        let known = self.known.entry(header.producer_id).or_insert_with(|| Known {
            epoch: header.producer_epoch,
            batches: VecDeque::new(),
            timestamp: 0,
            transaction_start: None,
        });
        if header.producer_epoch > known.epoch {
            known.batches.clear();
            known.epoch = header.producer_epoch;
        }
        known.timestamp = header.max_timestamp;
        if header.is_control() {
            known.transaction_start = None;
            return;
        }
        if header.is_transactional() {
            known.transaction_start.get_or_insert(header.base_offset);
        }
        if known.batches.len() == REMEMBERED {
            known.batches.pop_front();
        }
        known.batches.push_back(Written {
            first_sequence: header.base_sequence,
            last_sequence: later(header.base_sequence, header.last_offset_delta),
            base_offset: header.base_offset,
        });
    }

    /// Returns the first offset of a producer's open transaction.
    pub fn transaction_start(&self, producer_id: i64) -> Option<i64> {
        self.known.get(&producer_id)?.transaction_start
    }

    /// Returns the first offset of all open transactions.
    pub fn first_open(&self) -> Option<i64> {
        self.known.values().filter_map(|known| known.transaction_start).min()
    }

    /// Returns the producers by their ids, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (i64, &Known)> {
        self.known.iter().map(|(id, known)| (*id, known))
    }
}

/// Returns the sequence that comes so much later; after the largest comes 0.
fn later(sequence: i32, by: i32) -> i32 {
    let sum = i64::from(sequence) + i64::from(by);
    (sum % (i64::from(i32::MAX) + 1)) as i32
}
