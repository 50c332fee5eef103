//! The results of calls with an idempotency key: a repeated call is answered, not executed again.
//!
//! They live in the memory of one process: the next owner of a partition does not have them. They are bounded in
//! number, bytes and age.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::rpc::ReplyKind;

/// The answer of a call.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    /// Never an error.
    pub kind: ReplyKind,
    /// JSON.
    pub body: Vec<u8>,
}

/// The result of looking up a call's idempotency key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Lookup {
    /// The call is to be executed, and then to be `finish`ed.
    New,
    /// Another call with this key is being executed; its `finish` returns this one, to be answered too.
    InFlight,
    /// A call with this key was executed; this was the answer.
    Cached(Arc<Answer>),
}

/// Bounds of the results that are kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) count_max: usize,
    pub(super) bytes_max: usize,
    pub(super) ttl: Duration,
}

/// The results of calls, and the duplicates that wait for one; calls are `T`.
#[derive(Debug)]
pub(super) struct IdempotencyCache<T> {
    bounds: Bounds,
    known: HashMap<Arc<[u8]>, State<T>>,
    /// Results by age, oldest first.
    ages: VecDeque<(Instant, Arc<[u8]>)>,
    bytes: usize,
    /// Duplicates that wait.
    waiting: usize,
    /// Bytes of their requests.
    waiting_bytes: usize,
}

#[derive(Debug)]
enum State<T> {
    /// The call that is executed, and the duplicates that wait for its result, each with the bytes of its request.
    InFlight(T, Vec<(usize, T)>),
    Cached(Arc<Answer>),
}

/// Counted for each result beside its key and its body.
const ENTRY_BYTES: usize = 256;

/// Returns the bytes that a result takes.
fn size_of(key: &[u8], answer: &Answer) -> usize {
    key.len() + answer.body.len() + ENTRY_BYTES
}

impl<T: Clone + PartialEq> IdempotencyCache<T> {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self { bounds, known: HashMap::new(), ages: VecDeque::new(), bytes: 0, waiting: 0, waiting_bytes: 0 }
    }

    /// Looks up a call's key. A duplicate of a call in flight is added to its waiting calls, with the bytes of its
    /// request. `size_bytes` is `None` if it may not wait; `None` is returned if it would have to.
    pub(super) fn begin(
        &mut self,
        key: &Arc<[u8]>,
        now: Instant,
        call: &T,
        size_bytes: Option<usize>,
    ) -> Option<Lookup> {
        self.shrink(now);
        match self.known.get_mut(key) {
            Some(State::Cached(answer)) => Some(Lookup::Cached(Arc::clone(answer))),
            Some(State::InFlight(_, waiting)) => {
                let size_bytes = size_bytes?;
                waiting.push((size_bytes, call.clone()));
                self.waiting += 1;
                self.waiting_bytes += size_bytes;
                Some(Lookup::InFlight)
            }
            None => {
                self.known.insert(Arc::clone(key), State::InFlight(call.clone(), Vec::new()));
                Some(Lookup::New)
            }
        }
    }

    /// Records the answer of a call that was executed; `None` if it failed, so that it may be tried again. Returns
    /// the duplicates that waited for it: none if it is another call that is executed.
    pub(super) fn finish(&mut self, key: &Arc<[u8]>, now: Instant, call: &T, answer: Option<Answer>) -> Vec<T> {
        let Some(State::InFlight(owner, waiting)) = self.known.get_mut(key) else { return Vec::new() };
        if owner != call {
            return Vec::new();
        }
        let waiting = std::mem::take(waiting);
        self.waiting -= waiting.len();
        self.waiting_bytes -= waiting.iter().map(|(size_bytes, _)| size_bytes).sum::<usize>();
        match answer {
            Some(answer) => {
                self.bytes += size_of(key, &answer);
                self.known.insert(Arc::clone(key), State::Cached(Arc::new(answer)));
                self.ages.push_back((now, Arc::clone(key)));
                self.shrink(now);
            }
            None => drop(self.known.remove(key)),
        }
        waiting.into_iter().map(|(_, call)| call).collect()
    }

    /// Returns how many duplicates wait, and the bytes of their requests.
    pub(super) const fn waiting(&self) -> (usize, usize) {
        (self.waiting, self.waiting_bytes)
    }

    /// Bytes of the results and their keys.
    #[cfg(all(test, not(feature = "model")))]
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    fn shrink(&mut self, now: Instant) {
        while let Some((came, key)) = self.ages.front() {
            let is_old = now.saturating_duration_since(*came) >= self.bounds.ttl;
            if !is_old && self.ages.len() <= self.bounds.count_max && self.bytes <= self.bounds.bytes_max {
                return;
            }
            if let Some(State::Cached(answer)) = self.known.remove(key) {
                self.bytes -= size_of(key, &answer);
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
    fn results_are_bounded_and_expire() {
        let mut now = Instant::now();
        let mut results =
            IdempotencyCache::new(Bounds { count_max: 2, bytes_max: 100 + ENTRY_BYTES, ttl: Duration::from_secs(10) });
        let done = |bytes| Some(Lookup::Cached(Arc::new(answer(bytes))));
        assert_eq!(results.begin(&key("1"), now, &"first", Some(1)), Some(Lookup::New));
        assert_eq!(results.begin(&key("1"), now, &"second", Some(1)), Some(Lookup::InFlight));
        assert_eq!(results.finish(&key("1"), now, &"first", Some(answer(40))), ["second"]);
        assert_eq!(results.begin(&key("1"), now, &"third", Some(1)), done(40));
        assert_eq!(results.begin(&key("2"), now, &"failed", Some(1)), Some(Lookup::New));
        assert!(results.finish(&key("2"), now, &"failed", None).is_empty());
        assert_eq!(
            results.begin(&key("2"), now, &"again", Some(1)),
            Some(Lookup::New),
            "what failed may be tried again"
        );
        results.finish(&key("2"), now, &"again", Some(answer(80)));
        assert!(results.finish(&key("2"), now, &"again", None).is_empty(), "what is done stays so");
        assert_eq!(results.begin(&key("1"), now, &"fourth", Some(1)), Some(Lookup::New), "there was no room for both");
        assert_eq!(results.begin(&key("2"), now, &"fifth", Some(1)), done(80));
        now += Duration::from_secs(11);
        assert_eq!(results.begin(&key("2"), now, &"sixth", Some(1)), Some(Lookup::New), "it was too old");
        assert_eq!((results.ages.len(), results.bytes), (0, 0));
    }

    #[test]
    fn only_the_executed_call_ends_it_and_the_waiting_ones_are_bounded() {
        let now = Instant::now();
        let mut results = IdempotencyCache::new(Bounds { count_max: 2, bytes_max: 100, ttl: Duration::from_secs(10) });
        assert_eq!(results.begin(&key("1"), now, &"first", Some(1)), Some(Lookup::New));
        assert_eq!(results.begin(&key("1"), now, &"second", Some(1)), Some(Lookup::InFlight));
        assert_eq!(results.begin(&key("1"), now, &"third", None), None);
        assert!(results.finish(&key("1"), now, &"third", None).is_empty(), "it is not its own");
        assert_eq!(results.finish(&key("1"), now, &"first", None), ["second"]);
        assert_eq!(results.waiting(), (0, 0));
    }

    #[test]
    fn keys_count_as_bytes() {
        let now = Instant::now();
        let mut results =
            IdempotencyCache::new(Bounds { count_max: 100, bytes_max: 10_000, ttl: Duration::from_secs(10) });
        for number in 0..100 {
            let key = key(&format!("{number}{}", "x".repeat(900)));
            results.begin(&key, now, &"call", Some(1));
            results.finish(&key, now, &"call", Some(answer(1)));
            assert!(results.bytes <= 10_000);
        }
        let held: usize = results.known.keys().map(|key| key.len()).sum();
        assert!(held <= 10_000 && results.known.len() == results.ages.len());
    }
}
