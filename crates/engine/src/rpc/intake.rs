//! What a responder does about a record that comes: is it a call, who makes it, is there time, has it been executed before, and may it
//! run now, or wait in the queue.
//!
//! A call goes: `read` (what the record says) → `check` (may it be executed at all) → `enter` (now, later, or is its result known) →
//! the one that executes it → `leave` (which is next), and `end` when its answer is final. Calls are known here by what stands for them, `T`, which is cheap to clone.
//! Nothing blocks: one lock, held for moves only.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use super::arrival::{Arrival, Received, Unwanted};
use super::protocol::{self, RequestHead, Times};
use super::remembered::{Limits, Remembered};
use super::results::{Answer, Bounds, Known, Results};
use super::rules::{IntakeOptions, MethodRules};
use super::signature::SigningKey;
use super::turnstile::Turnstile;

/// Bounds of what is remembered of signed requests, and of calls that were cancelled before they came; each.
const REMEMBERED: Limits = Limits { count_max: 100_000, bytes_max: 32 * 1024 * 1024 };

/// Why a call is not executed; its caller is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Its caller waits no more.
    Expired,
    /// Its caller has cancelled it.
    Cancelled,
    /// There is no such method.
    Unknown,
    /// This caller may not call it.
    NotAllowed,
    /// Its deadline is too far away.
    TooLong,
    /// It has spent too much of its time in queues.
    Impatient,
    /// The line is as long as may be.
    Full,
}

/// What becomes of a call.
#[derive(Debug)]
pub enum Entered {
    /// It is to be executed now.
    Now,
    /// Later: it waits in the queue, or for the result of the same call.
    Later,
    /// It was executed before.
    Known(Arc<Answer>),
    /// It is not to be.
    Refused(Refusal),
}

/// A call, as the tables here know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    name: Box<[u8]>,
    method: usize,
    size_bytes: usize,
    /// Of a call that must not be executed twice.
    result_key: Option<Arc<[u8]>>,
}

impl Ticket {
    /// Whether it must not be executed twice.
    pub const fn is_once(&self) -> bool {
        self.result_key.is_some()
    }
}

/// Of one responder. Any thread.
#[derive(Debug)]
pub struct Intake<T> {
    options: Arc<IntakeOptions>,
    methods: Vec<MethodRules>,
    by_name: HashMap<String, usize>,
    reply_topics: RwLock<HashMap<String, i32>>,
    state: Mutex<State<T>>,
}

#[derive(Debug)]
struct State<T> {
    /// Calls that wait or run, by their callers and the ids that these gave them.
    under_way: HashMap<Box<[u8]>, T>,
    for_threads: Turnstile<(usize, T)>,
    for_tasks: Turnstile<(usize, T)>,
    /// Bytes of the calls that wait in the queue.
    waiting_bytes: usize,
    results: Results<T>,
    /// Where signed requests stand in the log.
    places: Remembered<(i32, i64)>,
    /// Calls that were cancelled before they came.
    cancelled: Remembered<()>,
}

impl<T: Clone + PartialEq> State<T> {
    const fn turnstile(&mut self, is_async: bool) -> &mut Turnstile<(usize, T)> {
        if is_async { &mut self.for_tasks } else { &mut self.for_threads }
    }

    /// How many calls wait in the queue.
    const fn in_line(&self) -> usize {
        self.for_threads.waiting() + self.for_tasks.waiting()
    }

    /// Whether one more call may wait in the queue, or wait for the result of another call.
    fn has_room(&self, size_bytes: usize, options: &IntakeOptions) -> bool {
        let (waiting, waiting_bytes) = self.results.waiting();
        self.in_line() + waiting < options.waiting_max
            && self.waiting_bytes + waiting_bytes + size_bytes <= options.waiting_bytes_max
    }
}

impl<T: Clone + PartialEq> Intake<T> {
    /// Of a service with these methods, which are numbered in this order.
    pub fn new(options: IntakeOptions, methods: Vec<MethodRules>) -> Self {
        let by_name = methods.iter().enumerate().map(|(number, method)| (method.name.clone(), number)).collect();
        let limits = || methods.iter().map(|method| method.concurrency);
        let bounds =
            Bounds { count_max: options.results_max, bytes_max: options.results_bytes_max, ttl: options.results_ttl };
        let state = State {
            under_way: HashMap::new(),
            for_threads: Turnstile::new(options.threads, limits()),
            for_tasks: Turnstile::new(options.tasks, limits()),
            waiting_bytes: 0,
            results: Results::new(bounds),
            places: Remembered::new(REMEMBERED),
            cancelled: Remembered::new(REMEMBERED),
        };
        let reply_topics = RwLock::new(options.reply_topics.clone());
        Self { options: Arc::new(options), methods, by_name, reply_topics, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How the service answers.
    pub const fn options(&self) -> &Arc<IntakeOptions> {
        &self.options
    }

    /// Replaces the topics that replies may go to, each with the number of its partitions.
    pub fn set_reply_topics(&self, partitions: impl IntoIterator<Item = (String, i32)>) {
        *self.reply_topics.write().unwrap_or_else(PoisonError::into_inner) = partitions.into_iter().collect();
    }

    /// What a record says, at a time in milliseconds since 1970.
    ///
    /// # Errors
    /// It is not answered.
    pub fn read<'a>(&self, record: &Received<'a>, now_ms: f64) -> Result<Arrival<'a>, Unwanted> {
        if record.size_bytes() > self.options.bytes_max {
            return Err(Unwanted::Huge);
        }
        let head = RequestHead::read(record.headers).map_err(|_| Unwanted::Undecodable)?;
        let IntakeOptions { clock_skew_s, timeout_max_s, .. } = *self.options;
        let times = head.times(record.sent_ms, now_ms, clock_skew_s, timeout_max_s);
        if let Some(key) = &self.options.key {
            self.check_genuine(key, &head, record, &times)?;
        }
        match head.kind {
            protocol::CANCEL => Ok(Arrival::Cancel(head, times)),
            protocol::MORE => Ok(Arrival::More(head)),
            _ => self.check_address(&head).map(|()| Arrival::Call(head, times)),
        }
    }

    /// A call whose reply can't be sent is not executed.
    fn check_address(&self, head: &RequestHead<'_>) -> Result<(), Unwanted> {
        let Some((topic, partition)) = head.reply_to else { return Ok(()) };
        let topics = self.reply_topics.read().unwrap_or_else(PoisonError::into_inner);
        match topics.get(topic) {
            None => Err(Unwanted::ReplyTopic),
            Some(partitions) if !(0..*partitions).contains(&partition) => Err(Unwanted::ReplyPartition),
            Some(_) => Ok(()),
        }
    }

    fn check_genuine(
        &self,
        key: &SigningKey,
        head: &RequestHead<'_>,
        record: &Received<'_>,
        times: &Times,
    ) -> Result<(), Unwanted> {
        if !key.is_request_signed(record.key, record.headers, record.value.unwrap_or_default()) {
            return Err(Unwanted::Forged);
        }
        // A copy is known by its id, and for as long as its deadline has not passed.
        if head.id.is_empty() || head.deadline_ms.is_none() {
            return Err(Unwanted::Undecodable);
        }
        if head.kind == protocol::MORE {
            return Ok(());
        }
        // What comes again from its own place was not answered; in another place, somebody has copied it.
        let name = [head.id, b" ", head.kind.as_bytes()].concat();
        let now = Instant::now();
        let first = self.state().places.first(&name, record.place, now, self.end_of(times, now));
        if first == record.place { Ok(()) } else { Err(Unwanted::Replayed) }
    }

    /// When a request has no effect any more.
    fn end_of(&self, times: &Times, now: Instant) -> Instant {
        let left_s = times.left_s.clamp(0.0, self.options.timeout_max_s);
        Duration::try_from_secs_f64(left_s).ok().and_then(|left| now.checked_add(left)).unwrap_or(now)
    }

    /// The call that this cancels, if it waits or runs: one of the same caller. One that has not come yet is not executed when it does.
    pub fn cancel(&self, head: &RequestHead<'_>, times: &Times) -> Option<T> {
        let (name, now) = (name_of(head), Instant::now());
        let mut state = self.state();
        let found = state.under_way.get(&name).cloned();
        if found.is_none() {
            state.cancelled.first(&name, (), now, self.end_of(times, now));
        }
        found
    }

    /// What was said of this method.
    pub fn method(&self, number: usize) -> &MethodRules {
        &self.methods[number]
    }

    /// The call that a record of its caller's is about, if it waits or runs.
    pub fn find(&self, head: &RequestHead<'_>) -> Option<T> {
        self.state().under_way.get(&name_of(head)).cloned()
    }

    /// The method that is called, by its number; or why the call is not to be executed.
    pub fn check(&self, head: &RequestHead<'_>, times: &Times) -> (Option<usize>, Option<Refusal>) {
        if times.left_s <= 0.0 {
            return (None, Some(Refusal::Expired));
        }
        if self.state().cancelled.forget(&name_of(head), Instant::now()) {
            return (None, Some(Refusal::Cancelled));
        }
        let Some(number) = self.by_name.get(head.method).copied() else { return (None, Some(Refusal::Unknown)) };
        let callers = self.methods[number].callers.as_ref();
        let refusal = if callers.is_some_and(|callers| !callers.contains(head.caller)) {
            Some(Refusal::NotAllowed)
        } else if times.left_s > self.options.timeout_max_s {
            Some(Refusal::TooLong)
        } else {
            self.options.is_impatient(times.budget_s, times.left_s).then_some(Refusal::Impatient)
        };
        (Some(number), refusal)
    }

    /// What a call of this method will be known by.
    pub fn ticket(&self, head: &RequestHead<'_>, method: usize, size_bytes: usize) -> Ticket {
        let is_once = !self.methods[method].is_stream && self.options.results_max > 0;
        let result_key = head.idempotency_key.filter(|_| is_once);
        let result_key = result_key.map(|key| {
            let (caller, method) = (with_length(head.caller), with_length(head.method));
            [&caller[..], &method, key].concat().into()
        });
        Ticket { name: name_of(head), method, size_bytes, result_key }
    }

    /// What becomes of a call. One that is entered is to be `end`ed, unless it waits for another's result, or has it.
    pub fn enter(&self, ticket: &Ticket, call: &T) -> Entered {
        let mut state = self.state();
        if let Some(key) = &ticket.result_key {
            let room = state.has_room(ticket.size_bytes, &self.options).then_some(ticket.size_bytes);
            match state.results.begin(key, Instant::now(), call, room) {
                Some(Known::New) => (),
                Some(Known::UnderWay) => return Entered::Later,
                Some(Known::Done(answer)) => return Entered::Known(answer),
                None => return Entered::Refused(Refusal::Full),
            }
        }
        let displaced = state.under_way.insert(ticket.name.clone(), call.clone());
        let entered = self.stand(&mut state, ticket, call);
        drop(state);
        drop(displaced); // Not under the lock: who knows what goes with it.
        entered
    }

    fn stand(&self, state: &mut State<T>, ticket: &Ticket, call: &T) -> Entered {
        if state.cancelled.forget(&ticket.name, Instant::now()) {
            return Entered::Refused(Refusal::Cancelled); // Since it was looked at.
        }
        let is_async = self.methods[ticket.method].is_async;
        if state.turnstile(is_async).enter(ticket.method) {
            return Entered::Now;
        }
        if !state.has_room(ticket.size_bytes, &self.options) {
            return Entered::Refused(Refusal::Full);
        }
        state.waiting_bytes += ticket.size_bytes;
        state.turnstile(is_async).wait(ticket.method, (ticket.size_bytes, call.clone()));
        Entered::Later
    }

    /// What a call was answered with is final (`None`: an error, or nothing); who waits for the same answer. Again, nobody does.
    pub fn end(&self, ticket: &Ticket, call: &T, answer: Option<Answer>) -> Vec<T> {
        let mut state = self.state();
        // Of two calls with one name, the other may be under way still.
        if state.under_way.get(&ticket.name).is_some_and(|found| found == call) {
            state.under_way.remove(&ticket.name);
        }
        let key = ticket.result_key.as_ref();
        key.map_or_else(Vec::new, |key| state.results.finish(key, Instant::now(), call, answer))
    }

    /// The execution of a call has ended; what is to be executed in its place, if anything is.
    pub fn leave(&self, ticket: &Ticket) -> Option<T> {
        let mut state = self.state();
        let is_async = self.methods[ticket.method].is_async;
        let (size_bytes, call) = state.turnstile(is_async).leave(ticket.method)?;
        state.waiting_bytes -= size_bytes;
        Some(call)
    }

    /// Bytes of the results that are kept.
    #[cfg(all(test, not(feature = "model")))]
    pub(super) fn results_bytes(&self) -> usize {
        self.state().results.bytes()
    }

    /// How many calls run, and how many wait in the queue.
    pub fn counts(&self) -> (usize, usize) {
        let state = self.state();
        (state.for_threads.running() + state.for_tasks.running(), state.in_line())
    }
}

/// What a call is known by: nobody else's cancellation or credit reaches it.
fn name_of(head: &RequestHead<'_>) -> Box<[u8]> {
    [&with_length(head.caller)[..], head.id].concat().into()
}

/// A name with its length before it, so that two of them in a row give other bytes than any other two.
fn with_length(name: &str) -> Vec<u8> {
    [&[u8::try_from(name.len()).unwrap_or(u8::MAX)], name.as_bytes()].concat()
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::rpc::ReplyKind;

    fn options() -> IntakeOptions {
        IntakeOptions {
            bytes_max: 1_000,
            clock_skew_s: 0.0,
            patience: 0.5,
            timeout_max_s: 100.0,
            reply_topics: HashMap::from([("replies".to_owned(), 2)]),
            key: None,
            threads: 1,
            tasks: 1,
            waiting_max: 2,
            waiting_bytes_max: 25,
            results_max: 10,
            results_bytes_max: 1_000,
            results_ttl: Duration::from_secs(10),
        }
    }

    fn intake() -> Intake<&'static str> {
        let method = |name: &str, callers: Option<&str>| MethodRules {
            name: name.into(),
            is_async: false,
            is_stream: false,
            concurrency: None,
            callers: callers.map(|caller| HashSet::from([caller.to_owned()])),
        };
        Intake::new(options(), vec![method("quote", None), method("close", Some("boss"))])
    }

    fn head(id: &'static str) -> RequestHead<'static> {
        RequestHead { kind: protocol::CALL, id: id.as_bytes(), method: "quote", caller: "me", ..RequestHead::default() }
    }

    const TIMES: Times = Times { budget_s: 10.0, left_s: 9.0, queued_s: 1.0 };

    #[test]
    fn only_what_may_be_carried_out_is() {
        let intake = intake();
        let check = |head: RequestHead<'_>, left_s| intake.check(&head, &Times { left_s, ..TIMES });
        assert_eq!(check(head("1"), 9.0), (Some(0), None));
        assert_eq!(check(head("1"), 0.0), (None, Some(Refusal::Expired)));
        assert_eq!(check(head("1"), 4.0), (Some(0), Some(Refusal::Impatient)));
        assert_eq!(check(head("1"), 101.0), (Some(0), Some(Refusal::TooLong)));
        assert_eq!(check(RequestHead { method: "nothing", ..head("1") }, 9.0), (None, Some(Refusal::Unknown)));
        assert_eq!(check(RequestHead { method: "close", ..head("1") }, 9.0), (Some(1), Some(Refusal::NotAllowed)));
        assert_eq!(check(RequestHead { method: "close", caller: "boss", ..head("1") }, 9.0), (Some(1), None));
    }

    #[test]
    fn a_call_that_is_cancelled_is_found_or_not_carried_out() {
        let intake = intake();
        let ticket = intake.ticket(&head("1"), 0, 10);
        assert!(matches!(intake.enter(&ticket, &"first"), Entered::Now));
        assert_eq!(intake.cancel(&head("1"), &TIMES), Some("first"));
        assert_eq!(intake.cancel(&head("2"), &TIMES), None);
        let cancelled = (None, Some(Refusal::Cancelled));
        assert_eq!(intake.check(&head("2"), &TIMES), cancelled, "it comes after its cancellation");
        assert_eq!(intake.check(&head("2"), &TIMES), (Some(0), None), "which holds for one call");
        intake.end(&ticket, &"first", None);
        assert_eq!(intake.find(&head("1")), None);
    }

    #[test]
    fn another_caller_cancels_nothing() {
        let intake = intake();
        let other = |id| RequestHead { caller: "other", ..head(id) };
        intake.enter(&intake.ticket(&head("1"), 0, 10), &"first");
        assert_eq!((intake.cancel(&other("1"), &TIMES), intake.find(&other("1"))), (None, None));
        intake.cancel(&other("2"), &TIMES);
        assert_eq!(intake.check(&head("2"), &TIMES), (Some(0), None));
    }

    #[test]
    fn cancellations_of_calls_that_never_come_are_bounded() {
        let intake = intake();
        let id = [b'x'; protocol::ID_BYTES_MAX - 8];
        for number in 0..200_000u64 {
            let id = [&number.to_be_bytes()[..], &id].concat();
            intake.cancel(&RequestHead { id: &id, ..head("") }, &TIMES);
        }
        let held = intake.state().cancelled.bytes();
        assert!(held <= REMEMBERED.bytes_max, "{held} bytes");
        intake.cancel(&head("1"), &Times { left_s: -1.0, ..TIMES });
        assert_eq!(intake.check(&head("1"), &TIMES), (Some(0), None), "an expired one is not remembered");
    }

    #[test]
    fn the_line_is_bounded_in_calls_and_bytes() {
        let intake = intake();
        let enter = |id: &'static str, bytes| intake.enter(&intake.ticket(&head(id), 0, bytes), &id);
        assert!(matches!(enter("1", 10), Entered::Now));
        assert!(matches!(enter("2", 10), Entered::Later));
        assert!(matches!(enter("3", 16), Entered::Refused(Refusal::Full)), "so many bytes have no room");
        assert!(matches!(enter("4", 15), Entered::Later));
        assert!(matches!(enter("5", 0), Entered::Refused(Refusal::Full)), "nor have so many calls");
        assert_eq!(intake.counts(), (1, 2));
        let any = intake.ticket(&head("1"), 0, 10);
        assert_eq!([intake.leave(&any), intake.leave(&any), intake.leave(&any)], [Some("2"), Some("4"), None]);
        assert_eq!(intake.counts(), (0, 0));
    }

    #[test]
    fn one_idempotency_key_is_carried_out_once() {
        let intake = intake();
        let ticket = |id| intake.ticket(&RequestHead { idempotency_key: Some(b"key"), ..head(id) }, 0, 10);
        assert!(matches!(intake.enter(&ticket("1"), &"first"), Entered::Now));
        assert!(matches!(intake.enter(&ticket("2"), &"second"), Entered::Later));
        let answer = || Answer { kind: ReplyKind::Result, body: b"1".to_vec() };
        assert_eq!(intake.end(&ticket("1"), &"first", Some(answer())), ["second"]);
        let Entered::Known(known) = intake.enter(&ticket("3"), &"third") else { panic!("it is known") };
        assert_eq!(*known, answer());
        let other = RequestHead { caller: "other", idempotency_key: Some(b"key"), ..head("4") };
        assert!(matches!(intake.enter(&intake.ticket(&other, 0, 1), &"other"), Entered::Later), "it is another's key");
    }

    #[test]
    fn of_two_calls_with_one_name_each_ends_itself() {
        let intake = intake();
        let ticket = intake.ticket(&head("1"), 0, 10);
        assert!(matches!(intake.enter(&ticket, &"first"), Entered::Now));
        assert!(matches!(intake.enter(&ticket, &"again"), Entered::Later));
        intake.end(&ticket, &"first", None);
        assert_eq!(intake.find(&head("1")), Some("again"));
    }

    #[test]
    fn those_who_wait_for_anothers_result_are_bounded_in_bytes() {
        let intake = intake();
        let ticket = |id, bytes| intake.ticket(&RequestHead { idempotency_key: Some(b"key"), ..head(id) }, 0, bytes);
        assert!(matches!(intake.enter(&ticket("1", 10), &"first"), Entered::Now));
        assert!(matches!(intake.enter(&ticket("2", 20), &"second"), Entered::Later));
        assert!(matches!(intake.enter(&ticket("3", 6), &"third"), Entered::Refused(Refusal::Full)));
        assert!(matches!(intake.enter(&intake.ticket(&head("4"), 0, 6), &"fourth"), Entered::Refused(Refusal::Full)));
        assert_eq!(intake.end(&ticket("1", 10), &"first", None), ["second"]);
        assert!(matches!(intake.enter(&intake.ticket(&head("4"), 0, 25), &"fourth"), Entered::Later));
    }

    #[test]
    fn no_caller_has_anothers_idempotency_key() {
        let intake = intake();
        let key = |caller, key| {
            let head = RequestHead { caller, idempotency_key: Some(key), ..head("1") };
            intake.ticket(&head, 0, 1).result_key
        };
        assert_ne!(key("a", b"quote\0key"), key("a\0quote", b"key"));
        assert_ne!(key("a", b"\x05quotekey"), key("a\x05quote", b"key"));
    }
}
