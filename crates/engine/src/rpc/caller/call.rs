//! One call of a caller: the replies that came and were not taken yet, and how it ended.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::clock::{self, monotonic_ns};
use crate::kafka::TopicPartition;
use crate::rpc::protocol::{CallId, Reply, ReplyKind};
use crate::sync::{Mutex, lock};
use crate::wake::Waker;

/// The number of replies that a call wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// One.
    One,
    /// One from each of this many responders.
    Several(usize),
    /// A stream, of which this many results may be under way.
    Stream(u64),
}

/// Why a call ended without the replies that it wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No reply came in time.
    DeadlineExceeded,
    /// The request could not be sent, or no reply can come.
    Unavailable(String),
    /// The responders' group has no member.
    NobodyThere(String),
    /// It was cancelled.
    Cancelled,
    /// A reply of this many bytes was refused.
    TooLarge(usize),
    /// A reply of a stream is missing.
    Gap {
        /// The place of the missing reply.
        expected: u64,
        /// The place of the reply that came.
        came: u64,
    },
    /// The caller was closed.
    Closed,
}

impl Failure {
    /// Returns its code, as in `awoke.rpc.errors` (`closed` is no error of the call's), and a text.
    pub fn explain(&self) -> (&'static str, String) {
        match self {
            Self::DeadlineExceeded => ("deadline_exceeded", String::new()),
            Self::Unavailable(text) => ("unavailable", text.clone()),
            Self::NobodyThere(text) => ("nobody_there", text.clone()),
            Self::Cancelled => ("cancelled", "its caller has cancelled it".to_owned()),
            Self::TooLarge(bytes) => {
                ("resource_exhausted", format!("the reply of {bytes} bytes is larger than reply_bytes_max"))
            }
            Self::Gap { expected, came } => {
                ("data_loss", format!("reply {came} of the stream came where {expected} should have"))
            }
            Self::Closed => ("closed", "its caller was closed".to_owned()),
        }
    }
}

/// The next thing that a call has for its caller.
#[derive(Clone, Debug)]
pub enum Next {
    /// A reply.
    Reply(Reply),
    /// There are no more.
    End,
    /// The call failed.
    Failed(Failure),
}

/// The effect of a reply on its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// It was added, and more may come.
    Added,
    /// It was added, and the call has ended.
    Ended,
    /// None: the call had ended, or the reply had come before.
    Ignored,
}

/// One call of a caller. Any thread may use it.
#[derive(Debug)]
pub struct Call {
    pub(super) id: CallId,
    pub(super) wanted: Wanted,
    pub(super) began: Instant,
    /// Its deadline.
    pub(super) until: Instant,
    /// The partition of its request, and of its cancellation and credit.
    pub(super) request_at: TopicPartition,
    pub(super) size_bytes: usize,
    inbox: Mutex<Inbox>,
    /// Jobs that wait for it.
    waiting_jobs: AtomicUsize,
}

/// The end of a call.
#[derive(Clone, Debug)]
enum Ended {
    Complete,
    Failed(Failure),
}

#[derive(Debug, Default)]
struct Inbox {
    replies: VecDeque<Reply>,
    came: u64,
    /// Results of a stream that were taken.
    taken: u64,
    /// Results of a stream that the responder was granted in total.
    granted: u64,
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
        let began = clock::now();
        let until = began.checked_add(timeout).unwrap_or_else(|| began + Duration::from_secs(1 << 31));
        let granted = if let Wanted::Stream(window) = wanted { window } else { 0 };
        let inbox = Mutex::new(Inbox { granted, ..Inbox::default() });
        Arc::new(Self { id, wanted, began, until, request_at, size_bytes, inbox, waiting_jobs: AtomicUsize::new(0) })
    }

    /// Its id.
    pub const fn id(&self) -> CallId {
        self.id
    }

    /// Its deadline.
    pub const fn until(&self) -> Instant {
        self.until
    }

    /// Returns whether a reply waits to be taken, or the call has ended. Does not block.
    pub fn is_ready(&self) -> bool {
        lock(&self.inbox).is_ready()
    }

    /// Returns whether the call has ended: no more replies come. Does not block.
    pub fn has_ended(&self) -> bool {
        lock(&self.inbox).end.is_some()
    }

    /// Notes a job that begins to wait for it, or has waited (-1), for a test that has the clock. Does not block.
    pub fn note_waiting_job(&self, by: isize) {
        self.waiting_jobs.fetch_add(by.cast_unsigned(), Ordering::SeqCst);
        clock::changed();
    }

    /// Returns how many jobs wait for it, while there is no reply to take. Does not block.
    pub(super) fn waiting_jobs(&self) -> usize {
        if self.is_ready() { 0 } else { self.waiting_jobs.load(Ordering::SeqCst) }
    }

    /// Returns whether any reply has come. Does not block.
    pub(super) fn was_answered(&self) -> bool {
        lock(&self.inbox).came > 0
    }

    /// Returns when the waiting thread or task was last woken, in nanoseconds of the monotonic clock; 0: none was.
    pub fn woken_at_ns(&self) -> u64 {
        lock(&self.inbox).woken_at_ns
    }

    /// Takes the next reply, or the end; `None` if neither is there yet. Does not block.
    pub fn try_next(&self) -> Option<Next> {
        let mut inbox = lock(&self.inbox);
        if let Some(reply) = inbox.replies.pop_front() {
            inbox.taken += u64::from(reply.kind == ReplyKind::Item);
            return Some(Next::Reply(reply));
        }
        inbox.end.clone().map(|end| match end {
            Ended::Complete => Next::End,
            Ended::Failed(failure) => Next::Failed(failure),
        })
    }

    /// Returns the total number of results to grant to the responder, if a grant is due: half of the window was
    /// taken since the last.
    pub(super) fn due_credit(&self) -> Option<u64> {
        let Wanted::Stream(window) = self.wanted else { return None };
        let inbox = lock(&self.inbox);
        let total = inbox.taken + window;
        let is_due = inbox.end.is_none() && total - inbox.granted >= (window / 2).max(1);
        is_due.then_some(total)
    }

    /// Records a grant that was sent. A grant that is not recorded is due again with the next result.
    pub(super) fn granted(&self, total: u64) {
        let mut inbox = lock(&self.inbox);
        inbox.granted = inbox.granted.max(total);
    }

    /// Registers a waker; returns `false`, and registers nothing, if the call is ready.
    pub fn register(&self, waker: Waker) -> bool {
        let mut inbox = lock(&self.inbox);
        let is_ready = inbox.is_ready();
        if !is_ready {
            inbox.waiting.push(waker);
        }
        !is_ready
    }

    /// Registers a waker again if a wake-up has used its registration; returns `false` if the call is ready.
    pub(super) fn keep_registered(&self, waker: &Waker) -> bool {
        let mut inbox = lock(&self.inbox);
        if inbox.is_ready() {
            return false;
        }
        if !inbox.waiting.iter().any(|each| each.is(waker)) {
            inbox.waiting.push(waker.clone());
        }
        true
    }

    /// Removes a registration.
    pub fn unregister(&self, waker: &Waker) {
        lock(&self.inbox).waiting.retain(|each| !each.is(waker));
    }

    /// Adds a reply; returns its effect and the wakers to wake, once no lock is held.
    pub(super) fn add_reply(&self, reply: Reply) -> (Effect, Vec<Waker>) {
        let mut inbox = lock(&self.inbox);
        if inbox.end.is_some() {
            return (Effect::Ignored, Vec::new());
        }
        if matches!(self.wanted, Wanted::Stream(_)) && reply.kind != ReplyKind::Error {
            // A reply that comes again is from a responder that has begun again.
            if reply.sequence < inbox.came {
                return (Effect::Ignored, Vec::new());
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
                inbox.end = Some(Ended::Complete);
            }
            if reply.kind != ReplyKind::End {
                inbox.replies.push_back(reply);
            }
        }
        let effect = if inbox.end.is_some() { Effect::Ended } else { Effect::Added };
        (effect, inbox.wakers())
    }

    /// Ends the call; returns the wakers to wake, or `None` if it had ended before.
    pub(super) fn fail(&self, failure: Failure) -> Option<Vec<Waker>> {
        let mut inbox = lock(&self.inbox);
        if inbox.end.is_some() {
            return None;
        }
        inbox.end = Some(Ended::Failed(failure));
        Some(inbox.wakers())
    }
}
