//! Admission control: parses a request record and decides whether to run it, queue it, answer it from the
//! idempotency cache, or reject it.
//!
//! A call takes these steps: `read` (parse and verify the record), `check` (may the method be executed at all),
//! `admit` (now or later, or is the result known), then the method, `release` (the next call gets its place) and
//! `end` (its answer is final). Nothing blocks: there is one lock, held for moves only.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use super::idempotency::{Answer, Bounds, IdempotencyCache, Lookup};
use super::incoming_call::{IncomingCall, Service};
use super::limiter::ConcurrencyLimiter;
use super::options::{AdmissionOptions, MethodRules};
use super::remembered::{Limits, Remembered};
use super::request::{Arrival, InvalidRequest, RejectReason, RequestRecord};
use super::stage::Step;
use super::ticket::{Ticket, name_of};
use crate::clock;
use crate::events::EventBox;
use crate::rpc::protocol::{self, ReplyKind, RequestHead, Times};
use crate::rpc::signature::SigningKey;

/// Bounds of what is remembered of signed requests, and of calls that were cancelled before they came; each.
const REMEMBERED: Limits = Limits { count_max: 100_000, bytes_max: 32 * 1024 * 1024 };

/// A call as the tables of admission hold it: cheap to clone, and equal to its clones only.
pub trait CallRef: Clone + PartialEq {
    /// The call itself.
    fn call(&self) -> &IncomingCall;
}

/// The decision about a call.
#[derive(Debug, PartialEq, Eq)]
pub enum Admitted {
    /// It is executed now.
    Run,
    /// It waits in the queue, or for the result of a call with its idempotency key.
    Queued,
    /// A call with its idempotency key was executed before.
    Cached(Arc<Answer>),
    /// It is not executed.
    Rejected(RejectReason),
}

/// The admission control of one responder. Any thread may use it.
#[derive(Debug)]
pub struct Admission<T> {
    service: Arc<Service>,
    methods: Vec<MethodRules>,
    by_name: HashMap<String, usize>,
    reply_topics: RwLock<HashMap<String, i32>>,
    state: Mutex<State<T>>,
}

#[derive(Debug)]
struct State<T> {
    /// Calls that wait or run, by their names.
    under_way: HashMap<Box<[u8]>, T>,
    for_threads: ConcurrencyLimiter<(usize, T)>,
    for_tasks: ConcurrencyLimiter<(usize, T)>,
    /// Bytes of the calls that wait in the queue.
    queued_bytes: usize,
    results: IdempotencyCache<T>,
    /// The places of signed requests in the log.
    places: Remembered<(i32, i64)>,
    /// Calls that were cancelled before they came.
    cancelled: Remembered<()>,
}

impl<T: CallRef> State<T> {
    const fn limiter(&mut self, is_async: bool) -> &mut ConcurrencyLimiter<(usize, T)> {
        if is_async { &mut self.for_tasks } else { &mut self.for_threads }
    }

    /// Returns how many calls wait in the queue.
    const fn queued(&self) -> usize {
        self.for_threads.queued() + self.for_tasks.queued()
    }

    /// Returns whether one more call may wait, in the queue or for the result of another call.
    fn has_room(&self, size_bytes: usize, options: &AdmissionOptions) -> bool {
        let (waiting, waiting_bytes) = self.results.waiting();
        self.queued() + waiting < options.waiting_max
            && self.queued_bytes + waiting_bytes + size_bytes <= options.waiting_bytes_max
    }
}

impl<T: CallRef> Admission<T> {
    /// The admission control of a service with these methods, which are numbered in this order. `name` is the
    /// responder's in events.
    pub fn new(options: AdmissionOptions, methods: Vec<MethodRules>, name: &str, events: Arc<EventBox>) -> Self {
        let by_name = methods.iter().enumerate().map(|(number, method)| (method.name.clone(), number)).collect();
        let limits = || methods.iter().map(|method| method.concurrency);
        let bounds =
            Bounds { count_max: options.results_max, bytes_max: options.results_bytes_max, ttl: options.results_ttl };
        let state = State {
            under_way: HashMap::new(),
            for_threads: ConcurrencyLimiter::new(options.threads, limits()),
            for_tasks: ConcurrencyLimiter::new(options.tasks, limits()),
            queued_bytes: 0,
            results: IdempotencyCache::new(bounds),
            places: Remembered::new(REMEMBERED),
            cancelled: Remembered::new(REMEMBERED),
        };
        let service = Arc::new(Service { name: name.into(), options: Arc::new(options), events });
        Self { service, methods, by_name, reply_topics: RwLock::default(), state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) const fn service(&self) -> &Arc<Service> {
        &self.service
    }

    /// Replaces the topics that replies may go to (at first none), each with the number of its partitions.
    pub fn set_reply_topics(&self, partitions: impl IntoIterator<Item = (String, i32)>) {
        *self.reply_topics.write().unwrap_or_else(PoisonError::into_inner) = partitions.into_iter().collect();
    }

    /// Parses and verifies a record, at a time in milliseconds since 1970.
    ///
    /// # Errors
    /// The record gets no reply.
    pub fn read<'a>(&self, record: &RequestRecord<'a>, now_ms: f64) -> Result<Arrival<'a>, InvalidRequest> {
        let options = &self.service.options;
        if record.size_bytes() > options.bytes_max {
            return Err(InvalidRequest::TooLarge);
        }
        let head = RequestHead::read(record.headers).map_err(|_| InvalidRequest::Undecodable)?;
        let times = head.times(record.sent_ms, now_ms, options.clock_skew_s, options.timeout_max_s);
        if let Some(key) = &options.key {
            self.check_genuine(key, &head, record, &times)?;
        }
        match head.kind {
            protocol::CANCEL => Ok(Arrival::Cancel(head, times)),
            protocol::MORE => Ok(Arrival::More(head)),
            _ => self.check_address(&head).map(|()| Arrival::Call(head, times)),
        }
    }

    /// Refuses a call whose reply can't be sent.
    fn check_address(&self, head: &RequestHead<'_>) -> Result<(), InvalidRequest> {
        let Some((topic, partition)) = head.reply_to else { return Ok(()) };
        let topics = self.reply_topics.read().unwrap_or_else(PoisonError::into_inner);
        match topics.get(topic) {
            None => Err(InvalidRequest::ReplyTopic),
            Some(partitions) if !(0..*partitions).contains(&partition) => Err(InvalidRequest::ReplyPartition),
            Some(_) => Ok(()),
        }
    }

    fn check_genuine(
        &self,
        key: &SigningKey,
        head: &RequestHead<'_>,
        record: &RequestRecord<'_>,
        times: &Times,
    ) -> Result<(), InvalidRequest> {
        if !key.is_request_signed(record.key, record.headers, record.value.unwrap_or_default()) {
            return Err(InvalidRequest::Forged);
        }
        // A copy is recognized by its id, until its deadline.
        if head.id.is_empty() || head.deadline_ms.is_none() {
            return Err(InvalidRequest::Undecodable);
        }
        // A stream has several of these under one id. Each carries a total, so a copy has no effect.
        if head.kind == protocol::MORE {
            return Ok(());
        }
        // A record that comes again from its own place was not answered. At another place, it is a copy.
        let name = [head.id, b" ", head.kind.as_bytes()].concat();
        let now = clock::now();
        let first = self.state().places.first(&name, record.place, now, self.end_of(times, now));
        if first == record.place { Ok(()) } else { Err(InvalidRequest::Replayed) }
    }

    /// Returns the moment from which a request has no effect.
    fn end_of(&self, times: &Times, now: Instant) -> Instant {
        let left_s = times.left_s.clamp(0.0, self.service.options.timeout_max_s);
        Duration::try_from_secs_f64(left_s).ok().and_then(|left| now.checked_add(left)).unwrap_or(now)
    }

    /// Cancels a call of the same caller and returns it, if it waits or runs. A call that has not come yet is
    /// rejected when it does.
    pub fn cancel(&self, head: &RequestHead<'_>, times: &Times) -> Option<T> {
        let (name, now) = (name_of(head), clock::now());
        let mut state = self.state();
        let found = state.under_way.get(&name).cloned();
        if found.is_none() {
            state.cancelled.first(&name, (), now, self.end_of(times, now));
        }
        drop(state);
        if let Some(found) = &found {
            found.call().cancel();
        }
        found
    }

    /// Grants more results to a stream of the same caller, if it waits or runs.
    pub fn grant(&self, head: &RequestHead<'_>) {
        let found = self.state().under_way.get(&name_of(head)).cloned();
        if let (Some(found), Some(total)) = (found, head.credit)
            && let Some((credit, _)) = found.call().credit()
        {
            credit.grant(total);
        }
    }

    /// Returns the settings of the method with this number.
    pub fn method(&self, number: usize) -> &MethodRules {
        &self.methods[number]
    }

    /// Returns the number of the called method, if the service has it, and why the call is rejected, if it is.
    pub fn check(&self, head: &RequestHead<'_>, times: &Times) -> (Option<usize>, Option<RejectReason>) {
        if times.left_s <= 0.0 {
            return (None, Some(RejectReason::Expired));
        }
        if self.state().cancelled.forget(&name_of(head), clock::now()) {
            return (None, Some(RejectReason::Cancelled));
        }
        let Some(number) = self.by_name.get(head.method).copied() else {
            return (None, Some(RejectReason::UnknownMethod));
        };
        let callers = self.methods[number].callers.as_ref();
        let reason = if callers.is_some_and(|callers| !callers.contains(head.caller)) {
            Some(RejectReason::NotAllowed)
        } else if times.left_s > self.service.options.timeout_max_s {
            Some(RejectReason::DeadlineTooFar)
        } else {
            let is_overloaded = self.service.options.is_overloaded(times.budget_s, times.left_s);
            is_overloaded.then_some(RejectReason::Overloaded)
        };
        (Some(number), reason)
    }

    /// Returns the names under which a call of this method is known.
    pub fn ticket(&self, head: &RequestHead<'_>, method: usize, size_bytes: usize) -> Ticket {
        let is_once = !self.methods[method].is_stream && self.service.options.results_max > 0;
        Ticket::new(head, method, size_bytes, is_once)
    }

    /// Decides about a call and takes its step. A call that runs or is queued must be `end`ed, unless it waits for
    /// another's result. A call without a ticket was rejected before and stays so.
    pub fn admit(&self, call: &T) -> Admitted {
        let Some(ticket) = call.call().ticket() else { return Admitted::Rejected(RejectReason::UnknownMethod) };
        let mut state = self.state();
        if let Some(key) = &ticket.result_key {
            let room = state.has_room(ticket.size_bytes, &self.service.options).then_some(ticket.size_bytes);
            match state.results.begin(key, clock::now(), call, room) {
                Some(Lookup::New) => (),
                Some(Lookup::InFlight) => {
                    call.call().advance(Step::Enqueue);
                    return Admitted::Queued;
                }
                Some(Lookup::Cached(answer)) => return Admitted::Cached(answer),
                None => return Admitted::Rejected(RejectReason::QueueFull),
            }
        }
        let displaced = state.under_way.insert(ticket.name.clone(), call.clone());
        let admitted = self.run_or_enqueue(&mut state, ticket, call);
        drop(state);
        drop(displaced); // After the lock is released: dropping it may run user code.
        admitted
    }

    fn run_or_enqueue(&self, state: &mut State<T>, ticket: &Ticket, call: &T) -> Admitted {
        // It may have been cancelled since `check`.
        if state.cancelled.forget(&ticket.name, clock::now()) {
            return Admitted::Rejected(RejectReason::Cancelled);
        }
        let is_async = self.methods[ticket.method].is_async;
        if state.limiter(is_async).try_acquire(ticket.method) {
            call.call().advance(Step::Run);
            return Admitted::Run;
        }
        if !state.has_room(ticket.size_bytes, &self.service.options) {
            return Admitted::Rejected(RejectReason::QueueFull);
        }
        call.call().advance(Step::Enqueue);
        state.queued_bytes += ticket.size_bytes;
        state.limiter(is_async).enqueue(ticket.method, (ticket.size_bytes, call.clone()));
        Admitted::Queued
    }

    /// Records a call's final answer, by its kind and body; no kind if it failed, or must not be cached. Returns
    /// the duplicates that were waiting for it; a second call returns none.
    pub fn end(&self, call: &T, kind: Option<ReplyKind>, body: &[u8]) -> Vec<T> {
        let Some(ticket) = call.call().ticket() else { return Vec::new() };
        let mut state = self.state();
        // Of two calls with one name, the other one may still be under way.
        if state.under_way.get(&ticket.name).is_some_and(|found| found == call) {
            state.under_way.remove(&ticket.name);
        }
        let key = ticket.result_key.as_ref();
        // Copied only for a call that may be repeated.
        let answer = || kind.map(|kind| Answer { kind, body: body.to_vec() });
        key.map_or_else(Vec::new, |key| state.results.finish(key, clock::now(), call, answer()))
    }

    /// Releases the place of a call whose execution has ended; returns the call that takes it, if one waits.
    pub fn release(&self, call: &T) -> Option<T> {
        let ticket = call.call().ticket()?;
        let mut state = self.state();
        let is_async = self.methods[ticket.method].is_async;
        let (size_bytes, next) = state.limiter(is_async).release(ticket.method)?;
        state.queued_bytes -= size_bytes;
        next.call().advance(Step::Run);
        Some(next)
    }

    /// Bytes of the results that are kept.
    #[cfg(all(test, not(feature = "model")))]
    pub(in crate::rpc) fn results_bytes(&self) -> usize {
        self.state().results.bytes()
    }

    /// Returns how many calls run, and how many wait in the queue.
    pub fn counts(&self) -> (usize, usize) {
        let state = self.state();
        (state.for_threads.running() + state.for_tasks.running(), state.queued())
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use std::collections::HashSet;

    use super::super::testing::{Named, admission_of, head, named};
    use super::*;

    const TIMES: Times = Times { budget_s: 10.0, left_s: 9.0, queued_s: 1.0 };

    fn admission() -> Admission<Named> {
        let method = |name: &str, callers: Option<&str>| MethodRules {
            name: name.into(),
            callers: callers.map(|caller| HashSet::from([caller.to_owned()])),
            ..MethodRules::default()
        };
        admission_of(vec![method("quote", None), method("close", Some("boss"))])
    }

    fn with_key(id: &'static str) -> RequestHead<'static> {
        RequestHead { idempotency_key: Some(b"key"), ..head(id) }
    }

    fn answer() -> Answer {
        Answer { kind: ReplyKind::Result, body: b"1".to_vec() }
    }

    fn names(calls: impl IntoIterator<Item = Named>) -> Vec<&'static str> {
        calls.into_iter().map(|call| call.name).collect()
    }

    #[test]
    fn only_a_call_that_may_be_executed_passes_the_check() {
        let admission = admission();
        let check = |head: RequestHead<'_>, left_s| admission.check(&head, &Times { left_s, ..TIMES });
        assert_eq!(check(head("1"), 9.0), (Some(0), None));
        assert_eq!(check(head("1"), 0.0), (None, Some(RejectReason::Expired)));
        assert_eq!(check(head("1"), 4.0), (Some(0), Some(RejectReason::Overloaded)));
        assert_eq!(check(head("1"), 101.0), (Some(0), Some(RejectReason::DeadlineTooFar)));
        let (unknown, denied) = (Some(RejectReason::UnknownMethod), Some(RejectReason::NotAllowed));
        assert_eq!(check(RequestHead { method: "nothing", ..head("1") }, 9.0), (None, unknown));
        assert_eq!(check(RequestHead { method: "close", ..head("1") }, 9.0), (Some(1), denied));
        assert_eq!(check(RequestHead { method: "close", caller: "boss", ..head("1") }, 9.0), (Some(1), None));
    }

    #[test]
    fn a_cancelled_call_is_found_or_rejected() {
        let admission = admission();
        let first = named(&admission, "first", &head("1"), 10);
        assert_eq!(admission.admit(&first), Admitted::Run);
        assert_eq!(names(admission.cancel(&head("1"), &TIMES)), ["first"]);
        assert!(first.call().is_cancelled());
        assert_eq!(names(admission.cancel(&head("2"), &TIMES)), [""; 0]);
        let cancelled = (None, Some(RejectReason::Cancelled));
        assert_eq!(admission.check(&head("2"), &TIMES), cancelled, "it comes after its cancellation");
        assert_eq!(admission.check(&head("2"), &TIMES), (Some(0), None), "which holds for one call");
        admission.end(&first, None, b"");
        assert_eq!(names(admission.cancel(&head("1"), &TIMES)), [""; 0], "it has ended");
    }

    #[test]
    fn another_caller_cancels_nothing() {
        let admission = admission();
        let other = |id| RequestHead { caller: "other", ..head(id) };
        let first = named(&admission, "first", &head("1"), 10);
        admission.admit(&first);
        assert_eq!(names(admission.cancel(&other("1"), &TIMES)), [""; 0]);
        admission.cancel(&other("2"), &TIMES);
        assert_eq!(admission.check(&head("2"), &TIMES), (Some(0), None));
        assert!(!first.call().is_cancelled());
    }

    #[test]
    fn more_grants_a_total_to_the_same_callers_stream() {
        let rules = MethodRules { name: "quote".into(), is_stream: true, ..MethodRules::default() };
        let admission = admission_of(vec![rules]);
        let call = named(&admission, "stream", &RequestHead { credit: Some(1), ..head("1") }, 10);
        admission.admit(&call);
        let (credit, is_named) = call.call().credit().expect("a stream");
        assert!(is_named && credit.try_take() && !credit.try_take());
        let more = RequestHead { kind: protocol::MORE, credit: Some(2), ..head("1") };
        admission.grant(&RequestHead { caller: "other", ..more });
        assert!(!credit.try_take(), "another caller's");
        for _ in 0..3 {
            admission.grant(&more);
        }
        assert!(credit.try_take() && !credit.try_take(), "copies have no effect");
    }

    #[test]
    fn cancellations_of_calls_that_never_come_are_bounded() {
        let admission = admission();
        let id = [b'x'; protocol::ID_BYTES_MAX - 8];
        for number in 0..200_000u64 {
            let id = [&number.to_be_bytes()[..], &id].concat();
            admission.cancel(&RequestHead { id: &id, ..head("") }, &TIMES);
        }
        let held = admission.state().cancelled.bytes();
        assert!(held <= REMEMBERED.bytes_max, "{held} bytes");
        admission.cancel(&head("1"), &Times { left_s: -1.0, ..TIMES });
        assert_eq!(admission.check(&head("1"), &TIMES), (Some(0), None), "an expired one is not remembered");
    }

    #[test]
    fn the_queue_is_bounded_in_calls_and_bytes() {
        let admission = admission();
        let admit = |id: &'static str, bytes| admission.admit(&named(&admission, id, &head(id), bytes));
        assert_eq!(admit("1", 10), Admitted::Run);
        assert_eq!(admit("2", 10), Admitted::Queued);
        assert_eq!(admit("3", 16), Admitted::Rejected(RejectReason::QueueFull), "no room for 16 bytes");
        assert_eq!(admit("4", 15), Admitted::Queued);
        assert_eq!(admit("5", 0), Admitted::Rejected(RejectReason::QueueFull), "no room for one more call");
        assert_eq!(admission.counts(), (1, 2));
        let any = named(&admission, "any", &head("1"), 10);
        assert_eq!(names([&any, &any, &any].into_iter().filter_map(|any| admission.release(any))), ["2", "4"]);
        assert_eq!(admission.counts(), (0, 0));
    }

    #[test]
    fn admission_takes_the_steps_of_a_call() {
        use super::super::stage::Stage;
        let admission = admission();
        let (first, second) = (named(&admission, "first", &head("1"), 1), named(&admission, "second", &head("2"), 1));
        assert_eq!(first.call().stage(), Stage::Received);
        admission.admit(&first);
        admission.admit(&second);
        assert_eq!((first.call().stage(), second.call().stage()), (Stage::Running, Stage::Queued));
        assert_eq!(names(admission.release(&first)), ["second"]);
        assert_eq!(second.call().stage(), Stage::Running);
    }

    #[test]
    fn one_idempotency_key_is_executed_once() {
        let admission = admission();
        let call = |name, id| named(&admission, name, &with_key(id), 10);
        let first = call("first", "1");
        assert_eq!(admission.admit(&first), Admitted::Run);
        assert_eq!(admission.admit(&call("second", "2")), Admitted::Queued);
        assert_eq!(names(admission.end(&first, Some(ReplyKind::Result), b"1")), ["second"]);
        assert_eq!(admission.admit(&call("third", "3")), Admitted::Cached(Arc::new(answer())));
        let other = RequestHead { caller: "other", ..with_key("4") };
        assert_eq!(admission.admit(&named(&admission, "other", &other, 1)), Admitted::Queued, "another caller's key");
    }

    #[test]
    fn of_two_calls_with_one_name_each_ends_itself() {
        let admission = admission();
        let (first, again) = (named(&admission, "first", &head("1"), 10), named(&admission, "again", &head("1"), 10));
        assert_eq!(admission.admit(&first), Admitted::Run);
        assert_eq!(admission.admit(&again), Admitted::Queued);
        admission.end(&first, None, b"");
        assert_eq!(names(admission.cancel(&head("1"), &TIMES)), ["again"]);
    }

    #[test]
    fn duplicates_that_wait_are_bounded_in_bytes() {
        let admission = admission();
        let call = |name, bytes| named(&admission, name, &with_key(name), bytes);
        let other = |bytes| named(&admission, "fourth", &head("4"), bytes);
        let first = call("1", 10);
        assert_eq!(admission.admit(&first), Admitted::Run);
        assert_eq!(admission.admit(&call("2", 20)), Admitted::Queued);
        assert_eq!(admission.admit(&call("3", 6)), Admitted::Rejected(RejectReason::QueueFull));
        assert_eq!(admission.admit(&other(6)), Admitted::Rejected(RejectReason::QueueFull));
        assert_eq!(names(admission.end(&first, None, b"")), ["2"]);
        assert_eq!(admission.admit(&other(25)), Admitted::Queued);
    }
}
