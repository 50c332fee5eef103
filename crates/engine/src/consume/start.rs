//! Where reading begins.

use crate::kafka::{Client, TopicPartition};
use crate::{Error, Result};

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
    /// Returns the place of a word: `earliest`, `latest`, or `last`, `offset`, `time` with a number.
    ///
    /// # Errors
    /// [`Error::Invalid`]: any other word.
    pub fn of(word: &str, number: i64) -> Result<Self> {
        match word {
            "earliest" => Ok(Self::Earliest),
            "latest" => Ok(Self::Latest),
            "last" => Ok(Self::Last(number)),
            "offset" => Ok(Self::Offset(number)),
            "time" => Ok(Self::Time(number)),
            other => Err(Error::Invalid { reason: format!("reading can't start at {other:?}") }),
        }
    }

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
