//! What a responder does about a record that comes: is it a call, who makes it, is there time, has it been carried out before, and may it
//! run now, or stand in line.
//!
//! A call goes: `read` (what the record says) → `check` (may it be carried out at all) → `enter` (now, later, or is its result known) →
//! whoever carries it out → `leave` (which is next), and `end` when its answer is final. Calls are known here by what stands for them, `T`, which is cheap to clone.
//! Nothing blocks: one lock, held for moves only.

use std::borrow::Borrow;
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::protocol::{self, HeaderList, RequestHead, Times};
use super::results::{Answer, Bounds, Known, Results};
use super::signature::SigningKey;
use super::turnstile::Turnstile;
use crate::kafka::MessageRef;

/// So much is remembered of signed calls, and of calls that were cancelled before they came.
const REMEMBERED: usize = 100_000;

/// How a service answers.
#[derive(Clone, Debug)]
pub struct IntakeOptions {
    /// A larger request is refused before it is decoded.
    pub bytes_max: usize,
    /// By so much the callers' clocks may be behind.
    pub clock_skew_s: f64,
    /// A call that has spent this share of its caller's time in queues is refused.
    pub patience: f64,
    /// A call whose deadline is farther away is refused.
    pub timeout_max_s: f64,
    /// Where replies may go.
    pub reply_topics: HashSet<String>,
    /// What requests must be signed with, and replies are.
    pub key: Option<SigningKey>,
    /// Calls that run at once on threads.
    pub threads: usize,
    /// Calls that run at once on the event loop.
    pub tasks: usize,
    /// Calls that stand in line, or wait for what others carry out.
    pub waiting_max: usize,
    /// Bytes of those in line.
    pub waiting_bytes_max: usize,
    /// Results that are kept for callers that ask again.
    pub results_max: usize,
    /// Bytes of them.
    pub results_bytes_max: usize,
    /// How long they are kept.
    pub results_ttl: Duration,
}

impl IntakeOptions {
    /// Whether a call has spent too much of its time in queues: of `budget_s` its caller waits for `left_s` still.
    pub fn is_impatient(&self, budget_s: f64, left_s: f64) -> bool {
        left_s < budget_s * (1.0 - self.patience)
    }
}

/// What is to be known of a method.
#[derive(Clone, Debug)]
pub struct MethodRules {
    /// By exact name.
    pub name: String,
    /// Whether it runs on the event loop.
    pub is_async: bool,
    /// Whether it gives several results.
    pub is_stream: bool,
    /// How many of its calls run at once.
    pub concurrency: Option<usize>,
    /// Who may call it; `None` for anybody.
    pub callers: Option<HashSet<String>>,
}

/// Why a record is not answered: its sender may not be who it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unwanted {
    /// It is larger than requests may be.
    Huge,
    /// It makes no sense.
    Undecodable,
    /// Its signature is missing or wrong.
    Forged,
    /// It has stood in another place of the log before.
    Replayed,
    /// Its reply is to go where replies may not.
    ReplyTopic,
}

/// Why a call is not carried out; its caller is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Its caller waits no more.
    Expired,
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
    /// It is to be carried out now.
    Now,
    /// Whoever ends another call does: it stands in line, or waits for the result of the same one.
    Later,
    /// It was carried out before.
    Known(Arc<Answer>),
    /// It is not to be.
    Refused(Refusal),
}

/// What a record is.
#[derive(Clone, Copy, Debug)]
pub enum Arrival<'a> {
    /// A call.
    Call(RequestHead<'a>),
    /// A caller waits no longer.
    Cancel(&'a [u8]),
    /// A caller takes more of a stream.
    More(&'a [u8], u64),
}

/// A call, as the tables here know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    id: Box<[u8]>,
    method: usize,
    size_bytes: usize,
    /// Of a call that must not be carried out twice.
    result_key: Option<Arc<[u8]>>,
}

impl Ticket {
    /// Whether it must not be carried out twice.
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
    state: Mutex<State<T>>,
}

#[derive(Debug)]
struct State<T> {
    /// Calls that wait or run, by the names that their callers gave them.
    under_way: HashMap<Box<[u8]>, T>,
    for_threads: Turnstile<(usize, T)>,
    for_tasks: Turnstile<(usize, T)>,
    /// Bytes of the calls that stand in line.
    waiting_bytes: usize,
    results: Results<T>,
    /// Where signed requests stand in the log.
    places: Remembered<Box<[u8]>, (i32, i64)>,
    /// Calls that were cancelled before they came.
    cancelled: Remembered<Box<[u8]>, ()>,
}

impl<T: Clone + PartialEq> State<T> {
    const fn turnstile(&mut self, is_async: bool) -> &mut Turnstile<(usize, T)> {
        if is_async { &mut self.for_tasks } else { &mut self.for_threads }
    }

    /// How many calls stand in line.
    const fn in_line(&self) -> usize {
        self.for_threads.waiting() + self.for_tasks.waiting()
    }

    /// How many stand in line, or wait for what others carry out.
    fn waiting(&self) -> usize {
        self.in_line() + self.results.waiting()
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
            places: Remembered::default(),
            cancelled: Remembered::default(),
        };
        Self { options: Arc::new(options), methods, by_name, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How the service answers.
    pub const fn options(&self) -> &Arc<IntakeOptions> {
        &self.options
    }

    /// What a record says.
    ///
    /// # Errors
    /// It is not answered.
    pub fn read<'a>(&self, message: MessageRef<'_>, headers: &'a HeaderList<'a>) -> Result<Arrival<'a>, Unwanted> {
        if message.size_bytes() > self.options.bytes_max {
            return Err(Unwanted::Huge);
        }
        let head = RequestHead::read(headers).map_err(|_| Unwanted::Undecodable)?;
        if let Some(key) = &self.options.key {
            self.check_genuine(key, &head, headers, message)?;
        }
        match head.kind {
            protocol::CALL | protocol::CAST => match head.reply_to {
                Some((topic, _)) if !self.options.reply_topics.contains(topic) => Err(Unwanted::ReplyTopic),
                _ => Ok(Arrival::Call(head)),
            },
            protocol::CANCEL => Ok(Arrival::Cancel(head.id)),
            protocol::MORE => Ok(Arrival::More(head.id, head.credit.unwrap_or(0))),
            _ => Err(Unwanted::Undecodable),
        }
    }

    fn check_genuine(
        &self,
        key: &SigningKey,
        head: &RequestHead<'_>,
        headers: &HeaderList<'_>,
        message: MessageRef<'_>,
    ) -> Result<(), Unwanted> {
        if !protocol::is_signed(key, headers, message.value().unwrap_or_default()) {
            return Err(Unwanted::Forged);
        }
        if head.kind == protocol::MORE {
            return Ok(());
        }
        // What comes again from its own place was not answered; in another place, somebody has copied it.
        let place = (message.partition(), message.offset());
        let name = [head.id, b" ", head.kind.as_bytes()].concat().into_boxed_slice();
        let first = self.state().places.first(name, place);
        if first == place { Ok(()) } else { Err(Unwanted::Replayed) }
    }

    /// The call of this name, if it waits or runs; its caller waits no longer. One that has not come yet is not carried out when it does.
    pub fn cancel(&self, id: &[u8]) -> Option<T> {
        let mut state = self.state();
        let found = state.under_way.get(id).cloned();
        if found.is_none() {
            state.cancelled.first(id.into(), ());
        }
        found
    }

    /// What was said of this method.
    pub fn method(&self, number: usize) -> &MethodRules {
        &self.methods[number]
    }

    /// The call of this name, if it waits or runs.
    pub fn find(&self, id: &[u8]) -> Option<T> {
        self.state().under_way.get(id).cloned()
    }

    /// The method that is called, by its number; or why the call is not to be carried out.
    pub fn check(&self, head: &RequestHead<'_>, times: &Times) -> (Option<usize>, Option<Refusal>) {
        if times.left_s <= 0.0 || self.state().cancelled.forget(head.id) {
            return (None, Some(Refusal::Expired));
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
        let result_key = result_key.map(|key| [head.caller.as_bytes(), head.method.as_bytes(), key].join(&0).into());
        Ticket { id: head.id.into(), method, size_bytes, result_key }
    }

    /// What becomes of a call. One that is entered is to be `end`ed, unless it waits for another's result, or has it.
    pub fn enter(&self, ticket: &Ticket, call: &T) -> Entered {
        let mut state = self.state();
        if let Some(key) = &ticket.result_key {
            let waiting_max = self.options.waiting_max.saturating_sub(state.in_line());
            match state.results.begin(key, Instant::now(), call, waiting_max) {
                Some(Known::New) => (),
                Some(Known::UnderWay) => return Entered::Later,
                Some(Known::Done(answer)) => return Entered::Known(answer),
                None => return Entered::Refused(Refusal::Full),
            }
        }
        let displaced = state.under_way.insert(ticket.id.clone(), call.clone());
        let entered = self.stand(&mut state, ticket, call);
        drop(state);
        drop(displaced); // Not under the lock: who knows what goes with it.
        entered
    }

    fn stand(&self, state: &mut State<T>, ticket: &Ticket, call: &T) -> Entered {
        if state.cancelled.forget(&ticket.id) {
            return Entered::Refused(Refusal::Expired); // Since it was looked at.
        }
        let is_async = self.methods[ticket.method].is_async;
        if state.turnstile(is_async).enter(ticket.method) {
            return Entered::Now;
        }
        let bytes = state.waiting_bytes + ticket.size_bytes;
        if state.waiting() >= self.options.waiting_max || bytes > self.options.waiting_bytes_max {
            return Entered::Refused(Refusal::Full);
        }
        state.waiting_bytes = bytes;
        state.turnstile(is_async).wait(ticket.method, (ticket.size_bytes, call.clone()));
        Entered::Later
    }

    /// What a call was answered with is final (`None`: an error, or nothing); who waits for the same answer. Again, nobody does.
    pub fn end(&self, ticket: &Ticket, call: &T, answer: Option<Answer>) -> Vec<T> {
        let mut state = self.state();
        // Of two calls with one name, the other may be under way still.
        if state.under_way.get(&ticket.id).is_some_and(|found| found == call) {
            state.under_way.remove(&ticket.id);
        }
        let key = ticket.result_key.as_ref();
        key.map_or_else(Vec::new, |key| state.results.finish(key, Instant::now(), call, answer))
    }

    /// Whoever carried a call out has done so; what is to be carried out in its place, if anything is.
    pub fn leave(&self, ticket: &Ticket) -> Option<T> {
        let mut state = self.state();
        let is_async = self.methods[ticket.method].is_async;
        let (size_bytes, call) = state.turnstile(is_async).leave(ticket.method)?;
        state.waiting_bytes -= size_bytes;
        Some(call)
    }

    /// How many calls run, and how many stand in line.
    pub fn counts(&self) -> (usize, usize) {
        let state = self.state();
        (state.for_threads.running() + state.for_tasks.running(), state.in_line())
    }
}

/// What was said first of the last so many names.
#[derive(Debug)]
struct Remembered<K, V> {
    /// With the number of each.
    said: HashMap<K, (u64, V)>,
    /// Oldest first; of those that were forgotten the names stay here until it is their turn.
    order: VecDeque<(u64, K)>,
    number: u64,
}

impl<K, V> Default for Remembered<K, V> {
    fn default() -> Self {
        Self { said: HashMap::new(), order: VecDeque::new(), number: 0 }
    }
}

impl<K: Clone + Eq + Hash, V: Copy> Remembered<K, V> {
    /// What was said first of a name: this, if nothing was.
    fn first(&mut self, name: K, value: V) -> V {
        if let Some((_, said)) = self.said.get(&name) {
            return *said;
        }
        if self.order.len() >= REMEMBERED
            && let Some((number, oldest)) = self.order.pop_front()
            && self.said.get(&oldest).is_some_and(|(current, _)| *current == number)
        {
            self.said.remove(&oldest);
        }
        self.number += 1;
        self.order.push_back((self.number, name.clone()));
        self.said.insert(name, (self.number, value));
        value
    }

    /// Whether anything was said of it; no more.
    fn forget<Q: Eq + Hash + ?Sized>(&mut self, name: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.said.remove(name).is_some()
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;
    use crate::rpc::ReplyKind;

    fn options() -> IntakeOptions {
        IntakeOptions {
            bytes_max: 1_000,
            clock_skew_s: 0.0,
            patience: 0.5,
            timeout_max_s: 100.0,
            reply_topics: HashSet::new(),
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
        assert_eq!(intake.cancel(b"1"), Some("first"));
        assert_eq!(intake.cancel(b"2"), None);
        assert_eq!(intake.check(&head("2"), &TIMES), (None, Some(Refusal::Expired)), "it comes after its cancellation");
        assert_eq!(intake.check(&head("2"), &TIMES), (Some(0), None), "which holds for one call");
        intake.end(&ticket, &"first", None);
        assert_eq!(intake.find(b"1"), None);
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
        assert_eq!(intake.find(b"1"), Some("again"));
    }

    #[test]
    fn what_was_forgotten_may_be_said_again() {
        let mut remembered = Remembered::<u32, u32>::default();
        assert_eq!(remembered.first(0, 1), 1);
        assert!(remembered.forget(&0));
        assert_eq!(remembered.first(0, 2), 2);
        for name in 1..REMEMBERED as u32 {
            remembered.first(name, 0);
        }
        assert_eq!(remembered.first(0, 3), 2, "its older name in the order does not take it away");
        remembered.first(u32::MAX, 0);
        assert_eq!(remembered.first(0, 4), 4, "now it was its turn");
        assert!(remembered.order.len() <= REMEMBERED && remembered.said.len() <= REMEMBERED);
    }
}
