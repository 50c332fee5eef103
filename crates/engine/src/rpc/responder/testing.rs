//! Calls without a broker, for the tests of this room.

use std::sync::Arc;
use std::time::Duration;

use super::admission::{Admission, CallRef};
use super::incoming_call::{IncomingCall, NewCall};
use super::options::{AdmissionOptions, MethodRules};
use crate::events::event_box;
use crate::kafka::TopicPartition;
use crate::rpc::protocol::{self, RequestHead, Times};

/// A call with a name to recognize it by.
#[derive(Clone, Debug)]
pub(in crate::rpc) struct Named {
    pub(in crate::rpc) name: &'static str,
    call: Arc<IncomingCall>,
}

impl PartialEq for Named {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.call, &other.call)
    }
}

impl CallRef for Named {
    fn call(&self) -> &IncomingCall {
        &self.call
    }
}

/// The head of a call of `quote`.
pub(in crate::rpc) fn head(id: &'static str) -> RequestHead<'static> {
    RequestHead { kind: protocol::CALL, id: id.as_bytes(), method: "quote", caller: "me", ..RequestHead::default() }
}

/// A call of the first method, with a request of this size, without a job.
pub(in crate::rpc) fn named(
    admission: &Admission<Named>,
    name: &'static str,
    head: &RequestHead<'_>,
    size_bytes: usize,
) -> Named {
    let new = NewCall {
        head: *head,
        times: Times { budget_s: 10.0, left_s: 9.0, queued_s: 1.0 },
        service: admission.service(),
        rules: Some((0, admission.method(0))),
        ticket: Ok(admission.ticket(head, 0, size_bytes)),
        at: (TopicPartition::new("calls", 0), 0),
        job: None,
    };
    Named { name, call: Arc::new(IncomingCall::new(new)) }
}

/// One thread, one task, and a queue of two calls and 25 bytes.
pub(in crate::rpc) fn options() -> AdmissionOptions {
    AdmissionOptions {
        bytes_max: 1_000,
        clock_skew_s: 0.0,
        queue_time_share_max: 0.5,
        timeout_max_s: 100.0,
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

/// The admission control of a service with these methods.
pub(in crate::rpc) fn admission_of(methods: Vec<MethodRules>) -> Admission<Named> {
    admission_with(options(), methods)
}

/// The admission control of a service with these options and methods.
pub(in crate::rpc) fn admission_with(options: AdmissionOptions, methods: Vec<MethodRules>) -> Admission<Named> {
    let admission = Admission::new(options, methods, "calls", event_box().expect("a descriptor"));
    admission.set_reply_topics([("replies".to_owned(), 2)]);
    admission
}
