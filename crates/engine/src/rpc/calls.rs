//! The calls that have not ended, by their names; and when each of them ends at the latest.
//!
//! Whoever ends a call (its reply, its deadline, its caller, a broken way) takes it out of the table: `Call` lets only the first of
//! them do so. One lock for the table, never held while a call's own is taken or anybody is woken.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::call::{Call, Failure, Taken, Wanted};
use super::protocol::{self, CallId};
use super::signature::SigningKey;
use crate::clock::Deadline;
use crate::counters::Counter;
use crate::kafka::Fetched;
use crate::produce::Room;
use crate::sync::{Mutex, lock};
use crate::wake::Waker;
use crate::{Error, Result};

/// So many ended calls are remembered, to tell a late reply from one that was never asked for.
const REMEMBERED: usize = 10_000;

/// After so long without an answer, or half of the caller's patience, it is asked whether anybody is there; then at doubling distances.
const ASK_AFTER: Duration = Duration::from_millis(250);
const ASK_DISTANCE_MAX: Duration = Duration::from_secs(5);

/// What a caller counts.
#[derive(Debug, Default)]
pub struct CallCounters {
    /// Calls begun.
    pub begun: Counter,
    /// Replies taken.
    pub replies: Counter,
    /// Replies to calls that had ended unanswered.
    pub late: Counter,
    /// Replies that had come before.
    pub duplicate: Counter,
    /// Replies to calls of this caller's that it does not know.
    pub unknown: Counter,
    /// Replies to other callers, which read the same partition.
    pub foreign: Counter,
    /// Replies whose signature is missing or wrong.
    pub forged: Counter,
    /// Replies larger than is allowed.
    pub huge: Counter,
    /// Records that are no replies.
    pub undecodable: Counter,
    /// Calls whose deadline passed.
    pub expired: Counter,
}

/// The calls that have not ended.
#[derive(Debug)]
pub(super) struct Calls {
    table: Mutex<Table>,
    room: Room,
    key: Option<SigningKey>,
    reply_bytes_max: usize,
    pub(super) counters: CallCounters,
}

#[derive(Debug, Default)]
struct Table {
    open: HashMap<u64, Open>,
    /// By the moment at which something is to be done about a call: it ends, or somebody asks.
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
    ask_distance: Duration,
}

/// What the time has brought.
pub(super) struct Due {
    /// Calls for whose sake it is to be asked whether anybody is there.
    pub(super) is_to_ask: bool,
    /// When there is something to do again.
    pub(super) next: Option<Instant>,
}

impl Calls {
    pub(super) fn new(calls_max: usize, bytes_max: usize, reply_bytes_max: usize, key: Option<SigningKey>) -> Self {
        let room = Room::new(calls_max, bytes_max);
        Self { table: Mutex::default(), room, key, reply_bytes_max, counters: CallCounters::default() }
    }

    /// Waits for room for one call more. Blocks the calling thread.
    pub(super) fn enter(&self, bytes: usize, deadline: &Deadline) -> Result<()> {
        self.room.enter(bytes, deadline).map_err(|error| of_caller(error.into()))
    }

    /// As `enter`; whether there was room. Does not block.
    pub(super) fn try_enter(&self, bytes: usize) -> Result<bool> {
        self.room.try_enter(bytes).map_err(|error| of_caller(error.into()))
    }

    /// Gives back the room of a call that was not begun.
    pub(super) fn leave(&self, bytes: usize) {
        self.room.leave(1, bytes);
    }

    /// Adds a call, which has room; the moment at which something is to be done about it.
    pub(super) fn add(&self, call: &Arc<Call>) -> Result<Instant> {
        let patience = call.until.saturating_duration_since(call.began);
        let ask_distance = ASK_AFTER.min(patience / 2);
        let moment = (call.began + ask_distance).min(call.until);
        let mut table = lock(&self.table);
        if table.is_closed {
            return Err(Error::Closed { what: "caller" });
        }
        table.open.insert(call.id.call, Open { call: Arc::clone(call), moment, ask_distance });
        table.moments.insert((moment, call.id.call));
        drop(table);
        self.counters.begun.increment();
        Ok(moment)
    }

    /// How many calls have not ended.
    pub(super) fn count(&self) -> usize {
        lock(&self.table).open.len()
    }

    /// Ends a call without a reply; `false` when it had ended before.
    pub(super) fn fail(&self, call: &Call, failure: Failure) -> bool {
        let is_expired = failure == Failure::DeadlineExceeded;
        let Some(wakers) = call.fail(failure) else { return false };
        // Whoever is woken finds it counted, and gone.
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
        self.room.leave(1, call.size_bytes);
    }

    /// A record has come to the caller's place.
    pub(super) fn take_in(&self, caller: u64, fetched: &Fetched<'_>) {
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
            self.counters.huge.increment();
            self.fail(&call, Failure::TooLarge(fetched.value.len()));
            return;
        }
        let Some(reply) = protocol::read_reply(fetched) else {
            self.counters.undecodable.increment();
            return;
        };
        let (taken, wakers) = call.take_in(reply);
        match taken {
            Taken::Ignored => {
                self.counters.duplicate.increment();
                return;
            }
            Taken::Ended => self.retire(&call, true),
            Taken::GoesOn => (),
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

    /// Whether the signature is right, where one is asked for.
    fn is_genuine(&self, fetched: &Fetched<'_>) -> bool {
        self.key.as_ref().is_none_or(|key| key.is_reply_signed(fetched))
    }

    /// Does what is due by now.
    pub(super) fn look(&self, now: Instant) -> Due {
        let mut expired = Vec::new();
        let mut is_to_ask = false;
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
            is_to_ask |= !open.call.was_answered() && !matches!(open.call.wanted, Wanted::Several(_));
            open.ask_distance = (open.ask_distance * 2).min(ASK_DISTANCE_MAX);
            open.moment = (now + open.ask_distance).min(open.call.until);
            let again = (open.moment, number);
            table.moments.insert(again);
        }
        let next = table.moments.first().map(|(moment, _)| *moment);
        drop(table);
        for call in expired {
            self.fail(&call, Failure::DeadlineExceeded);
        }
        Due { is_to_ask, next }
    }

    /// Ends calls that have no answer and were begun before a moment.
    pub(super) fn fail_unanswered(&self, began_before: Instant, failure: &Failure) {
        let is_nobody_there = matches!(failure, Failure::NobodyThere(_));
        for call in self.all() {
            let is_concerned = !is_nobody_there || (!call.was_answered() && !matches!(call.wanted, Wanted::Several(_)));
            if call.began < began_before && is_concerned {
                self.fail(&call, failure.clone());
            }
        }
    }

    fn all(&self) -> Vec<Arc<Call>> {
        lock(&self.table).open.values().map(|open| Arc::clone(&open.call)).collect()
    }

    /// Ends all calls, and lets none begin.
    pub(super) fn close(&self) {
        self.room.close();
        lock(&self.table).is_closed = true;
        for call in self.all() {
            self.fail(&call, Failure::Closed);
        }
    }
}

/// The room is a producer's elsewhere.
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
        assert!(calls.try_enter(1).expect("open"));
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
    fn strays_are_told_apart() {
        let calls = calls(None);
        let (answered, late) = (begun(&calls, 1, Wanted::One, ASK_AFTER), begun(&calls, 2, Wanted::One, ASK_AFTER));
        calls.take_in(ME, &reply(1, "reply", &[], 1));
        assert!(answered.has_ended());
        assert!(calls.fail(&late, Failure::DeadlineExceeded));
        for number in [1, 2, 3] {
            calls.take_in(ME, &reply(number, "reply", &[], 1));
        }
        calls.take_in(ME + 1, &reply(1, "reply", &[], 1));
        calls.take_in(ME, &Fetched::default());
        let found = &calls.counters;
        let counts =
            [&found.replies, &found.duplicate, &found.late, &found.unknown, &found.foreign, &found.undecodable];
        assert_eq!(counts.map(Counter::get), [1; 6]);
        assert_eq!(calls.count(), 0);
    }

    #[test]
    fn a_reply_that_is_too_large_ends_its_call_and_one_that_is_none_does_not() {
        let calls = calls(None);
        let call = begun(&calls, 1, Wanted::One, ASK_AFTER);
        calls.take_in(ME, &reply(1, "nonsense", &[], 1));
        calls.take_in(ME, &reply(1, "reply", &[(protocol::SEQUENCE, "x")], 1));
        assert!(!call.is_ready());
        calls.take_in(ME, &reply(1, "reply", &[], 101));
        assert!(matches!(call.try_next(), Some(super::super::Next::Failed(Failure::TooLarge(101)))));
    }

    #[test]
    fn a_stream_comes_once_in_order_or_breaks() {
        let calls = calls(None);
        let call = begun(&calls, 1, Wanted::Stream(4), ASK_AFTER);
        let item = |at: &str| calls.take_in(ME, &reply(1, "item", &[(protocol::SEQUENCE, at)], 1));
        item("0");
        item("0");
        item("1");
        assert_eq!(calls.counters.duplicate.get(), 1);
        assert_eq!(call.credit(), None);
        assert!(call.try_next().is_some() && call.try_next().is_some());
        assert_eq!(call.credit(), Some(2), "half of the window was taken");
        assert_eq!(call.credit(), None);
        item("3");
        let gap = Failure::Gap { expected: 2, came: 3 };
        assert!(matches!(call.try_next(), Some(super::super::Next::Failed(failure)) if failure == gap));
    }

    #[test]
    fn a_forged_reply_changes_nothing() {
        let calls = calls(Some(b"secret"));
        let call = begun(&calls, 1, Wanted::One, ASK_AFTER);
        calls.take_in(ME, &reply(1, "reply", &[], 1));
        calls.take_in(ME, &reply(1, "reply", &[(protocol::SIGNATURE, "guess")], 1));
        assert_eq!((calls.counters.forged.get(), call.is_ready()), (2, false));
        let mut signed = reply(1, "reply", &[], 1);
        let sign = |topic| SigningKey::new(b"secret", topic).sign_reply(&id(1), "reply", None, None, b"1");
        signed.headers.push((protocol::SIGNATURE.into(), sign("another service's calls").into()));
        calls.take_in(ME, &signed);
        assert_eq!((calls.counters.forged.get(), call.is_ready()), (3, false));
        signed.headers.pop();
        let signature = sign("calls");
        signed.headers.push((protocol::SIGNATURE.into(), signature.into()));
        calls.take_in(ME, &signed);
        assert!(call.is_ready());
    }

    #[test]
    fn time_ends_calls_and_asks_for_those_that_wait() {
        let calls = calls(None);
        let short = begun(&calls, 1, Wanted::One, Duration::from_millis(100));
        let long = begun(&calls, 2, Wanted::One, Duration::from_mins(1));
        let gathering = begun(&calls, 3, Wanted::Several(2), Duration::from_mins(1));
        let due = calls.look(short.began);
        assert!(!due.is_to_ask && due.next.is_some());
        let due = calls.look(short.began + Duration::from_millis(60));
        assert!(due.is_to_ask, "half of the patience of the first is over");
        let due = calls.look(short.began + Duration::from_millis(150));
        assert!(short.has_ended() && !long.has_ended() && !due.is_to_ask);
        assert!(calls.look(long.began + Duration::from_millis(300)).is_to_ask);
        calls.fail_unanswered(Instant::now() + ASK_AFTER, &Failure::NobodyThere(String::new()));
        assert!(long.has_ended() && !gathering.has_ended(), "whoever asks several waits for those that come");
        assert_eq!(calls.counters.expired.get(), 1);
    }
}
