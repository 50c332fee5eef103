//! The calls that have not ended, by their ids, and their deadlines.
//!
//! A call is ended by its reply, its deadline, its caller, or a failure; the first of them takes it out of the
//! table, because `Call` ends only once. The table has one lock. It is never held while a call's own lock is taken
//! or a thread is woken.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::call::{Call, Effect, Failure, Wanted};
use crate::clock::{self, Deadline};
use crate::counters::Counter;
use crate::kafka::Fetched;
use crate::rpc::protocol::{self, CallId};
use crate::rpc::signature::SigningKey;
use crate::sync::{Mutex, lock};
use crate::wake::{Budget, Waker};
use crate::{Error, Result};

/// Ended calls that are remembered, to tell a late reply from one of an unknown call.
const REMEMBERED: usize = 10_000;

/// A call without a reply has its responders' group looked up after this time, or half of its own; then at doubling
/// intervals.
const LOOKUP_AFTER: Duration = Duration::from_millis(250);
const LOOKUP_INTERVAL_MAX: Duration = Duration::from_secs(5);

/// The counters of a caller.
#[derive(Debug, Default)]
pub struct CallCounters {
    /// Calls begun.
    pub begun: Counter,
    /// Replies to its calls.
    pub replies: Counter,
    /// Replies to calls that had ended unanswered.
    pub late: Counter,
    /// Replies that had come before.
    pub duplicate: Counter,
    /// Replies to calls of this caller that it does not know.
    pub unknown: Counter,
    /// Replies to other callers, whose replies come to the same partition.
    pub foreign: Counter,
    /// Replies whose signature is missing or wrong.
    pub forged: Counter,
    /// Replies larger than is allowed.
    pub too_large: Counter,
    /// Records that can't be read as replies.
    pub undecodable: Counter,
    /// Calls whose deadline passed.
    pub expired: Counter,
}

impl CallCounters {
    /// Returns the counts by their names.
    pub fn by_name(&self) -> [(&'static str, u64); 10] {
        [
            ("begun", &self.begun),
            ("replies", &self.replies),
            ("late", &self.late),
            ("duplicate", &self.duplicate),
            ("unknown", &self.unknown),
            ("foreign", &self.foreign),
            ("forged", &self.forged),
            ("too_large", &self.too_large),
            ("undecodable", &self.undecodable),
            ("expired", &self.expired),
        ]
        .map(|(name, counter)| (name, counter.get()))
    }
}

/// The calls that have not ended.
#[derive(Debug)]
pub(super) struct Calls {
    table: Mutex<Table>,
    budget: Budget,
    key: Option<SigningKey>,
    reply_bytes_max: usize,
    pub(super) counters: CallCounters,
}

#[derive(Debug, Default)]
struct Table {
    open: HashMap<u64, Open>,
    /// The next moment of each call: its deadline, or when its responders' group is looked up.
    moments: BTreeSet<(Instant, u64)>,
    ended: VecDeque<u64>,
    how_ended: HashMap<u64, WasAnswered>,
    is_closed: bool,
}

type WasAnswered = bool;

#[derive(Debug)]
struct Open {
    call: Arc<Call>,
    /// Its entry in `moments`.
    moment: Instant,
    lookup_interval: Duration,
}

/// The work that was due.
pub(super) struct Due {
    /// `true` if the responders' group is to be looked up.
    pub(super) needs_lookup: bool,
    /// When there is work again.
    pub(super) next: Option<Instant>,
}

impl Calls {
    pub(super) fn new(calls_max: usize, bytes_max: usize, reply_bytes_max: usize, key: Option<SigningKey>) -> Self {
        let budget = Budget::new(calls_max, bytes_max);
        Self { table: Mutex::default(), budget, key, reply_bytes_max, counters: CallCounters::default() }
    }

    /// Acquires budget for one more call. Blocks the calling thread.
    pub(super) fn acquire(&self, bytes: usize, deadline: &Deadline) -> Result<()> {
        self.budget.acquire(bytes, deadline).map_err(|error| of_caller(error.into()))
    }

    /// As `acquire`; returns whether there was budget. Does not block.
    pub(super) fn try_acquire(&self, bytes: usize) -> Result<bool> {
        self.budget.try_acquire(bytes).map_err(|error| of_caller(error.into()))
    }

    /// Releases the budget of a call that was not begun.
    pub(super) fn release(&self, bytes: usize) {
        self.budget.release(1, bytes);
    }

    /// Adds a call, for which room was acquired; returns its next moment.
    pub(super) fn add(&self, call: &Arc<Call>) -> Result<Instant> {
        let timeout = call.until.saturating_duration_since(call.began);
        let lookup_interval = LOOKUP_AFTER.min(timeout / 2);
        let moment = (call.began + lookup_interval).min(call.until);
        let mut table = lock(&self.table);
        if table.is_closed {
            return Err(Error::Closed { what: "caller" });
        }
        table.open.insert(call.id.call, Open { call: Arc::clone(call), moment, lookup_interval });
        table.moments.insert((moment, call.id.call));
        drop(table);
        self.counters.begun.increment();
        Ok(moment)
    }

    /// Returns how many calls have not ended.
    pub(super) fn count(&self) -> usize {
        lock(&self.table).open.len()
    }

    /// Ends a call with a failure; returns `false` if it had ended before.
    pub(super) fn fail(&self, call: &Call, failure: Failure) -> bool {
        let is_expired = failure == Failure::DeadlineExceeded;
        let Some(wakers) = call.fail(failure) else { return false };
        // Before the wake-up: the woken thread finds the call counted, and gone.
        self.counters.expired.add(u64::from(is_expired));
        self.retire(call, false);
        wakers.into_iter().for_each(Waker::wake);
        true
    }

    fn retire(&self, call: &Call, was_answered: WasAnswered) {
        let number = call.id.call;
        let mut table = lock(&self.table);
        let Some(open) = table.open.remove(&number) else { return };
        table.moments.remove(&(open.moment, number));
        if table.ended.len() >= REMEMBERED
            && let Some(oldest) = table.ended.pop_front()
        {
            table.how_ended.remove(&oldest);
        }
        table.ended.push_back(number);
        table.how_ended.insert(number, was_answered);
        drop(table);
        self.budget.release(1, call.size_bytes);
    }

    /// Gives a record of the caller's partition to its call, and counts it.
    pub(super) fn deliver(&self, caller: u64, fetched: &Fetched<'_>) {
        let Some(id) = protocol::header(&fetched.headers, protocol::ID).and_then(CallId::of) else {
            self.counters.undecodable.increment();
            return;
        };
        if id.caller != caller {
            self.counters.foreign.increment();
            return;
        }
        if !self.is_genuine(fetched) {
            self.counters.forged.increment();
            return;
        }
        let found = lock(&self.table).open.get(&id.call).map(|open| Arc::clone(&open.call));
        let Some(call) = found else {
            self.count_stray(id.call);
            return;
        };
        if fetched.value.len() > self.reply_bytes_max {
            self.counters.too_large.increment();
            self.fail(&call, Failure::TooLarge(fetched.value.len()));
            return;
        }
        let Some(reply) = protocol::read_reply(fetched) else {
            self.counters.undecodable.increment();
            return;
        };
        let (effect, wakers) = call.add_reply(reply);
        match effect {
            Effect::Ignored => {
                self.counters.duplicate.increment();
                return;
            }
            Effect::Ended => self.retire(&call, true),
            Effect::Added => (),
        }
        self.counters.replies.increment();
        wakers.into_iter().for_each(Waker::wake);
    }

    fn count_stray(&self, number: u64) {
        let how_ended = lock(&self.table).how_ended.get(&number).copied();
        match how_ended {
            None => self.counters.unknown.increment(),
            Some(true) => self.counters.duplicate.increment(),
            Some(false) => self.counters.late.increment(),
        }
    }

    /// Returns whether the signature is right, if the service has a secret.
    fn is_genuine(&self, fetched: &Fetched<'_>) -> bool {
        self.key.as_ref().is_none_or(|key| key.is_reply_signed(fetched))
    }

    /// Ends calls whose deadline has passed, and finds those whose responders' group is to be looked up.
    pub(super) fn run_due(&self, now: Instant) -> Due {
        let mut expired = Vec::new();
        let mut needs_lookup = false;
        let mut table = lock(&self.table);
        while let Some(&(moment, number)) = table.moments.first()
            && moment <= now
        {
            table.moments.remove(&(moment, number));
            let Some(open) = table.open.get_mut(&number) else { continue };
            if open.call.until <= now {
                expired.push(Arc::clone(&open.call));
                continue;
            }
            needs_lookup |= !open.call.was_answered() && !matches!(open.call.wanted, Wanted::Several(_));
            // Virtual hours would take hundreds of lookups, each with an answer to wait for.
            let interval_max = if clock::is_virtual() { Duration::MAX } else { LOOKUP_INTERVAL_MAX };
            open.lookup_interval = (open.lookup_interval * 2).min(interval_max);
            open.moment = (now + open.lookup_interval).min(open.call.until);
            let again = (open.moment, number);
            table.moments.insert(again);
        }
        let next = table.moments.first().map(|(moment, _)| *moment);
        drop(table);
        for call in expired {
            self.fail(&call, Failure::DeadlineExceeded);
        }
        Due { needs_lookup, next }
    }

    /// Returns how many jobs wait for calls that have no reply yet.
    pub(super) fn waiting_jobs(&self) -> usize {
        self.all().iter().map(|call| call.waiting_jobs()).sum()
    }

    /// Returns the next deadline, and the next moment at which the responders' group is looked up.
    pub(super) fn due(&self) -> clock::Due {
        let table = lock(&self.table);
        let once = table.open.values().map(|open| open.call.until).min();
        let recurring = table.moments.first().map(|(moment, _)| *moment);
        clock::Due { once, recurring }
    }

    /// Ends calls that were begun before a moment. `NobodyThere` ends only those of one responder that have no reply.
    pub(super) fn fail_unanswered(&self, began_before: Instant, failure: &Failure) {
        let is_nobody_there = matches!(failure, Failure::NobodyThere(_));
        for call in self.all() {
            let is_concerned = !is_nobody_there || (!call.was_answered() && !matches!(call.wanted, Wanted::Several(_)));
            if call.began < began_before && is_concerned {
                self.fail(&call, failure.clone());
            }
        }
    }

    /// Returns the calls that have not ended, in the order in which they were begun.
    fn all(&self) -> Vec<Arc<Call>> {
        let mut calls: Vec<_> = lock(&self.table).open.values().map(|open| Arc::clone(&open.call)).collect();
        calls.sort_unstable_by_key(|call| (call.began, call.id.call));
        calls
    }

    /// Ends all calls, and lets none begin.
    pub(super) fn close(&self) {
        self.budget.close();
        lock(&self.table).is_closed = true;
        for call in self.all() {
            self.fail(&call, Failure::Closed);
        }
    }
}

/// Names the caller in an error of the budget, which names a producer.
fn of_caller(error: Error) -> Error {
    match error {
        Error::Closed { .. } => Error::Closed { what: "caller" },
        other => other,
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;
    use crate::kafka::TopicPartition;

    const ME: u64 = 7;

    fn calls(key: Option<&[u8]>) -> Calls {
        Calls::new(10, 1_000, 100, key.map(|secret| SigningKey::new(secret, "calls")))
    }

    fn begun(calls: &Calls, number: u64, wanted: Wanted, timeout: Duration) -> Arc<Call> {
        assert!(calls.try_acquire(1).expect("open"));
        let id = CallId { caller: ME, call: number };
        let call = Call::new(id, wanted, timeout, TopicPartition::new("calls", 0), 1);
        calls.add(&call).expect("open");
        call
    }

    fn id(number: u64) -> [u8; 16] {
        CallId { caller: ME, call: number }.to_bytes()
    }

    fn reply<'a>(number: u64, kind: &'a str, more: &[(&'a str, &'a str)], size: usize) -> Fetched<'a> {
        let mut headers =
            vec![(protocol::ID.into(), id(number).to_vec().into()), (protocol::KIND.into(), kind.as_bytes().into())];
        headers.extend(more.iter().map(|(name, value)| ((*name).into(), value.as_bytes().into())));
        Fetched { value: vec![b'1'; size].into(), headers }
    }

    #[test]
    fn stray_replies_are_counted_by_kind() {
        let calls = calls(None);
        let (answered, late) =
            (begun(&calls, 1, Wanted::One, LOOKUP_AFTER), begun(&calls, 2, Wanted::One, LOOKUP_AFTER));
        calls.deliver(ME, &reply(1, "reply", &[], 1));
        assert!(answered.has_ended());
        assert!(calls.fail(&late, Failure::DeadlineExceeded));
        for number in [1, 2, 3] {
            calls.deliver(ME, &reply(number, "reply", &[], 1));
        }
        calls.deliver(ME + 1, &reply(1, "reply", &[], 1));
        calls.deliver(ME, &Fetched::default());
        let found = &calls.counters;
        let counts =
            [&found.replies, &found.duplicate, &found.late, &found.unknown, &found.foreign, &found.undecodable];
        assert_eq!(counts.map(Counter::get), [1; 6]);
        assert_eq!(calls.count(), 0);
    }

    #[test]
    fn a_reply_that_is_too_large_ends_its_call_and_an_unreadable_one_does_not() {
        let calls = calls(None);
        let call = begun(&calls, 1, Wanted::One, LOOKUP_AFTER);
        calls.deliver(ME, &reply(1, "nonsense", &[], 1));
        calls.deliver(ME, &reply(1, "reply", &[(protocol::SEQUENCE, "x")], 1));
        assert!(!call.is_ready());
        calls.deliver(ME, &reply(1, "reply", &[], 101));
        assert!(matches!(call.try_next(), Some(super::super::Next::Failed(Failure::TooLarge(101)))));
    }

    #[test]
    fn a_stream_comes_once_in_order_or_breaks() {
        let calls = calls(None);
        let call = begun(&calls, 1, Wanted::Stream(4), LOOKUP_AFTER);
        let item = |at: &str| calls.deliver(ME, &reply(1, "item", &[(protocol::SEQUENCE, at)], 1));
        item("0");
        item("0");
        item("1");
        assert_eq!(calls.counters.duplicate.get(), 1);
        assert_eq!(call.due_credit(), None);
        assert!(call.try_next().is_some() && call.try_next().is_some());
        assert_eq!(call.due_credit(), Some(6), "in total: half of the window was taken");
        assert_eq!(call.due_credit(), Some(6), "until it is recorded as sent");
        call.granted(6);
        assert_eq!(call.due_credit(), None);
        item("3");
        let gap = Failure::Gap { expected: 2, came: 3 };
        assert!(matches!(call.try_next(), Some(super::super::Next::Failed(failure)) if failure == gap));
    }

    #[test]
    fn a_forged_reply_changes_nothing() {
        let calls = calls(Some(b"secret"));
        let call = begun(&calls, 1, Wanted::One, LOOKUP_AFTER);
        calls.deliver(ME, &reply(1, "reply", &[], 1));
        calls.deliver(ME, &reply(1, "reply", &[(protocol::SIGNATURE, "guess")], 1));
        assert_eq!((calls.counters.forged.get(), call.is_ready()), (2, false));
        let mut signed = reply(1, "reply", &[], 1);
        let sign = |topic| SigningKey::new(b"secret", topic).sign_reply(&id(1), "reply", None, None, b"1");
        signed.headers.push((protocol::SIGNATURE.into(), sign("another service's calls").into()));
        calls.deliver(ME, &signed);
        assert_eq!((calls.counters.forged.get(), call.is_ready()), (3, false));
        signed.headers.pop();
        let signature = sign("calls");
        signed.headers.push((protocol::SIGNATURE.into(), signature.into()));
        calls.deliver(ME, &signed);
        assert!(call.is_ready());
    }

    #[test]
    fn a_deadline_ends_its_call_and_waiting_calls_need_a_lookup() {
        let calls = calls(None);
        let short = begun(&calls, 1, Wanted::One, Duration::from_millis(100));
        let long = begun(&calls, 2, Wanted::One, Duration::from_mins(1));
        let gathering = begun(&calls, 3, Wanted::Several(2), Duration::from_mins(1));
        let due = calls.run_due(short.began);
        assert!(!due.needs_lookup && due.next.is_some());
        let due = calls.run_due(short.began + Duration::from_millis(60));
        assert!(due.needs_lookup, "half of the time of the first has passed");
        let due = calls.run_due(short.began + Duration::from_millis(150));
        assert!(short.has_ended() && !long.has_ended() && !due.needs_lookup);
        assert!(calls.run_due(long.began + Duration::from_millis(300)).needs_lookup);
        calls.fail_unanswered(Instant::now() + LOOKUP_AFTER, &Failure::NobodyThere(String::new()));
        assert!(long.has_ended() && !gathering.has_ended(), "a call to several responders waits for those that come");
        assert_eq!(calls.counters.expired.get(), 1);
    }
}
