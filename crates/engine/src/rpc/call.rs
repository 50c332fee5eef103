//! What a caller holds until its call has ended: the replies that came and were not taken, and how it ended.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::protocol::{CallId, Reply, ReplyKind};
use crate::clock::monotonic_ns;
use crate::kafka::TopicPartition;
use crate::sync::{Mutex, lock};
use crate::wake::Waker;

/// How many replies a call wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// One.
    One,
    /// One of each of so many responders.
    Several(usize),
    /// As many as the responder has, of which so many may be under way.
    Stream(u64),
}

/// Why a call ended without the replies that it wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Nobody has answered in time.
    DeadlineExceeded,
    /// The request could not be sent, or the way of the reply is broken.
    Unavailable(String),
    /// No responder is there.
    NobodyThere(String),
    /// The caller gave it up.
    Cancelled,
    /// A reply of so many bytes was refused.
    TooLarge(usize),
    /// A reply of a stream is missing.
    Gap {
        /// The place of the one that should have come.
        expected: u64,
        /// The place of the one that came.
        came: u64,
    },
    /// The caller was closed.
    Closed,
}

/// What comes next of a call.
#[derive(Clone, Debug)]
pub enum Next {
    /// A reply.
    Reply(Reply),
    /// There are no more.
    End,
    /// There will be no more, for this reason.
    Failed(Failure),
}

/// What a reply did to its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// It was taken, and more may come.
    GoesOn,
    /// It was taken, and the call has ended.
    Ended,
    /// The call had ended before, or the reply had come before.
    Ignored,
}

/// What a caller holds until its call has ended. Any thread may use it.
#[derive(Debug)]
pub struct Call {
    pub(super) id: CallId,
    pub(super) wanted: Wanted,
    pub(super) began: Instant,
    /// When nobody waits any more.
    pub(super) until: Instant,
    /// Where its request went, and what belongs to it goes.
    pub(super) request_at: TopicPartition,
    pub(super) size_bytes: usize,
    inbox: Mutex<Inbox>,
}

/// How a call ended.
#[derive(Clone, Debug)]
enum Ended {
    Whole,
    Failed(Failure),
}

#[derive(Debug, Default)]
struct Inbox {
    replies: VecDeque<Reply>,
    came: u64,
    /// Taken since the responder was last told that there is room.
    taken: u64,
    end: Option<Ended>,
    waiting: Vec<Waker>,
    woken_at_ns: u64,
}

impl Inbox {
    fn is_ready(&self) -> bool {
        !self.replies.is_empty() || self.end.is_some()
    }

    fn wakers(&mut self) -> Vec<Waker> {
        if !self.waiting.is_empty() {
            self.woken_at_ns = monotonic_ns();
        }
        std::mem::take(&mut self.waiting)
    }
}

impl Call {
    pub(super) fn new(
        id: CallId,
        wanted: Wanted,
        timeout: Duration,
        request_at: TopicPartition,
        size_bytes: usize,
    ) -> Arc<Self> {
        let began = Instant::now();
        let until = began.checked_add(timeout).unwrap_or_else(|| began + Duration::from_secs(1 << 31));
        Arc::new(Self { id, wanted, began, until, request_at, size_bytes, inbox: Mutex::default() })
    }

    /// Its name.
    pub const fn id(&self) -> CallId {
        self.id
    }

    /// When nobody waits any more.
    pub const fn until(&self) -> Instant {
        self.until
    }

    /// Whether a reply waits to be taken, or the call has ended. Does not block.
    pub fn is_ready(&self) -> bool {
        lock(&self.inbox).is_ready()
    }

    /// Whether the call has ended: no more replies come. Does not block.
    pub fn has_ended(&self) -> bool {
        lock(&self.inbox).end.is_some()
    }

    /// Whether any reply has come. Does not block.
    pub(super) fn was_answered(&self) -> bool {
        lock(&self.inbox).came > 0
    }

    /// When whoever waited was woken last, in nanoseconds of the monotonic clock; 0 when nobody was.
    pub fn woken_at_ns(&self) -> u64 {
        lock(&self.inbox).woken_at_ns
    }

    /// Takes what comes next; `None` when it is not there yet. Does not block.
    pub fn try_next(&self) -> Option<Next> {
        let mut inbox = lock(&self.inbox);
        if let Some(reply) = inbox.replies.pop_front() {
            inbox.taken += u64::from(reply.kind == ReplyKind::Item);
            return Some(Next::Reply(reply));
        }
        inbox.end.clone().map(|end| match end {
            Ended::Whole => Next::End,
            Ended::Failed(failure) => Next::Failed(failure),
        })
    }

    /// How many replies more the responder may send, as soon as that is half of what may be under way; it is then told.
    pub(super) fn credit(&self) -> Option<u64> {
        let Wanted::Stream(window) = self.wanted else { return None };
        let mut inbox = lock(&self.inbox);
        let is_due = inbox.end.is_none() && inbox.taken >= (window / 2).max(1);
        is_due.then(|| std::mem::take(&mut inbox.taken))
    }

    /// The responder could not be told: it is with the next reply that is taken.
    pub(super) fn give_back(&self, credit: u64) {
        lock(&self.inbox).taken += credit;
    }

    /// Registers a waker; `false`, and nothing registered, when the call is ready.
    pub fn register(&self, waker: Waker) -> bool {
        let mut inbox = lock(&self.inbox);
        let is_ready = inbox.is_ready();
        if !is_ready {
            inbox.waiting.push(waker);
        }
        !is_ready
    }

    /// Takes a registration back.
    pub fn unregister(&self, waker: &Waker) {
        lock(&self.inbox).waiting.retain(|each| !each.is(waker));
    }

    /// A reply has come; who is to be woken for it, by the caller of this.
    pub(super) fn take_in(&self, reply: Reply) -> (Taken, Vec<Waker>) {
        let mut inbox = lock(&self.inbox);
        if inbox.end.is_some() {
            return (Taken::Ignored, Vec::new());
        }
        if matches!(self.wanted, Wanted::Stream(_)) && reply.kind != ReplyKind::Error {
            // What comes again comes from a responder that began again.
            if reply.sequence < inbox.came {
                return (Taken::Ignored, Vec::new());
            }
            if reply.sequence > inbox.came {
                inbox.end = Some(Ended::Failed(Failure::Gap { expected: inbox.came, came: reply.sequence }));
            }
        }
        if inbox.end.is_none() {
            inbox.came += 1;
            let ends = match self.wanted {
                Wanted::One => true,
                Wanted::Several(count) => inbox.came >= count as u64,
                Wanted::Stream(_) => reply.kind != ReplyKind::Item,
            };
            if ends {
                inbox.end = Some(Ended::Whole);
            }
            if reply.kind != ReplyKind::End {
                inbox.replies.push_back(reply);
            }
        }
        let taken = if inbox.end.is_some() { Taken::Ended } else { Taken::GoesOn };
        (taken, inbox.wakers())
    }

    /// Ends the call; who is to be woken for it, or `None` when it had ended before.
    pub(super) fn fail(&self, failure: Failure) -> Option<Vec<Waker>> {
        let mut inbox = lock(&self.inbox);
        if inbox.end.is_some() {
            return None;
        }
        inbox.end = Some(Ended::Failed(failure));
        Some(inbox.wakers())
    }
}
