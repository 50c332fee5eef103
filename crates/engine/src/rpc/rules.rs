//! How a service answers, and what it says of each method.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use super::signature::SigningKey;

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
    /// Topics that replies may go to, each with the number of its partitions.
    pub reply_topics: HashMap<String, i32>,
    /// What requests must be signed with, and replies are.
    pub key: Option<SigningKey>,
    /// Calls that run at once on threads.
    pub threads: usize,
    /// Calls that run at once on the event loop.
    pub tasks: usize,
    /// Calls that wait in the queue, or wait for the result of another call.
    pub waiting_max: usize,
    /// Bytes of their requests.
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
