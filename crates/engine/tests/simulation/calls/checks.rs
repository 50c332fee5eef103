//! The invariants of calls, checked after each step and wherever something happens that could break one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use awoke_engine::clock;
use awoke_engine::consume::finished_beyond;
use awoke_engine::kafka::{Cluster, CommittedOffset, LogRecord, TopicPartition};
use awoke_engine::rpc::{Call, Failure, MethodRules, ReplyKind, protocol};
use awoke_engine::wake::simulation::trace;

use super::service::{CALLS, GROUP, LIST, Service};

/// A wait ends at most this much later than it has to: threads are slow, and one look-up takes a second.
const LATE: Duration = Duration::from_secs(3);
/// A reply that is in the log this long before a call's deadline has to come to it.
const FETCHED_WITHIN: Duration = Duration::from_secs(10);

/// A request of a caller, as the simulation knows it.
#[derive(Clone, Debug)]
pub struct Request {
    pub caller: String,
    pub method: usize,
    pub key: Option<Vec<u8>>,
    pub began: Instant,
    pub budget: Duration,
    pub is_cast: bool,
}

/// The end of a call for its caller.
#[derive(Clone, Debug)]
pub enum Outcome {
    Replied(ReplyKind, Vec<u8>),
    Failed(Failure),
}

/// One run of a method.
pub struct Execution {
    number: u64,
    request: u64,
}

impl Execution {
    /// Returns the body of the reply at this place.
    pub fn body(&self, place: u64) -> Vec<u8> {
        [self.number.to_le_bytes(), place.to_le_bytes()].concat()
    }
}

/// The state of an execution.
struct Executed {
    responder: u64,
    request: u64,
    is_running: bool,
    is_ok: bool,
}

/// A wait that has not ended.
struct Waiting {
    what: &'static str,
    until: Instant,
    call: Option<Arc<Call>>,
    /// Since when its call has something to take.
    ready_since: Option<Instant>,
}

/// A wait of the present task. Dropped when it has ended.
pub struct Wait {
    checks: Arc<Checks>,
    number: u64,
}

impl Drop for Wait {
    fn drop(&mut self) {
        self.checks.state().waits.remove(&self.number);
    }
}

/// The state of all calls.
pub struct Checks {
    cluster: Arc<Cluster>,
    calls: Vec<TopicPartition>,
    replies: Vec<TopicPartition>,
    methods: Vec<MethodRules>,
    threads: usize,
    tasks: usize,
    remembers_results: bool,
    is_at_most_once: bool,
    this: std::sync::Weak<Self>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    numbers: u64,
    requests: BTreeMap<u64, Request>,
    /// Calls that have not ended, by their requests.
    open: BTreeMap<u64, Arc<Call>>,
    ended: BTreeSet<u64>,
    cancelled: BTreeSet<u64>,
    /// Requests that were not delivered, as their caller is told, and since when.
    undelivered: BTreeMap<u64, Instant>,
    rejected: BTreeSet<u64>,
    executions: BTreeMap<u64, Executed>,
    /// Calls that have a place, by responder and method.
    running: BTreeMap<(u64, usize), usize>,
    waits: BTreeMap<u64, Waiting>,
    closing: BTreeSet<String>,
    is_disconnected: bool,
    /// The last moment at which the group had no member.
    memberless: Option<Instant>,
}

impl Checks {
    pub fn new(cluster: &Arc<Cluster>, service: &Service) -> Arc<Self> {
        let checks = Arc::new_cyclic(|this: &std::sync::Weak<Self>| Self {
            cluster: Arc::clone(cluster),
            calls: service.calls.clone(),
            replies: service.replies.clone(),
            methods: service.methods.clone(),
            threads: service.options.threads,
            tasks: service.options.tasks,
            remembers_results: service.options.results_max > 0,
            is_at_most_once: service.is_at_most_once,
            this: this.clone(),
            state: Mutex::default(),
        });
        let other = Arc::downgrade(&checks);
        cluster.on_commit(move |_, at, committed| {
            if let Some(checks) = other.upgrade().filter(|_| *at.topic == *CALLS) {
                checks.commit(at, committed);
            }
        });
        checks
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(state: &mut State) -> u64 {
        state.numbers += 1;
        state.numbers
    }

    /// Returns the number of a new responder.
    pub fn add_responder(&self) -> u64 {
        Self::next(&mut self.state())
    }

    /// A caller is about to make a request. Returns its number.
    pub fn add(&self, request: Request) -> u64 {
        let mut state = self.state();
        let number = Self::next(&mut state);
        trace(|| {
            let Request { caller, method, key, budget, .. } = &request;
            format!("request {number} of {caller}: method {method}, key {key:?}, {budget:?}")
        });
        state.requests.insert(number, request);
        number
    }

    /// A call was begun.
    pub fn begun(&self, number: u64, call: &Arc<Call>) {
        self.state().open.insert(number, Arc::clone(call));
    }

    /// Its caller cancels a call.
    pub fn note_cancelled(&self, number: u64) {
        self.state().cancelled.insert(number);
    }

    /// A responder does not execute a request.
    pub fn note_rejected(&self, number: u64) {
        self.state().rejected.insert(number);
    }

    /// A caller of this name begins to close.
    pub fn note_closing(&self, caller: &str) {
        self.state().closing.insert(caller.to_owned());
    }

    pub fn is_closing(&self, caller: &str) -> bool {
        self.state().closing.contains(caller)
    }

    /// Has callers told that a broker is gone: the one that leads all partitions, or another one.
    pub fn note_disconnected(&self, is_leader: bool) {
        self.state().is_disconnected |= is_leader;
        self.cluster.disconnect(if is_leader { Cluster::LEADER } else { Cluster::LEADER + 1 });
    }

    pub fn is_disconnected(&self) -> bool {
        self.state().is_disconnected
    }

    /// The present task begins to wait: at most for this time, and not when its call has something to take.
    pub fn wait(&self, what: &'static str, limit: Duration, call: Option<&Arc<Call>>) -> Wait {
        let mut state = self.state();
        let number = Self::next(&mut state);
        let (until, call) = (clock::now() + limit, call.map(Arc::clone));
        state.waits.insert(number, Waiting { what, until, call, ready_since: None });
        Wait { checks: self.this.upgrade().expect("it is borrowed"), number }
    }

    /// Called after each step.
    pub fn check(&self) {
        let (now, has_members) = (clock::now(), self.cluster.has_members(GROUP));
        let requests = self.cluster.take_undelivered().into_iter().filter(|(topic, _)| **topic == *CALLS);
        let mut state = self.state();
        let State { open, waits, ended, memberless, undelivered, .. } = &mut *state;
        let numbers = requests.filter_map(|(_, value)| Some(u64::from_le_bytes(value.try_into().ok()?)));
        undelivered.extend(numbers.map(|number| (number, now)));
        if !has_members {
            *memberless = Some(now);
        }
        for waiting in waits.values_mut() {
            let what = waiting.what;
            assert!(now <= waiting.until + LATE, "a wait did not end: {what}");
            let is_ready = waiting.call.as_ref().is_some_and(|call| call.is_ready());
            waiting.ready_since = waiting.ready_since.filter(|_| is_ready).or_else(|| is_ready.then_some(now));
            let is_late = waiting.ready_since.is_some_and(|since| now > since + LATE);
            assert!(!is_late, "a waiting thread was not woken: {what}");
        }
        open.retain(|number, call| {
            if call.has_ended() {
                ended.insert(*number);
                return false;
            }
            assert!(now <= call.until() + LATE, "a call has not ended at its deadline: request {number}");
            let is_lost = undelivered.get(number).is_some_and(|since| now > *since + LATE);
            assert!(!is_lost, "a call goes on though its request was not delivered: request {number}");
            true
        });
    }

    /// A call gets a place among those that run.
    pub fn take_place(&self, responder: u64, method: usize) {
        let mut state = self.state();
        *state.running.entry((responder, method)).or_default() += 1;
        let count = |of: &dyn Fn(usize) -> bool| {
            let all = state.running.iter().filter(|((each, method), _)| *each == responder && of(*method));
            all.map(|(_, count)| count).sum::<usize>()
        };
        let is_async = self.methods[method].is_async;
        let limit = if is_async { self.tasks } else { self.threads };
        let running = count(&|each| self.methods[each].is_async == is_async);
        assert!(running <= limit, "more calls run than are admitted: {running} of {limit}");
        let (running, limit) = (count(&|each| each == method), self.methods[method].concurrency);
        assert!(limit.is_none_or(|limit| running <= limit), "more calls of one method run than are admitted");
    }

    pub fn leave_place(&self, responder: u64, method: usize) {
        *self.state().running.get_mut(&(responder, method)).expect("it had a place") -= 1;
    }

    /// The method of a request begins.
    pub fn begin(&self, responder: u64, request: u64) -> Execution {
        let mut state = self.state();
        let number = Self::next(&mut state);
        trace(|| format!("responder {responder} executes request {request}: {number}"));
        let this = &state.requests[&request];
        let is_once = self.remembers_results && this.key.is_some() && this.method != LIST;
        for earlier in state.executions.values() {
            assert!(
                !self.is_at_most_once || earlier.request != request,
                "a call runs again after its offset was committed: request {request}"
            );
            let other = &state.requests[&earlier.request];
            let is_same = (&this.caller, this.method, &this.key) == (&other.caller, other.method, &other.key);
            if is_once && is_same && earlier.responder == responder {
                assert!(!earlier.is_running, "two calls with one idempotency key run at once: request {request}");
                assert!(!earlier.is_ok, "a call with one idempotency key runs twice: request {request}");
            }
        }
        state.executions.insert(number, Executed { responder, request, is_running: true, is_ok: false });
        Execution { number, request }
    }

    /// A method has ended. `is_ok`: its result is final.
    pub fn end(&self, execution: &Execution, is_ok: bool) {
        trace(|| format!("the execution {} of request {} has ended", execution.number, execution.request));
        let mut state = self.state();
        let executed = state.executions.get_mut(&execution.number).expect("it has begun");
        (executed.is_running, executed.is_ok) = (false, is_ok);
    }

    /// A result of a stream came to its caller.
    pub fn check_item(&self, number: u64, place: u64, body: &[u8]) {
        let state = self.state();
        let execution = u64::from_le_bytes(body[..8].try_into().expect("the number of an execution"));
        assert_eq!(state.executions[&execution].request, number, "a result is of another call");
        assert_eq!(body[8..], place.to_le_bytes(), "a result of a stream is out of order: request {number}");
    }

    /// A call has ended for its caller.
    pub fn ended(&self, number: u64, call: &Call, outcome: &Outcome) {
        trace(|| format!("request {number} has ended: {outcome:?}"));
        let state = self.state();
        let (request, now) = (&state.requests[&number], clock::now());
        match outcome {
            Outcome::Replied(ReplyKind::Result, body) => Self::check_result(&state, number, body),
            Outcome::Replied(ReplyKind::Error, body) => Self::check_error(&state, number, body),
            Outcome::Replied(..) => assert_eq!(request.method, LIST, "a stream ends"),
            Outcome::Failed(Failure::DeadlineExceeded) => {
                assert!(now >= call.until(), "a call has ended before its deadline: request {number}");
                self.check_unanswered(number, call, request);
            }
            Outcome::Failed(Failure::NobodyThere(_)) => {
                let was_empty = state.memberless.is_some_and(|last| last >= request.began);
                assert!(was_empty, "nobody is there, it says, but the group has members: request {number}");
            }
            Outcome::Failed(Failure::Unavailable(why)) => {
                let is_possible = why.contains("not delivered") || state.is_disconnected;
                assert!(is_possible, "a call is unavailable without a reason: request {number}, {why}");
            }
            Outcome::Failed(Failure::Cancelled) => {
                assert!(state.cancelled.contains(&number), "a call is cancelled by nobody: request {number}");
            }
            Outcome::Failed(Failure::Closed) => {
                assert!(state.closing.contains(&request.caller), "a call is closed by nobody: request {number}");
            }
            // A result of a stream that was not delivered.
            Outcome::Failed(Failure::Gap { .. }) => assert_eq!(request.method, LIST, "a gap is of a stream"),
            Outcome::Failed(Failure::TooLarge(_)) => panic!("no reply is too large"),
        }
    }

    fn check_result(state: &State, number: u64, body: &[u8]) {
        let execution = u64::from_le_bytes(body[..8].try_into().expect("the number of an execution"));
        let executed = &state.executions[&execution];
        let (this, other) = (&state.requests[&number], &state.requests[&executed.request]);
        let is_same = (&this.caller, this.method, &this.key) == (&other.caller, other.method, &other.key);
        let is_mine = executed.request == number || (this.key.is_some() && is_same);
        assert!(is_mine, "a result is of another call: request {number}, of {}", executed.request);
        assert!(executed.is_ok, "a result is of an execution that failed: request {number}");
    }

    fn check_error(state: &State, number: u64, body: &[u8]) {
        let request = &state.requests[&number];
        let code = std::str::from_utf8(body).expect("a code");
        let is_over = clock::now() >= request.began + request.budget;
        match code {
            "cancelled" => assert!(state.cancelled.contains(&number), "cancelled by nobody: request {number}"),
            "expired" => assert!(is_over, "a call has expired before its deadline: request {number}"),
            // Also of a method that has a limit of its own, or whose offset was not committed.
            "internal" | "unavailable" | "deadline_exceeded" | "overloaded" | "queue_full" => (),
            _ => panic!("an error that no request asked for: request {number}, {code}"),
        }
    }

    /// A call has got no reply: none may have been in the log in time.
    fn check_unanswered(&self, number: u64, call: &Call, request: &Request) {
        if request.method == LIST {
            return;
        }
        let before = clock::wall().saturating_sub(clock::since(call.until()) + FETCHED_WITHIN);
        let id = call.id().to_bytes();
        let is_early = |record: &Arc<LogRecord>| {
            record.timestamp_ms < before.as_millis() as i64 && header(record, protocol::ID) == Some(&id)
        };
        let is_answered = self.replies.iter().any(|at| self.cluster.records(at).iter().any(is_early));
        assert!(!is_answered, "a reply was lost: request {number}");
    }

    /// A commit took effect.
    fn commit(&self, at: &TopicPartition, committed: &CommittedOffset) {
        let state = self.state();
        let finished = finished_beyond(committed.offset, committed.metadata.as_deref().unwrap_or_default());
        let records = self.cluster.records(at);
        let is_committed =
            |offset: i64| offset < committed.offset || finished.iter().any(|each| each.contains(&offset));
        for record in records.iter().filter(|record| is_committed(record.offset)) {
            assert!(self.is_over(&state, record), "the committed offset passes a call without an end: {at} {record:?}");
        }
    }

    /// Returns whether nothing more has to be done for a request.
    fn is_over(&self, state: &State, record: &LogRecord) -> bool {
        let deadline_ms =
            header(record, protocol::DEADLINE).and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
        // `RequestHead::times` counts in floating point: of a time since 1970 that is exact to less than a microsecond.
        let now_ms = (clock::wall() + Duration::from_micros(1)).as_millis();
        if deadline_ms.is_none_or(|deadline_ms: u128| now_ms >= deadline_ms) {
            return true;
        }
        let Some(number) = record.value.as_deref().and_then(|value| Some(u64::from_le_bytes(value.try_into().ok()?)))
        else {
            return true; // A cancellation, or credit.
        };
        if self.is_at_most_once {
            return true;
        }
        let has_run = state.executions.values().any(|each| each.request == number && !each.is_running);
        if state.requests[&number].is_cast {
            // A duplicate of a cast with an idempotency key is not executed.
            return has_run || state.rejected.contains(&number) || state.requests[&number].key.is_some();
        }
        let id = header(record, protocol::ID);
        let is_last = |reply: &Arc<LogRecord>| {
            header(reply, protocol::ID) == id && header(reply, protocol::KIND) != Some(protocol::ITEM.as_bytes())
        };
        self.replies.iter().any(|at| self.cluster.records(at).iter().any(is_last))
    }

    /// Returns why not all requests are committed; `None` when they are.
    pub fn missing(&self) -> Option<String> {
        let committed = |at| self.cluster.committed(GROUP, at).map_or(0, |committed| committed.offset);
        let behind = self.calls.iter().find(|at| committed(at) < self.cluster.end(at));
        behind.map(|at| format!("{at} is committed to {} of {}", committed(at), self.cluster.end(at)))
    }
}

fn header<'a>(record: &'a LogRecord, name: &str) -> Option<&'a [u8]> {
    record.headers.iter().find(|(each, _)| each == name)?.1.as_deref()
}
