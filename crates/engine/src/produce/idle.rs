//! Closes a connection that has sent nothing for a long time.

use std::time::{Duration, Instant};

use crate::clock;

/// The action of the report thread when nothing is sent for a long time.
pub(super) struct Idle {
    pub(super) after: Duration,
    /// Closes the connection, if it is not in use. Returns whether it did.
    pub(super) close: Box<dyn Fn() -> bool + Send>,
}

/// The clock of a connection that may be idle.
pub(super) struct IdleWatch {
    idle: Idle,
    due: Instant,
    sent: u32,
}

impl IdleWatch {
    pub(super) fn new(idle: Idle) -> Self {
        let due = clock::real_now() + idle.after;
        Self { idle, due, sent: 0 }
    }

    /// Returns when to check next.
    pub(super) const fn due(&self) -> Instant {
        self.due
    }

    /// Closes the connection when its time has come and nothing was sent since the last check. Returns whether it did.
    pub(super) fn check(&mut self, sent: u32) -> bool {
        let now = clock::real_now();
        if now < self.due {
            return false;
        }
        self.due = now + self.idle.after;
        std::mem::replace(&mut self.sent, sent) == sent && (self.idle.close)()
    }
}
