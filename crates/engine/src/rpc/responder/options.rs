//! The settings of a service and of its methods.

use std::collections::HashSet;
use std::time::Duration;

use crate::rpc::signature::SigningKey;

/// The settings of a service.
#[derive(Clone, Debug)]
pub struct AdmissionOptions {
    /// Most bytes of a request; a larger one is refused before it is decoded.
    pub bytes_max: usize,
    /// Tolerated clock skew: a call expires this many seconds after its deadline.
    pub clock_skew_s: f64,
    /// A call that has spent more than this share of its caller's time in queues is rejected.
    pub queue_time_share_max: f64,
    /// A call whose deadline is farther away, in seconds, is rejected.
    pub timeout_max_s: f64,
    /// The key of requests and replies; `None`: they are not signed.
    pub key: Option<SigningKey>,
    /// Most calls that run at once on threads.
    pub threads: usize,
    /// Most calls that run at once on the event loop.
    pub tasks: usize,
    /// Most calls that wait in the queue, or for the result of another call.
    pub waiting_max: usize,
    /// Most bytes of their requests.
    pub waiting_bytes_max: usize,
    /// Most results that are kept for repeated calls.
    pub results_max: usize,
    /// Most bytes of them.
    pub results_bytes_max: usize,
    /// Time that they are kept.
    pub results_ttl: Duration,
}

impl AdmissionOptions {
    /// Returns whether a call has spent too much of its time in queues: its caller waits `left_s` more of `budget_s`.
    pub fn is_overloaded(&self, budget_s: f64, left_s: f64) -> bool {
        left_s < budget_s * (1.0 - self.queue_time_share_max)
    }
}

/// The settings of a method.
#[derive(Clone, Debug, Default)]
pub struct MethodRules {
    /// Its exact name.
    pub name: String,
    /// `true` if it runs on the event loop.
    pub is_async: bool,
    /// `true` if it returns a stream of results.
    pub is_stream: bool,
    /// Most of its calls that run at once; `None`: no limit of its own.
    pub concurrency: Option<usize>,
    /// The callers that may call it; `None`: all may.
    pub callers: Option<HashSet<String>>,
    /// Time that a call may run; `None`: as long as its caller waits.
    pub time_limit: Option<Duration>,
}
