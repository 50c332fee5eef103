//! The calls of a producer that concern all of its messages.

use std::time::{Duration, Instant};

use awoke_wake::simulation;

use super::cluster::Calls;
use super::{Client, Code, Unanswered};
use crate::clock;

impl Client {
    /// Waits up to `timeout_ms` (-1 for ever) for the first delivery report, and serves all reports that are there.
    pub fn serve_reports(&self, timeout_ms: i32) {
        let until = moment_in(timeout_ms);
        while self.serve_ready() == 0 {
            if self.is_over(until) {
                return;
            }
            simulation::block(until);
        }
    }

    /// Serves reports until none is missing or the time is up.
    pub fn flush(&self, timeout_ms: i32) -> Code {
        let until = moment_in(timeout_ms);
        loop {
            self.serve_ready();
            if self.cluster.state().clients[self.id].unserved == 0 {
                return Code::NONE;
            }
            if self.is_over(until) {
                return Code::TIMED_OUT;
            }
            simulation::block(until);
        }
    }

    /// Returns the partitions with messages that have no answer: here each gets one soon.
    pub const fn unanswered(&self) -> Vec<Unanswered> {
        Vec::new()
    }

    /// Fails the messages that wait: their reports come next.
    pub fn purge_queued(&self) {
        self.purge_all();
    }

    /// Fails the messages that wait or are on their way: their reports come next.
    pub fn purge_all(&self) {
        let mut calls = Calls::default();
        self.cluster.state().purge(self.id, &mut calls);
        self.cluster.announce(calls);
    }

    /// Serves the reports that are there. Returns the number of them.
    fn serve_ready(&self) -> usize {
        let mut served = 0;
        loop {
            let report = {
                let mut state = self.cluster.state();
                let client = &mut state.clients[self.id];
                let report = client.reports.pop_front();
                client.unserved -= usize::from(report.is_some());
                report
            };
            let Some(report) = report else { return served };
            served += 1;
            if report() {
                return served;
            }
        }
    }

    /// Returns whether a wait has ended; registers the present task if not.
    fn is_over(&self, until: Option<Instant>) -> bool {
        let mut state = self.cluster.state();
        if state.take_interrupt(self.main_queue) || until.is_some_and(|until| clock::now() >= until) {
            return true;
        }
        state.wait_in(self.main_queue);
        false
    }
}

fn moment_in(timeout_ms: i32) -> Option<Instant> {
    u64::try_from(timeout_ms).ok().map(|timeout_ms| clock::now() + Duration::from_millis(timeout_ms))
}
