//! A call on its responder: its request, its time, its job and its replies. `stage` draws its life.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::credit::{Credit, WithdrawalWatch};
use super::idempotency::Answer;
use super::options::{AdmissionOptions, MethodRules};
use super::request::{InvalidRequest, RejectReason};
use super::settlement::Settlement;
use super::stage::{Stage, Step, advance};
use super::ticket::Ticket;
use crate::clock::{Deadline, monotonic_ns, now_ns};
use crate::consume::{Job, PartitionQueue};
use crate::events::EventBox;
use crate::kafka::TopicPartition;
use crate::produce::DeliveryHandle;
use crate::rpc::protocol::{self, RequestHead, Times};
use crate::wake::Completion;

/// The reason why a call is not executed: it is answered, or dropped, without its method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotExecuted {
    /// Its caller is told why it is not executed.
    Rejected(RejectReason),
    /// It gets no reply: its sender may not be the caller that it names.
    Invalid(InvalidRequest),
    /// It was executed before; this was the answer.
    Cached(Arc<Answer>),
}

/// The reason why a call whose turn has come is not executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotBegun {
    /// Its partition was taken away: the new owner executes it.
    Fenced,
    /// Its caller is told why.
    Rejected(RejectReason),
}

/// The settings that all calls of a service share.
#[derive(Debug)]
pub struct Service {
    /// The responder's name in events.
    pub name: Arc<str>,
    /// The settings of admission.
    pub options: Arc<AdmissionOptions>,
    /// The receiver of refused replies.
    pub events: Arc<EventBox>,
}

/// The content of a new call.
pub(super) struct NewCall<'a> {
    pub(super) head: RequestHead<'a>,
    pub(super) times: Times,
    pub(super) service: &'a Arc<Service>,
    /// The number of the method and its rules; `None` if the service has no such method.
    pub(super) rules: Option<(usize, &'a MethodRules)>,
    /// The names of the call for admission, or the reason that it is not admitted.
    pub(super) ticket: Result<Ticket, NotExecuted>,
    /// Partition and offset of the request.
    pub(super) at: (TopicPartition, i64),
    pub(super) job: Option<Job>,
}

/// A call on its responder. Any thread may use it.
pub struct IncomingCall {
    id: Box<[u8]>,
    method: Box<str>,
    method_number: Option<usize>,
    caller: Box<str>,
    reply_to: Option<(Box<str>, i32)>,
    idempotency_key: Option<Box<[u8]>>,
    signed_names: Box<[Box<str>]>,
    times: Times,
    at: TopicPartition,
    offset: i64,
    service: Arc<Service>,
    /// Time that its method may run; `None`: as long as its caller waits.
    time_limit: Option<Duration>,
    /// `None` if it was not admitted.
    ticket: Option<Ticket>,
    /// When its caller stops waiting, on the monotonic clock.
    caller_until_ns: u64,
    /// When it is to end: then, or when its method's time is over.
    until_ns: AtomicU64,
    /// Completed when its caller cancels it.
    cancelled: Completion<()>,
    /// Of a stream; the flag says whether the request named a credit.
    credit: Option<(Arc<Credit>, bool)>,
    /// Of a stream that has a partition.
    _withdrawal: Option<WithdrawalWatch>,
    /// The place of the next reply of a stream.
    sequence: AtomicU64,
    /// Shared with the settlement of its last reply.
    stage: Arc<Mutex<Stage>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    not_executed: Option<NotExecuted>,
    /// `None` once it was taken; in at-most-once services before the method begins.
    job: Option<Job>,
    began_ns: u64,
    ran_s: f64,
}

impl std::fmt::Debug for IncomingCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "IncomingCall({} of {}@{}, {:?})", self.method, self.at, self.offset, self.stage())
    }
}

/// Returns the moment this many seconds from now, on the monotonic clock.
fn moment_ns(seconds: f64) -> u64 {
    now_ns().saturating_add_signed((seconds * 1e9) as i64)
}

fn seconds_until(moment_ns: u64) -> f64 {
    moment_ns.saturating_sub(now_ns()) as f64 / 1e9
}

impl IncomingCall {
    pub(super) fn new(new: NewCall<'_>) -> Self {
        let NewCall { head, times, service, rules, ticket, at: (at, offset), job } = new;
        let until_ns = moment_ns(times.left_s);
        let is_stream = rules.is_some_and(|(_, rules)| rules.is_stream);
        let not_executed = ticket.as_ref().err().cloned();
        let credit = is_stream.then(|| Arc::new(Credit::new(head.credit.unwrap_or(0))));
        let partition = job.as_ref().and_then(Job::partition);
        let watch = |(credit, partition): (&Arc<Credit>, &Arc<PartitionQueue>)| {
            WithdrawalWatch::new(partition.withdrawn(), credit)
        };
        let withdrawal = credit.as_ref().zip(partition).map(watch);
        Self {
            id: head.id.into(),
            method: head.method.into(),
            method_number: rules.map(|(number, _)| number),
            caller: head.caller.into(),
            reply_to: head.reply_to.map(|(topic, partition)| (topic.into(), partition)),
            idempotency_key: head.idempotency_key.map(Into::into),
            signed_names: head.names_signed().map(Into::into).collect(),
            times,
            at,
            offset,
            service: Arc::clone(service),
            time_limit: rules.and_then(|(_, rules)| rules.time_limit),
            ticket: ticket.ok(),
            caller_until_ns: until_ns,
            until_ns: AtomicU64::new(until_ns),
            cancelled: Completion::default(),
            credit: credit.map(|credit| (credit, head.credit.is_some())),
            _withdrawal: withdrawal,
            sequence: AtomicU64::new(0),
            stage: Arc::default(),
            state: Mutex::new(State { not_executed, job, ..State::default() }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a step; returns `false`, and changes nothing, if it is not legal. Does not block.
    pub fn advance(&self, step: Step) -> bool {
        advance(&self.stage, step)
    }

    /// Returns the state. Does not block.
    pub fn stage(&self) -> Stage {
        *self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns why its method is not executed; `None` if it is.
    pub fn not_executed(&self) -> Option<NotExecuted> {
        self.state().not_executed.clone()
    }

    pub(super) fn set_not_executed(&self, reason: NotExecuted) {
        self.state().not_executed = Some(reason);
    }

    pub(super) const fn ticket(&self) -> Option<&Ticket> {
        self.ticket.as_ref()
    }

    /// The id that its caller gave it.
    pub const fn id(&self) -> &[u8] {
        &self.id
    }

    /// The name of the method.
    pub const fn method(&self) -> &str {
        &self.method
    }

    /// The number of the method; `None` if the service has no such method.
    pub const fn method_number(&self) -> Option<usize> {
        self.method_number
    }

    /// The caller, by its own word.
    pub const fn caller(&self) -> &str {
        &self.caller
    }

    /// Topic and partition of its replies; `None` if it wants none.
    pub fn reply_to(&self) -> Option<(&str, i32)> {
        self.reply_to.as_ref().map(|(topic, partition)| (&**topic, *partition))
    }

    /// The key that all attempts at one call share.
    pub fn idempotency_key(&self) -> Option<&[u8]> {
        self.idempotency_key.as_deref()
    }

    /// The names of the other headers that its caller signed; `None` if the service has no secret.
    pub fn signed_names(&self) -> Option<impl Iterator<Item = &str>> {
        self.service.options.key.as_ref().map(|_| self.signed_names.iter().map(|name| &**name))
    }

    /// Topic, partition and offset of the request.
    pub const fn place(&self) -> (&TopicPartition, i64) {
        (&self.at, self.offset)
    }

    /// The times of the call when its request was read.
    pub const fn times(&self) -> &Times {
        &self.times
    }

    /// The credit of a stream, and whether the request named one; `None` for a call with one result.
    pub fn credit(&self) -> Option<(&Credit, bool)> {
        self.credit.as_ref().map(|(credit, is_named)| (&**credit, *is_named))
    }

    /// When it is to end, in nanoseconds of the monotonic clock.
    pub fn until_ns(&self) -> u64 {
        self.until_ns.load(Ordering::Relaxed)
    }

    /// Time that it may still take, in seconds; at least 0.
    pub fn remaining_s(&self) -> f64 {
        seconds_until(self.until_ns())
    }

    /// Returns the end of a wait for the call: after `timeout`, but not after the end of its time.
    pub fn deadline(&self, timeout: Option<Duration>) -> Deadline {
        let left = Duration::try_from_secs_f64(self.remaining_s()).unwrap_or(Duration::MAX);
        Deadline::after(Some(timeout.map_or(left, |timeout| timeout.min(left))))
    }

    /// Cancels the call: waits for its cancellation and for its credit end. Does not block.
    pub(super) fn cancel(&self) {
        self.cancelled.complete(());
        if let Some((credit, _)) = &self.credit {
            credit.end();
        }
    }

    /// Completes when the caller cancels the call.
    pub const fn cancelled(&self) -> &Completion<()> {
        &self.cancelled
    }

    /// Returns whether its caller cancelled it, or its time is over. Does not block.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.is_done() || now_ns() >= self.until_ns()
    }

    /// Begins a call whose turn has come, and limits its time to its method's. From here on its partition is not
    /// given back before its job has ended. Does not block.
    ///
    /// # Errors
    /// It is not to be executed.
    pub fn begin(&self) -> Result<(), NotBegun> {
        let is_fenced = self.state().job.as_mut().is_some_and(|job| {
            job.keep_assigned();
            job.is_fenced()
        });
        if is_fenced {
            return Err(NotBegun::Fenced);
        }
        if let Some(reason) = self.reject_reason() {
            return Err(NotBegun::Rejected(reason));
        }
        if let Some(limit) = self.time_limit {
            self.until_ns.fetch_min(moment_ns(limit.as_secs_f64()), Ordering::Relaxed);
        }
        Ok(())
    }

    fn reject_reason(&self) -> Option<RejectReason> {
        if self.cancelled.is_done() {
            return Some(RejectReason::Cancelled);
        }
        if self.is_cancelled() {
            return Some(RejectReason::Expired);
        }
        let left_s = seconds_until(self.caller_until_ns);
        self.service.options.is_overloaded(self.times.budget_s, left_s).then_some(RejectReason::Overloaded)
    }

    /// Starts the clock of its method.
    pub fn method_began(&self) {
        self.state().began_ns = monotonic_ns();
    }

    /// Stops the clock of its method.
    pub fn method_ended(&self) {
        let mut state = self.state();
        state.ran_s = monotonic_ns().saturating_sub(state.began_ns) as f64 / 1e9;
    }

    /// Time that its method ran, in seconds.
    pub fn ran_s(&self) -> f64 {
        self.state().ran_s
    }

    /// Returns where a reply of this kind goes; `None` if it is not wanted: the call is over, its caller asked for
    /// none, or the caller's deadline has passed. A call that was cancelled gets its last reply only, because
    /// another client may have cancelled it.
    pub fn address(&self, kind: &str) -> Option<(&str, i32)> {
        let is_unwanted = kind == protocol::ITEM && self.cancelled.is_done();
        let is_wanted = !is_unwanted && !self.stage().is_over() && now_ns() < self.caller_until_ns;
        self.reply_to().filter(|_| is_wanted)
    }

    /// Gives the headers of a reply, with its signature, to a function. Of a stream, each has the next place.
    pub fn with_reply_headers<T>(
        &self,
        kind: &str,
        body: &[u8],
        code: Option<&str>,
        use_headers: impl FnOnce(&[(&str, Option<&[u8]>)]) -> T,
    ) -> T {
        let times = format!("{:.0},{:.0}", self.times.queued_s * 1e6, self.ran_s() * 1e6);
        let place = self.credit.as_ref().map(|_| self.sequence.fetch_add(1, Ordering::Relaxed).to_string());
        let mut headers = Vec::with_capacity(6);
        headers.push((protocol::KIND, Some(kind.as_bytes())));
        headers.push((protocol::ID, Some(&*self.id)));
        headers.push((protocol::TIMES, Some(times.as_bytes())));
        headers.extend(place.as_ref().map(|place| (protocol::SEQUENCE, Some(place.as_bytes()))));
        headers.extend(code.map(|code| (protocol::CODE, Some(code.as_bytes()))));
        let key = self.service.options.key.as_ref();
        let signature = key.map(|key| key.sign_reply(&self.id, kind, place.as_deref(), code, body));
        headers.extend(signature.as_ref().map(|signature| (protocol::SIGNATURE, Some(&**signature))));
        use_headers(&headers)
    }

    /// Leaves its job's slot to other jobs; with `keeps_partition`, the partition is not given back before the job
    /// has ended.
    pub fn leave_slot(&self, keeps_partition: bool) {
        if let Some(job) = &mut self.state().job {
            job.leave_slot(keeps_partition);
        }
    }

    /// Takes its job, which is then completed, or committed in a transaction, by the receiver of this. Does not block.
    pub fn take_job(&self) -> Option<Job> {
        self.state().job.take()
    }

    /// Settles a call whose last reply, if it has any, was sent: nothing more is sent for it. Its job is completed
    /// when that reply is acknowledged, or refused for good; now if there is none. Should the reply fail otherwise,
    /// the call is executed again after `delay`. Does not block.
    pub fn settle(&self, last: Option<&Arc<DeliveryHandle>>, delay: Duration) {
        self.advance(Step::Reply);
        let job = self.take_job();
        let Some(last) = last else {
            // A job of an assignment that has ended changes nothing: the new owner sees the call, too.
            drop(job.map(|mut job| job.complete()));
            self.advance(Step::Settle);
            return;
        };
        let (at, offset, service) = (self.at.clone(), self.offset, Arc::clone(&self.service));
        Settlement { at, offset, delay, service, stage: Arc::clone(&self.stage) }.when_acknowledged(job, last);
    }

    /// Gives its job back: the partition's owner executes the call again after `delay`. Does not block.
    pub fn give_back(&self, delay: Duration) {
        if let Some(mut job) = self.take_job() {
            job.retry(delay, true);
        }
        self.advance(Step::Settle);
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::super::admission::CallRef;
    use super::super::testing::{Named, admission_of, head, named};
    use super::*;

    fn call_of(head: &RequestHead<'_>, rules: MethodRules) -> Named {
        named(&admission_of(vec![MethodRules { name: "quote".into(), ..rules }]), "call", head, 10)
    }

    fn wanting_a_reply() -> RequestHead<'static> {
        RequestHead { reply_to: Some(("replies", 0)), ..head("1") }
    }

    #[test]
    fn an_illegal_step_changes_nothing() {
        let call = call_of(&head("1"), MethodRules::default());
        assert!(call.call().advance(Step::Reply));
        assert!(!call.call().advance(Step::Run) && !call.call().advance(Step::Reply));
        assert_eq!(call.call().stage(), Stage::Replied);
    }

    #[test]
    fn a_call_is_answered_once() {
        let call = call_of(&wanting_a_reply(), MethodRules::default());
        assert_eq!(call.call().address(protocol::REPLY), Some(("replies", 0)));
        call.call().settle(None, Duration::ZERO);
        assert_eq!((call.call().address(protocol::REPLY), call.call().stage()), (None, Stage::Settled));
    }

    #[test]
    fn a_cancelled_call_gets_its_last_reply_only() {
        let call = call_of(&wanting_a_reply(), MethodRules { is_stream: true, ..MethodRules::default() });
        call.call().cancel();
        assert_eq!(call.call().address(protocol::ITEM), None);
        assert_eq!(call.call().address(protocol::ERROR), Some(("replies", 0)));
        assert!(call.call().credit().is_some_and(|(credit, _)| credit.is_ready()), "its wait for credit ends");
        assert_eq!(call.call().begin(), Err(NotBegun::Rejected(RejectReason::Cancelled)));
    }

    #[test]
    fn a_cast_wants_no_reply() {
        let call = call_of(&RequestHead { kind: protocol::CAST, ..head("1") }, MethodRules::default());
        assert_eq!(call.call().address(protocol::REPLY), None);
    }

    #[test]
    fn the_time_of_a_method_limits_its_call() {
        let limit = Some(Duration::ZERO);
        let call = call_of(&wanting_a_reply(), MethodRules { time_limit: limit, ..MethodRules::default() });
        assert!(!call.call().is_cancelled());
        assert_eq!(call.call().begin(), Ok(()));
        assert!(call.call().is_cancelled(), "its method has no time left");
        assert!(call.call().address(protocol::ERROR).is_some(), "its caller still waits");
    }

    #[test]
    fn the_replies_of_a_stream_are_numbered() {
        let places = |call: &Named| {
            let place = |headers: &[(&str, Option<&[u8]>)]| {
                let found = headers.iter().find(|(name, _)| *name == protocol::SEQUENCE);
                found.and_then(|(_, value)| String::from_utf8(value.expect("a number").to_vec()).ok())
            };
            [protocol::ITEM, protocol::END].map(|kind| call.call().with_reply_headers(kind, b"", None, place))
        };
        let stream = call_of(&wanting_a_reply(), MethodRules { is_stream: true, ..MethodRules::default() });
        assert_eq!(places(&stream), [Some("0".to_owned()), Some("1".to_owned())]);
        assert_eq!(places(&call_of(&wanting_a_reply(), MethodRules::default())), [None, None]);
    }
}
