//! Where reading begins.

use crate::Result;
use crate::kafka::{Client, TopicPartition};

/// The place where reading begins.
#[derive(Clone, Copy, Debug)]
pub enum StartAt {
    /// The first message that is still there.
    Earliest,
    /// The next message to come.
    Latest,
    /// The last `n` messages.
    Last(i64),
    /// This offset.
    Offset(i64),
    /// The first message at or after this time, in milliseconds since 1970; the next to come when none is so young.
    Time(i64),
}

impl StartAt {
    /// librdkafka's `RD_KAFKA_OFFSET_BEGINNING`.
    pub(super) const EARLIEST: i64 = -2;

    /// Returns the offset in librdkafka's terms. `Time` asks a broker and blocks the calling thread; the others do
    /// neither.
    pub(super) fn offset(self, client: &Client, at: &TopicPartition) -> Result<i64> {
        Ok(match self {
            Self::Earliest => Self::EARLIEST,
            Self::Latest => -1,
            // librdkafka's RD_KAFKA_OFFSET_TAIL_BASE.
            Self::Last(count) => -2000 - count,
            Self::Offset(offset) => offset,
            Self::Time(timestamp_ms) => client.offset_at(at, timestamp_ms)?,
        })
    }
}
