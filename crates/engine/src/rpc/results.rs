//! Results of calls with an idempotency key, for callers that ask again: executed once, answered each time.
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
    /// It has been executed.
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
    /// Calls that wait for the result of another call.
    waiting: usize,
    /// Bytes of their requests.
    waiting_bytes: usize,
}

#[derive(Debug)]
enum State<T> {
    /// Who carries it out, and who waits for the same, each with the bytes of its request.
    UnderWay(T, Vec<(usize, T)>),
    Done(Arc<Answer>),
}

/// Counted for each result beside its key and its body.
const ENTRY_BYTES: usize = 256;

/// Bytes that a result takes.
fn size_of(key: &[u8], answer: &Answer) -> usize {
    key.len() + answer.body.len() + ENTRY_BYTES
}

impl<T: Clone + PartialEq> Results<T> {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self { bounds, known: HashMap::new(), ages: VecDeque::new(), bytes: 0, waiting: 0, waiting_bytes: 0 }
    }

    /// What is to be done about a call with this key, whose request has `size_bytes`, where it may wait (`None`: it may not).
    /// Returns `None` where it would have to wait and may not.
    pub(super) fn begin(
        &mut self,
        key: &Arc<[u8]>,
        now: Instant,
        call: &T,
        size_bytes: Option<usize>,
    ) -> Option<Known> {
        self.shrink(now);
        match self.known.get_mut(key) {
            Some(State::Done(answer)) => Some(Known::Done(Arc::clone(answer))),
            Some(State::UnderWay(_, waiting)) => {
                let size_bytes = size_bytes?;
                waiting.push((size_bytes, call.clone()));
                self.waiting += 1;
                self.waiting_bytes += size_bytes;
                Some(Known::UnderWay)
            }
            None => {
                self.known.insert(Arc::clone(key), State::UnderWay(call.clone(), Vec::new()));
                Some(Known::New)
            }
        }
    }

    /// A call was executed (`answer`: `None`: in vain, so that it may be tried again); who waits for the same. Nobody does where it is
    /// not this call that carries it out.
    pub(super) fn finish(&mut self, key: &Arc<[u8]>, now: Instant, call: &T, answer: Option<Answer>) -> Vec<T> {
        let Some(State::UnderWay(owner, waiting)) = self.known.get_mut(key) else { return Vec::new() };
        if owner != call {
            return Vec::new();
        }
        let waiting = std::mem::take(waiting);
        self.waiting -= waiting.len();
        self.waiting_bytes -= waiting.iter().map(|(size_bytes, _)| size_bytes).sum::<usize>();
        match answer {
            Some(answer) => {
                self.bytes += size_of(key, &answer);
                self.known.insert(Arc::clone(key), State::Done(Arc::new(answer)));
                self.ages.push_back((now, Arc::clone(key)));
                self.shrink(now);
            }
            None => drop(self.known.remove(key)),
        }
        waiting.into_iter().map(|(_, call)| call).collect()
    }

    /// How many wait for the result of another call, and the bytes of their requests.
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
            if let Some(State::Done(answer)) = self.known.remove(key) {
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
    fn results_are_bounded_and_grow_old() {
        let mut now = Instant::now();
        let mut results =
            Results::new(Bounds { count_max: 2, bytes_max: 100 + ENTRY_BYTES, ttl: Duration::from_secs(10) });
        let done = |bytes| Some(Known::Done(Arc::new(answer(bytes))));
        assert_eq!(results.begin(&key("1"), now, &"first", Some(1)), Some(Known::New));
        assert_eq!(results.begin(&key("1"), now, &"second", Some(1)), Some(Known::UnderWay));
        assert_eq!(results.finish(&key("1"), now, &"first", Some(answer(40))), ["second"]);
        assert_eq!(results.begin(&key("1"), now, &"third", Some(1)), done(40));
        assert_eq!(results.begin(&key("2"), now, &"failed", Some(1)), Some(Known::New));
        assert!(results.finish(&key("2"), now, &"failed", None).is_empty());
        assert_eq!(
            results.begin(&key("2"), now, &"again", Some(1)),
            Some(Known::New),
            "what failed may be tried again"
        );
        results.finish(&key("2"), now, &"again", Some(answer(80)));
        assert!(results.finish(&key("2"), now, &"again", None).is_empty(), "what is done stays so");
        assert_eq!(results.begin(&key("1"), now, &"fourth", Some(1)), Some(Known::New), "there was no room for both");
        assert_eq!(results.begin(&key("2"), now, &"fifth", Some(1)), done(80));
        now += Duration::from_secs(11);
        assert_eq!(results.begin(&key("2"), now, &"sixth", Some(1)), Some(Known::New), "it was too old");
        assert_eq!((results.ages.len(), results.bytes), (0, 0));
    }

    #[test]
    fn only_who_carries_it_out_ends_it_and_not_too_many_wait() {
        let now = Instant::now();
        let mut results = Results::new(Bounds { count_max: 2, bytes_max: 100, ttl: Duration::from_secs(10) });
        assert_eq!(results.begin(&key("1"), now, &"first", Some(1)), Some(Known::New));
        assert_eq!(results.begin(&key("1"), now, &"second", Some(1)), Some(Known::UnderWay));
        assert_eq!(results.begin(&key("1"), now, &"third", None), None);
        assert!(results.finish(&key("1"), now, &"third", None).is_empty(), "it is not its own");
        assert_eq!(results.finish(&key("1"), now, &"first", None), ["second"]);
        assert_eq!(results.waiting(), (0, 0));
    }

    #[test]
    fn keys_count_as_bytes() {
        let now = Instant::now();
        let mut results = Results::new(Bounds { count_max: 100, bytes_max: 10_000, ttl: Duration::from_secs(10) });
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
