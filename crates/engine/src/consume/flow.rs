//! Limits how fast a route's messages come: the size of a batch, how long it may fill, the age of messages and their
//! rate.
//!
//! Messages wait by a timer of the scheduler's; no thread sleeps for them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::pace::Pace;
use crate::clock;
use crate::kafka::Batch;

/// The most messages of one job.
#[derive(Clone, Copy, Debug)]
pub struct PullLimits {
    /// Most messages of a batch.
    pub messages_max: usize,
    /// A batch ends with the first few hundred messages whose keys and values reach this sum.
    pub bytes_max: usize,
}

impl PullLimits {
    /// Returns whether a batch of this size need not wait for more.
    pub(super) const fn are_reached(&self, messages: usize, bytes: usize) -> bool {
        messages >= self.messages_max || bytes >= self.bytes_max
    }
}

impl Default for PullLimits {
    fn default() -> Self {
        Self { messages_max: 1_000, bytes_max: 16 * 1024 * 1024 }
    }
}

/// Limits how fast a route's messages come.
#[derive(Clone, Debug, Default)]
pub struct Flow {
    /// The most messages of one job.
    pub limits: PullLimits,
    /// The longest wait of a batch that is not full for more messages; `None` for not at all.
    pub wait_max: Option<Duration>,
    /// The longest run of a job of single messages, which then ends between two of them; `None` until it is done.
    pub turn_max: Option<Duration>,
    /// True if only user code stores offsets.
    pub stores_by_hand: bool,
    /// Bounds batches by the time that they take; `None` for limits alone.
    pub pace: Option<Arc<Pace>>,
    /// The age that a message must have, by its timestamp, before it is processed.
    pub delay: Option<Duration>,
    /// Shared by all partitions of the route.
    pub rate: Option<Arc<RateLimit>>,
}

/// The part of a batch that a flow allows now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Allowed {
    /// The messages before this index.
    Until(usize),
    /// None before this moment.
    NotBefore(Instant),
}

impl Flow {
    /// Returns which of the messages from `first` on, of which there is one at least, may be processed now.
    pub(super) fn allow(&self, batch: &Batch, first: usize) -> Allowed {
        let mut end = batch.len();
        if let Some(delay) = self.delay {
            match due(batch, first, delay) {
                Allowed::Until(index) => end = index,
                not_before @ Allowed::NotBefore(_) => return not_before,
            }
        }
        let Some(rate) = &self.rate else { return Allowed::Until(end) };
        match rate.take(end - first, clock::now()) {
            Ok(count) => Allowed::Until(first + count),
            Err(moment) => Allowed::NotBefore(moment),
        }
    }
}

/// Returns the messages that are old enough; those without a timestamp are due at once.
fn due(batch: &Batch, first: usize, delay: Duration) -> Allowed {
    let now_ms = clock::wall().as_millis() as i64;
    let delay_ms = delay.as_millis() as i64;
    let wait_ms = |index| match batch.message(index).timestamp().0 {
        timestamp_ms if timestamp_ms < 0 => 0,
        timestamp_ms => timestamp_ms.saturating_add(delay_ms) - now_ms,
    };
    let first_ms = wait_ms(first);
    if first_ms > 0 {
        return Allowed::NotBefore(clock::now() + Duration::from_millis(first_ms as u64));
    }
    Allowed::Until((first + 1..batch.len()).find(|index| wait_ms(*index) > 0).unwrap_or(batch.len()))
}

/// A rate in messages per second, in portions of up to the messages of a tenth of a second: a token bucket.
#[derive(Debug)]
pub struct RateLimit {
    per_s: f64,
    portion: f64,
    bucket: Mutex<Bucket>,
}

#[derive(Debug)]
struct Bucket {
    tokens: f64,
    filled_at: Instant,
}

impl RateLimit {
    /// Makes a limit in messages per second, which must be more than 0.
    pub fn new(per_s: f64) -> Self {
        let portion = (per_s / 10.0).max(1.0);
        Self { per_s, portion, bucket: Mutex::new(Bucket { tokens: portion, filled_at: clock::now() }) }
    }

    /// Takes up to `wanted` messages, at least one; or returns the moment at which a portion of them will be allowed.
    fn take(&self, wanted: usize, now: Instant) -> Result<usize, Instant> {
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        let since_s = now.saturating_duration_since(bucket.filled_at).as_secs_f64();
        bucket.tokens = since_s.mul_add(self.per_s, bucket.tokens).min(self.portion);
        bucket.filled_at = bucket.filled_at.max(now);
        // A little more, so that at the moment returned below there is a whole token despite rounding.
        let whole = (bucket.tokens + 1e-6).floor().min(wanted as f64);
        if whole >= 1.0 {
            bucket.tokens -= whole;
            return Ok(whole as usize);
        }
        let portion = self.portion.min(wanted as f64);
        Err(now + Duration::from_secs_f64(((portion - bucket.tokens) / self.per_s).max(0.0)))
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    #[test]
    fn a_rate_gives_portions_and_says_when_the_next_is_there() {
        let rate = RateLimit::new(100.0);
        let now = Instant::now();
        assert_eq!(rate.take(25, now), Ok(10));
        let moment = rate.take(15, now).expect_err("the portion is used up");
        assert!(moment > now && moment <= now + Duration::from_millis(101));
        assert_eq!(rate.take(15, moment), Ok(10));
        assert_eq!(rate.take(5, moment + Duration::from_mins(1)), Ok(5));
    }

    #[test]
    fn less_than_one_a_second_is_possible() {
        let rate = RateLimit::new(0.5);
        let now = Instant::now();
        assert_eq!(rate.take(9, now), Ok(1));
        let moment = rate.take(8, now).expect_err("used up");
        assert_eq!(moment.duration_since(now).as_secs(), 2);
        assert_eq!(rate.take(8, moment), Ok(1));
    }

    #[test]
    fn over_a_second_the_rate_holds() {
        let rate = RateLimit::new(1_000.0);
        let (mut now, mut given) = (Instant::now(), 0);
        let end = now + Duration::from_secs(1);
        while now < end {
            match rate.take(1_000, now) {
                Ok(count) => given += count,
                Err(moment) => now = moment,
            }
        }
        assert!((1_000..=1_200).contains(&given), "{given}");
    }
}
