//! The ways to wake a waiter.

use std::sync::Arc;

use crate::{Latch, Parker, Tokens};

/// The way in which a waiter learns that its completion has the result.
#[derive(Clone, Debug)]
pub enum Waker {
    /// The leader: it serves the queue, so it sees the result itself and is not woken.
    Leader,
    /// A thread that waits for this completion alone.
    Parker(Arc<Parker>),
    /// A thread that waits for the last of several.
    Latch(Arc<Latch>),
    /// An event loop, or a thread that runs callbacks. It gets `token` in its mailbox.
    Mailbox {
        /// The mailbox of the receiver.
        mailbox: Arc<Tokens>,
        /// The number by which the receiver knows the completion.
        token: u64,
    },
    /// A part of the engine that continues by itself. It is called on the completing thread, so it must be short.
    Listener {
        /// The object to call.
        listener: Arc<dyn Listener>,
        /// The number by which it knows the completion.
        token: u64,
    },
}

/// A part of the engine that continues when a completion has its result.
pub trait Listener: Send + Sync + std::fmt::Debug {
    /// Handles the result of the completion with this token. Must not block.
    fn tell(&self, token: u64);
}

impl Waker {
    /// Wakes the waiting thread, loop or latch. Does not block.
    pub fn wake(self) {
        match self {
            Self::Leader => (),
            Self::Parker(parker) => parker.unpark(),
            Self::Latch(latch) => latch.count_down(),
            Self::Mailbox { mailbox, token } => mailbox.post(token),
            Self::Listener { listener, token } => listener.tell(token),
        }
    }

    /// Returns whether both wake the same waiter.
    pub fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Leader, Self::Leader) => true,
            (Self::Parker(mine), Self::Parker(other)) => Arc::ptr_eq(mine, other),
            (Self::Latch(mine), Self::Latch(other)) => Arc::ptr_eq(mine, other),
            (Self::Mailbox { mailbox, token }, Self::Mailbox { mailbox: other, token: its }) => {
                Arc::ptr_eq(mailbox, other) && token == its
            }
            (Self::Listener { listener, token }, Self::Listener { listener: other, token: its }) => {
                Arc::ptr_eq(listener, other) && token == its
            }
            _ => false,
        }
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    #[test]
    fn wakers_are_the_same_if_they_wake_the_same_waiter() {
        let parker = Arc::new(Parker::default());
        let mine = Waker::Parker(Arc::clone(&parker));
        assert!(mine.is(&Waker::Parker(parker)));
        assert!(!mine.is(&Waker::Parker(Arc::default())));
        assert!(!mine.is(&Waker::Leader) && Waker::Leader.is(&Waker::Leader));
    }
}
