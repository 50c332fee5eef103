//! Bounds the size of batches so that each takes about as long as it should, measured from the batches before.
//!
//! A batch takes a fixed time and a time for each message. Both are estimated by a least-squares line through the last
//! batches, of which older ones count less. A handler whose fixed time is longer than the limit gets batches that take
//! about twice that time: smaller ones would only cost throughput.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The size of the first batch, when nothing was measured.
const FIRST_MESSAGES: usize = 10;
/// The most by which a batch may be larger than the last, as a factor.
const GROWTH_MAX: f64 = 8.0;
/// Weight of a batch relative to the batch after it.
const DECAY: f64 = 0.8;

/// The pace of one route's batches in this process.
#[derive(Debug)]
pub struct Pace {
    limit_s: f64,
    state: Mutex<State>,
}

/// Weighted sums over the batches so far: of messages `n` and seconds `t`.
#[derive(Debug, Default)]
struct State {
    weight: f64,
    n: f64,
    t: f64,
    nn: f64,
    nt: f64,
    /// The last batch.
    last: (f64, f64),
}

impl Pace {
    /// Makes a pace: batches take about this long at most.
    pub fn new(limit: Duration) -> Self {
        Self { limit_s: limit.as_secs_f64(), state: Mutex::default() }
    }

    /// Returns how many messages the next batch may have, at least one.
    pub(super) fn messages_max(&self) -> usize {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.weight == 0.0 {
            return FIRST_MESSAGES;
        }
        let (fixed_s, message_s) = state.line();
        let for_messages_s = (self.limit_s - fixed_s).max(fixed_s);
        let wanted = if message_s > 0.0 { for_messages_s / message_s } else { f64::MAX };
        let most = state.last.0.max(FIRST_MESSAGES as f64) * GROWTH_MAX;
        (wanted.min(most) as usize).max(1)
    }

    /// Notes how long a batch took.
    pub(super) fn note(&self, messages: usize, took: Duration) {
        if messages == 0 {
            return;
        }
        let (n, t) = (messages as f64, took.as_secs_f64());
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.weight > 0.0 && state.is_surprised(n, t, self.limit_s / 10.0) {
            let (last_n, last_t) = state.last;
            *state = State::default();
            state.add(last_n, last_t);
        }
        state.add(n, t);
    }
}

impl State {
    fn add(&mut self, messages: f64, took_s: f64) {
        let Self { weight, n, t, nn, nt, last } = self;
        let (squared, product) = (messages * messages, messages * took_s);
        for (sum, value) in [(weight, 1.0), (n, messages), (t, took_s), (nn, squared), (nt, product)] {
            *sum = sum.mul_add(DECAY, value);
        }
        *last = (messages, took_s);
    }

    /// Returns whether a batch took much more or less time than expected, so that the earlier ones do not count any
    /// more.
    fn is_surprised(&self, messages: f64, took_s: f64, tolerance_s: f64) -> bool {
        let (fixed_s, each_s) = self.line();
        let foreseen_s = each_s.mul_add(messages, fixed_s);
        (took_s - foreseen_s).abs() > tolerance_s && !(foreseen_s / 2.0..=foreseen_s * 2.0).contains(&took_s)
    }

    /// Returns the seconds for a batch, and for each message of it.
    fn line(&self) -> (f64, f64) {
        let spread = self.weight.mul_add(self.nn, -(self.n * self.n));
        // Batches of one size do not show a fixed time: all time counts as the messages'.
        if spread <= 1e-3 * self.n * self.n {
            return (0.0, self.t / self.n);
        }
        let message_s = self.weight.mul_add(self.nt, -(self.n * self.t)) / spread;
        let message_s = message_s.clamp(0.0, self.t / self.n);
        ((self.t - message_s * self.n).max(0.0) / self.weight, message_s)
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    /// The sizes of batches whose time is `fixed_s + messages * message_s`, of at most 1,000 messages.
    fn sizes(fixed_s: f64, message_s: f64, batches: usize) -> Vec<usize> {
        let pace = Pace::new(Duration::from_secs(1));
        let next = |_| {
            let size = pace.messages_max().min(1_000);
            pace.note(size, Duration::from_secs_f64(message_s.mul_add(size as f64, fixed_s)));
            size
        };
        (0..batches).map(next).collect()
    }

    #[test]
    fn a_fast_handler_soon_gets_full_batches() {
        assert_eq!(sizes(50e-6, 1e-6, 5)[..], [10, 80, 640, 1_000, 1_000]);
    }

    #[test]
    fn a_slow_handler_gets_batches_of_about_the_limit() {
        let found = sizes(0.0, 0.05, 20);
        assert_eq!(found[0], 10);
        assert!(found[1..].iter().all(|messages| (15..=22).contains(messages)), "{found:?}");
    }

    #[test]
    fn a_very_slow_handler_gets_single_messages() {
        assert_eq!(sizes(0.0, 3.0, 6).last(), Some(&1));
    }

    #[test]
    fn a_time_that_no_smaller_batch_saves_does_not_make_batches_small() {
        let found = sizes(2.0, 0.001, 20);
        assert_eq!(found.last(), Some(&1_000), "{found:?}");
    }

    #[test]
    fn a_handler_that_becomes_slow_gets_smaller_batches() {
        let pace = Pace::new(Duration::from_secs(1));
        (0..20).for_each(|_| pace.note(1_000, Duration::from_millis(1)));
        for _ in 0..20 {
            let messages = pace.messages_max().min(1_000);
            pace.note(messages, Duration::from_millis(50) * messages as u32);
        }
        assert!((5..=40).contains(&pace.messages_max()), "{}", pace.messages_max());
    }
}
