//! Notices that a connection has sent nothing for long.

use std::time::{Duration, Instant};

/// What the report thread does when nothing is sent for long.
pub(super) struct Idle {
    pub(super) after: Duration,
    /// Closes the connection, if nobody uses it; whether that was done.
    pub(super) close: Box<dyn Fn() -> bool + Send>,
}

/// The idle connection's clock.
pub(super) struct IdleWatch {
    idle: Idle,
    due: Instant,
    sent: u32,
}

impl IdleWatch {
    pub(super) fn new(idle: Idle) -> Self {
        let due = Instant::now() + idle.after;
        Self { idle, due, sent: 0 }
    }

    /// When to look next.
    pub(super) const fn due(&self) -> Instant {
        self.due
    }

    /// Closes the connection when its time has come and nothing was sent since the last look; whether it did.
    pub(super) fn look(&mut self, sent: u32) -> bool {
        let now = Instant::now();
        if now < self.due {
            return false;
        }
        self.due = now + self.idle.after;
        std::mem::replace(&mut self.sent, sent) == sent && (self.idle.close)()
    }
}
