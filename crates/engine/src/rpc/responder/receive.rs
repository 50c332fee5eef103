//! Receives the jobs of the topic of requests: one record each, which is a call, a cancellation, or credit for a
//! stream.

use std::sync::Arc;

use super::admission::{Admission, Admitted, CallRef};
use super::incoming_call::{IncomingCall, NewCall, NotExecuted};
use super::request::{Arrival, RejectReason, RequestRecord};
use crate::clock;
use crate::consume::{Job, Work};
use crate::kafka::Batch;
use crate::rpc::protocol::{RequestHead, Times};

/// A record as it is lent by the client library, with its place in the batch.
pub type LentRecord = (Arc<Batch>, usize);

/// The result of receiving a job.
#[derive(Debug)]
pub enum Received<T> {
    /// A call that the receiving thread executes, or answers without executing it.
    Call(T),
    /// A call that was queued. It leaves its slot; its record is copied before the receiving thread goes on.
    Queued(T),
    /// A call that was cancelled: its callbacks are to be called.
    Cancelled(T),
    /// Nothing more to do.
    Nothing,
    /// There will be no more work.
    Closed,
}

impl<T: CallRef> Admission<T> {
    /// Receives work of the topic of requests. `wrap` makes the caller's own object of a new call. Does not block.
    ///
    /// # Errors
    /// Those of `wrap`; the job is then tried again.
    pub fn receive_work<E>(
        &self,
        work: Work,
        wrap: impl FnOnce(IncomingCall, LentRecord) -> Result<T, E>,
    ) -> Result<Received<T>, E> {
        match work {
            Work::Job(job) => {
                return self.receive(job, clock::wall().as_secs_f64() * 1e3, wrap);
            }
            Work::Hook(hook) => hook.finish(),
            Work::Closed => return Ok(Received::Closed),
            Work::AssignLanes(_) | Work::EndOfPartition(_) | Work::TimedOut => (),
        }
        Ok(Received::Nothing)
    }

    /// Receives a job at a time in milliseconds since 1970. `wrap` makes the caller's own object of a new call.
    /// Does not block.
    ///
    /// # Errors
    /// Those of `wrap`; the job is then tried again.
    pub fn receive<E>(
        &self,
        mut job: Job,
        now_ms: f64,
        wrap: impl FnOnce(IncomingCall, LentRecord) -> Result<T, E>,
    ) -> Result<Received<T>, E> {
        job.truncate(1);
        let (batch, index) = (Arc::clone(job.batch()), job.first());
        let message = batch.message(index);
        let headers = message.headers();
        let record = RequestRecord {
            headers: &headers,
            key: message.key(),
            value: message.value(),
            place: (message.partition(), message.offset()),
            sent_ms: message.timestamp().0,
        };
        let lent = (Arc::clone(&batch), index);
        let at = (batch.topic_partition().clone(), message.offset());
        let new_call = |head, times, method: Option<usize>, ticket, job| NewCall {
            head,
            times,
            service: self.service(),
            rules: method.map(|number| (number, self.method(number))),
            ticket,
            at,
            job: Some(job),
        };
        match self.read(&record, now_ms) {
            Ok(Arrival::Call(head, times)) => {
                let (method, reason) = self.check(&head, &times);
                let ticket = match (method, reason) {
                    (Some(method), None) => Ok(self.ticket(&head, method, record.size_bytes())),
                    (_, reason) => Err(NotExecuted::Rejected(reason.unwrap_or(RejectReason::UnknownMethod))),
                };
                let call = wrap(IncomingCall::new(new_call(head, times, method, ticket, job)), lent)?;
                Ok(self.decide(call))
            }
            Ok(Arrival::Cancel(head, times)) => {
                let found = self.cancel(&head, &times);
                drop(job.complete()); // A new owner of the partition sees the record, too.
                Ok(found.map_or(Received::Nothing, Received::Cancelled))
            }
            Ok(Arrival::More(head)) => {
                self.grant(&head);
                drop(job.complete());
                Ok(Received::Nothing)
            }
            Err(invalid) => {
                let times = Times { budget_s: 0.0, left_s: 0.0, queued_s: 0.0 };
                let not_executed = Err(NotExecuted::Invalid(invalid));
                let call = new_call(RequestHead::default(), times, None, not_executed, job);
                wrap(IncomingCall::new(call), lent).map(Received::Call)
            }
        }
    }

    fn decide(&self, call: T) -> Received<T> {
        if call.call().ticket().is_none() {
            return Received::Call(call);
        }
        match self.admit(&call) {
            Admitted::Run => Received::Call(call),
            Admitted::Queued => {
                // The thread that executes it by now may have taken its job.
                call.call().leave_slot(false);
                Received::Queued(call)
            }
            Admitted::Cached(answer) => {
                call.call().set_not_executed(NotExecuted::Cached(answer));
                Received::Call(call)
            }
            Admitted::Rejected(reason) => {
                call.call().set_not_executed(NotExecuted::Rejected(reason));
                Received::Call(call)
            }
        }
    }
}
