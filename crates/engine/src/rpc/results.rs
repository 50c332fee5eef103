//! Results of calls with an idempotency key, for callers that ask again: carried out once, answered each time.
//!
//! In memory, of one process: whoever takes over a partition does not know them. Bounded in number, bytes and age.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::ReplyKind;

/// What a call was answered with.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    /// What it is: never an error.
    pub kind: ReplyKind,
    /// JSON.
    pub body: Vec<u8>,
}

/// What is to be done about a call.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// Nobody has carried it out: do so, and `finish`.
    New,
    /// Somebody is about to; who finishes it answers this one, too.
    UnderWay,
    /// It has been carried out.
    Done(Arc<Answer>),
}

/// How much is remembered, and for how long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) count_max: usize,
    pub(super) bytes_max: usize,
    pub(super) ttl: Duration,
}

/// Waiters are `T`.
#[derive(Debug)]
pub(super) struct Results<T> {
    bounds: Bounds,
    known: HashMap<Arc<[u8]>, State<T>>,
    /// Results by age, oldest first.
    ages: VecDeque<(Instant, Arc<[u8]>)>,
    bytes: usize,
}

#[derive(Debug)]
enum State<T> {
    /// Who else waits for what is being carried out.
    UnderWay(Vec<T>),
    Done(Arc<Answer>),
}

impl<T> Results<T> {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self { bounds, known: HashMap::new(), ages: VecDeque::new(), bytes: 0 }
    }

    /// What is to be done about a call with this key.
    pub(super) fn begin(&mut self, key: &Arc<[u8]>, now: Instant, waiter: impl FnOnce() -> T) -> Known {
        self.shrink(now);
        match self.known.get_mut(key) {
            Some(State::Done(answer)) => Known::Done(Arc::clone(answer)),
            Some(State::UnderWay(waiting)) => {
                waiting.push(waiter());
                Known::UnderWay
            }
            None => {
                self.known.insert(Arc::clone(key), State::UnderWay(Vec::new()));
                Known::New
            }
        }
    }

    /// It was carried out (`None`: in vain, so that it may be tried again); who waits for the same.
    pub(super) fn finish(&mut self, key: &Arc<[u8]>, now: Instant, answer: Option<Answer>) -> Vec<T> {
        let Some(State::UnderWay(waiting)) = self.known.get_mut(key) else { return Vec::new() };
        let waiting = std::mem::take(waiting);
        match answer {
            Some(answer) => {
                self.bytes += answer.body.len();
                self.known.insert(Arc::clone(key), State::Done(Arc::new(answer)));
                self.ages.push_back((now, Arc::clone(key)));
                self.shrink(now);
            }
            None => drop(self.known.remove(key)),
        }
        waiting
    }

    fn shrink(&mut self, now: Instant) {
        while let Some((came, key)) = self.ages.front() {
            let is_old = now.saturating_duration_since(*came) >= self.bounds.ttl;
            if !is_old && self.ages.len() <= self.bounds.count_max && self.bytes <= self.bounds.bytes_max {
                return;
            }
            if let Some(State::Done(answer)) = self.known.remove(key) {
                self.bytes -= answer.body.len();
            }
            self.ages.pop_front();
        }
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    fn key(text: &str) -> Arc<[u8]> {
        text.as_bytes().into()
    }

    fn answer(bytes: usize) -> Answer {
        Answer { kind: ReplyKind::Result, body: vec![b'x'; bytes] }
    }

    #[test]
    fn results_are_bounded_and_grow_old() {
        let mut now = Instant::now();
        let mut results = Results::new(Bounds { count_max: 2, bytes_max: 100, ttl: Duration::from_secs(10) });
        assert_eq!(results.begin(&key("1"), now, || "first"), Known::New);
        assert_eq!(results.begin(&key("1"), now, || "second"), Known::UnderWay);
        assert_eq!(results.finish(&key("1"), now, Some(answer(40))), ["second"]);
        assert_eq!(results.begin(&key("1"), now, || "third"), Known::Done(Arc::new(answer(40))));
        assert_eq!(results.begin(&key("2"), now, || "failed"), Known::New);
        assert!(results.finish(&key("2"), now, None).is_empty());
        assert_eq!(results.begin(&key("2"), now, || "again"), Known::New, "what failed may be tried again");
        results.finish(&key("2"), now, Some(answer(80)));
        assert!(results.finish(&key("2"), now, None).is_empty(), "what is done stays so");
        assert_eq!(results.begin(&key("1"), now, || "fourth"), Known::New, "there was no room for both");
        assert_eq!(results.begin(&key("2"), now, || "fifth"), Known::Done(Arc::new(answer(80))));
        now += Duration::from_secs(11);
        assert_eq!(results.begin(&key("2"), now, || "sixth"), Known::New, "it was too old");
        assert_eq!((results.ages.len(), results.bytes), (0, 0));
    }
}
