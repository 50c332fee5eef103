//! The number of messages that one job of lanes takes.
//!
//! A job has a cost of its own, for the lane, the scheduler and the worker. Where handlers are short, that cost is most
//! of the work. One job then takes several lanes, one after another, as long as they take no longer than waking another
//! worker would.

use std::str::FromStr;
use std::time::Duration;

use crate::{Error, Result};

/// The lanes that one job may lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// One.
    OneLane,
    /// One, and more while jobs are short: user code gets the messages one by one, lane by lane.
    WhileShort,
    /// As many as make up an even share of the messages that wait: user code gets a batch, in offset order.
    Even,
}

impl FromStr for Share {
    type Err = Error;

    fn from_str(word: &str) -> Result<Self> {
        match word {
            "one" => Ok(Self::OneLane),
            "short" => Ok(Self::WhileShort),
            "even" => Ok(Self::Even),
            other => Err(Error::Invalid { reason: format!("a job takes one, short or even lanes, not {other:?}") }),
        }
    }
}

/// The time that the messages of a job take together where other jobs could run at the same time: about what it costs
/// to wake a worker that then waits for the GIL.
const ALONE_NS: f64 = 200_000.0;
/// A handler that takes less than this waits for nothing: another worker would only wait for the GIL.
const WAITS_NS: f64 = 20_000.0;
/// The time that they take where there is enough for each job, or where handlers wait for nothing.
const TOGETHER_NS: f64 = 1_000_000.0;
/// The messages that a job takes at least where there is enough for each job: none of them would begin earlier. It
/// shows whether they are short after all: one alone may have taken long because it waited for the GIL.
const TRIED: usize = 4;
/// A job of several lanes that runs for longer loses those that it has not come to: other workers may be idle.
pub(in crate::consume) const GIVE_ON_AFTER: Duration = Duration::from_millis(4);
/// The most messages of a job.
const MESSAGES_MAX: usize = 1_000;
/// The weight of the last job in the estimate, if it was faster than the estimate. A slower one counts at once.
const WEIGHT: f64 = 0.2;

/// The time that the messages of a partition's jobs take.
#[derive(Clone, Debug)]
pub(super) struct ShortJobs {
    /// False where a job leases one lane, however short it is.
    is_allowed: bool,
    /// Nanoseconds of a message; infinite before anything is known.
    message_ns: f64,
}

impl Default for ShortJobs {
    fn default() -> Self {
        Self::new(Share::OneLane)
    }
}

impl ShortJobs {
    pub(super) const fn new(share: Share) -> Self {
        Self { is_allowed: matches!(share, Share::WhileShort), message_ns: f64::INFINITY }
    }

    /// Notes how long the messages of a job took.
    pub(super) fn note(&mut self, messages: usize, took: Duration) {
        if !self.is_allowed || messages == 0 {
            return;
        }
        let each_ns = took.as_nanos() as f64 / messages as f64;
        self.message_ns = if each_ns < self.message_ns && self.message_ns.is_finite() {
            self.message_ns.mul_add(1.0 - WEIGHT, each_ns * WEIGHT)
        } else {
            each_ns
        };
    }

    /// Returns how many messages a job may have, whatever waits. At least one.
    pub(super) fn messages_max(&self) -> usize {
        self.within(if self.message_ns < WAITS_NS { TOGETHER_NS } else { ALONE_NS })
    }

    /// Returns how many messages a job may have, where `even` of them are an even share of those that wait.
    pub(super) fn share(&self, even: usize) -> usize {
        let tried = if self.is_allowed { TRIED } else { 1 };
        self.messages_max().max(even.min(self.within(TOGETHER_NS).max(tried)))
    }

    fn within(&self, time_ns: f64) -> usize {
        if !self.is_allowed {
            return 1;
        }
        ((time_ns / self.message_ns.max(1.0)) as usize).clamp(1, MESSAGES_MAX)
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_micros(1);

    fn short_jobs() -> ShortJobs {
        let mut jobs = ShortJobs::new(Share::WhileShort);
        jobs.note(1, SHORT);
        jobs
    }

    #[test]
    fn a_job_takes_one_lane_until_jobs_are_known_to_be_short() {
        let jobs = ShortJobs::new(Share::WhileShort);
        assert_eq!((jobs.messages_max(), jobs.share(1)), (1, 1));
        assert_eq!(short_jobs().messages_max(), 1_000);
    }

    #[test]
    fn messages_that_may_wait_for_something_are_kept_for_less_time_than_those_that_do_not() {
        let mut jobs = ShortJobs::new(Share::WhileShort);
        jobs.note(1, Duration::from_micros(19));
        assert_eq!(jobs.messages_max(), 52);
        jobs.note(1, Duration::from_micros(20));
        assert_eq!(jobs.messages_max(), 10);
    }

    #[test]
    fn a_long_job_counts_at_once_and_is_forgotten_slowly() {
        let mut jobs = short_jobs();
        jobs.note(1, Duration::from_millis(10));
        assert_eq!(jobs.messages_max(), 1);
        for _ in 0..10 {
            jobs.note(1, SHORT);
        }
        assert_eq!(jobs.messages_max(), 1);
        for _ in 0..40 {
            jobs.note(1, SHORT);
        }
        assert!(jobs.messages_max() > 50);
    }

    #[test]
    fn where_many_wait_a_job_takes_up_to_its_even_share() {
        let mut jobs = ShortJobs::new(Share::WhileShort);
        jobs.note(1, Duration::from_micros(100));
        assert_eq!(jobs.share(1), 2);
        assert_eq!(jobs.share(5), 5);
        assert_eq!(jobs.share(500), 10);
    }

    #[test]
    fn where_many_wait_a_job_takes_some_lanes_even_if_messages_seem_long() {
        let mut jobs = ShortJobs::new(Share::WhileShort);
        jobs.note(1, Duration::from_millis(5));
        assert_eq!((jobs.share(1), jobs.share(2), jobs.share(500)), (1, 2, 4));
        for _ in 0..20 {
            jobs.note(4, SHORT * 4);
        }
        assert!(jobs.share(500) > 10);
    }

    #[test]
    fn one_lane_stays_one_lane_however_short_its_jobs_are() {
        let mut jobs = ShortJobs::new(Share::OneLane);
        jobs.note(1, SHORT);
        assert_eq!(jobs.share(500), 1);
    }
}
