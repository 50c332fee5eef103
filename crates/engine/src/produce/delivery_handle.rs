//! What the sender of a message holds until the broker has answered for it.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::Reports;
use super::delivery_reports::Hurry;
use crate::clock::Deadline;
use crate::fork_guard::Birthplace;
use crate::kafka::{Code, Refusal};
use crate::wake::{Completion, Latch, Parker, Place, Waker};
use crate::{Error, Result};

/// Where the broker put a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The partition.
    pub partition: i32,
    /// The offset; -1 when the broker was asked not to answer (`acks=0`).
    pub offset: i64,
    /// Milliseconds since 1970 as the broker keeps it; -1 when unknown.
    pub timestamp_ms: i64,
}

/// The broker's answer, or why there is none.
pub type Report = std::result::Result<Delivery, Code>;

/// Where messages go: what their handles have in common.
#[derive(Debug)]
pub(super) struct Destination {
    /// The topic, to name the operation in errors.
    pub(super) topic: Arc<str>,
    /// Weak: a handle that is kept must keep no client.
    pub(super) reports: Weak<Reports>,
    /// Why brokers did not let the client in, or what they did not allow it, when a message failed for that.
    pub(super) refused: Mutex<Option<Refusal>>,
}

/// A wait for one answer, of a thread that serves reports when it is its turn. Dropped, it gives its place to others.
pub struct Waiting<'a> {
    handle: &'a DeliveryHandle,
    /// `None` when the producer is gone: the answer has come, or is about to.
    reports: Option<Arc<Reports>>,
    place: Cell<Option<Place>>,
    /// When it has messages sent that linger.
    hurry: Cell<Hurry>,
    waker: Waker,
}

impl Waiting<'_> {
    /// Serves until the answer is there or the deadline passes, if that is this thread's part; whether it is there. May return early. Then, a follower waits
    /// for its waker, and comes again. Blocks a leader.
    pub fn step(&self, deadline: &Deadline) -> bool {
        if let (Some(reports), Some(place)) = (&self.reports, self.place.get()) {
            let place = reports.lead().look(place);
            self.place.set(Some(place));
            if place == Place::Leader && !self.handle.completion.is_done() {
                reports.serve_for(self.handle, &self.hurry, deadline);
            }
        }
        self.handle.completion.is_done()
    }

    /// Whether somebody else serves.
    pub fn is_follower(&self) -> bool {
        self.place.get() != Some(Place::Leader)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.handle.completion.unregister(&self.waker);
        if let (Some(reports), Some(place)) = (&self.reports, self.place.get()) {
            reports.leave(place);
        }
        self.handle.give_up();
    }
}

/// What the sender of a message holds until the broker has answered for it.
///
/// The producer holds the other reference until the report came; a handle that its sender drops costs nothing more.
#[derive(Debug)]
pub struct DeliveryHandle {
    destination: Arc<Destination>,
    /// Key, value and headers; what its place in the producer's room was counted as.
    pub(super) size_bytes: usize,
    birthplace: Birthplace,
    /// Somebody waits: the message must not linger.
    is_awaited: AtomicBool,
    /// A thread that serves reports does so for this one: whoever else serves it ends that thread's poll.
    pub(super) is_served_for: AtomicBool,
    completion: Completion<Report>,
}

impl DeliveryHandle {
    pub(super) fn new(destination: Arc<Destination>, size_bytes: usize, birthplace: Birthplace) -> Self {
        let (is_awaited, is_served_for) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { destination, size_bytes, birthplace, is_awaited, is_served_for, completion: Completion::default() }
    }

    /// Gives the report; whether it was the last that somebody waited for.
    pub(super) fn complete(&self, report: Report) -> bool {
        let report = report.map_err(|code| self.note_failed(code));
        self.completion.complete(report);
        self.settle()
    }

    /// Counts a failure; returns the code of its cause, where brokers did not let the client in.
    fn note_failed(&self, code: Code) -> Code {
        let Some(reports) = self.destination.reports.upgrade() else { return code };
        let refusal = reports.cause_of(code);
        let code = refusal.as_ref().map_or(code, |refusal| refusal.code);
        if let Some(refusal) = refusal {
            *self.destination.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(refusal);
        }
        reports.count_failed(self.error(code));
        code
    }

    /// Somebody waits for the answer: the message, and what was sent before it, does not linger. Does not block.
    pub fn hurry(&self) {
        if let Some(reports) = self.expect() {
            reports.begin_hurry();
        }
    }

    /// As `hurry`, for many at once: they are sent together.
    pub fn hurry_all<'a>(handles: impl IntoIterator<Item = &'a Self>) {
        let mut hurried: Option<Arc<Reports>> = None;
        for reports in handles.into_iter().filter_map(Self::expect) {
            if hurried.as_ref().is_none_or(|known| !Arc::ptr_eq(known, &reports))
                && let Some(other) = hurried.replace(reports)
            {
                other.begin_hurry();
            }
        }
        if let Some(reports) = hurried {
            reports.begin_hurry();
        }
    }

    /// Counts the message as awaited; who is to be told, if that is news.
    fn expect(&self) -> Option<Arc<Reports>> {
        if self.completion.is_done() || self.is_awaited.swap(true, Ordering::AcqRel) {
            return None;
        }
        let reports = self.destination.reports.upgrade()?;
        reports.expect_one();
        if self.completion.is_done() {
            self.settle(); // The report came meanwhile and may not have seen that it was awaited.
            return None;
        }
        Some(reports)
    }

    /// Whoever waited has given up: the message may linger again. Does not block.
    pub fn give_up(&self) {
        self.settle();
    }

    /// Nobody waits any more; whether nobody waits for any message of the producer's.
    fn settle(&self) -> bool {
        if !self.is_awaited.swap(false, Ordering::AcqRel) {
            return false;
        }
        self.destination.reports.upgrade().is_some_and(|reports| reports.settle_one())
    }

    /// Ends the poll of the thread that serves reports for this handle, whose report another thread has served.
    pub(super) fn end_service(&self) {
        if let Some(reports) = self.destination.reports.upgrade() {
            reports.end_service();
        }
    }

    /// The topic that the message was sent to.
    pub fn topic(&self) -> &Arc<str> {
        &self.destination.topic
    }

    /// Refuses use in another process than the producer's, where no answer will ever come.
    pub fn check_process(&self) -> Result<()> {
        Ok(self.birthplace.check("delivery handle")?)
    }

    /// The completion, to wait on in other ways.
    pub const fn completion(&self) -> &Completion<Report> {
        &self.completion
    }

    /// The answer, if it came. Does not block.
    pub fn result(&self) -> Option<Result<Delivery>> {
        self.completion.get().map(|report| self.explain(report))
    }

    /// When the answer came, in nanoseconds of the monotonic clock; 0 when nobody was waiting for it then.
    pub fn woken_at_ns(&self) -> u64 {
        self.completion.woken_at_ns()
    }

    /// Waits for the answer. Blocks the calling thread, which serves the producer's reports if nobody else does.
    ///
    /// # Errors
    /// [`Error::TimedOut`] when none came within `timeout` (the message may still arrive); [`Error::Kafka`] when the
    /// broker or librdkafka refused the message; [`Error::Forked`] in another process than the producer's.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<Delivery> {
        self.check_process()?;
        let since = Instant::now();
        if let Some(report) = self.wait_until(&Deadline::after(timeout)) {
            return self.explain(report);
        }
        Err(Error::TimedOut { operation: self.operation(), waited: since.elapsed() })
    }

    /// As `wait`; `None` when the deadline passed first.
    pub fn wait_until(&self, deadline: &Deadline) -> Option<Report> {
        let parker = Arc::new(Parker::default());
        if let Some(waiting) = self.begin_wait(Waker::Parker(Arc::clone(&parker))) {
            while !waiting.step(deadline) && !deadline.has_passed() {
                if waiting.is_follower() {
                    parker.park_until(deadline);
                }
            }
        }
        self.completion.get()
    }

    /// Begins a wait; `None` when the answer is there. The waker is woken when there may be something to do: see `Waiting`.
    pub fn begin_wait(&self, waker: Waker) -> Option<Waiting<'_>> {
        if self.completion.is_done() {
            return None;
        }
        let reports = self.destination.reports.upgrade();
        let place = reports.as_ref().map(|reports| reports.lead().join(waker.clone()));
        let hurry = Cell::new(reports.as_ref().map_or_else(Hurry::default, |reports| reports.hurry()));
        let waker = if place == Some(Place::Leader) { Waker::Oneself } else { waker };
        let waiting = Waiting { handle: self, reports, place: Cell::new(place), hurry, waker };
        if !self.completion.register(waiting.waker.clone()) {
            return None;
        }
        if waiting.is_follower() {
            self.hurry();
        }
        Some(waiting)
    }

    /// Waits until all are answered, well or badly; `false` when the time was up first. Blocks the calling thread.
    pub fn wait_all(handles: &[Arc<Self>], timeout: Option<Duration>) -> bool {
        Self::hurry_all(handles.iter().map(|handle| &**handle));
        let are_done = Latch::wait_all(handles.iter().map(|handle| &handle.completion), &Deadline::after(timeout));
        if !are_done {
            handles.iter().for_each(|handle| handle.give_up());
        }
        are_done
    }

    /// The answer in the words of this operation.
    fn explain(&self, report: Report) -> Result<Delivery> {
        report.map_err(|code| self.error(code))
    }

    fn error(&self, code: Code) -> Error {
        let refused = self.destination.refused.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let detail = refused.filter(|refusal| refusal.code == code).map(|refusal| refusal.text);
        Error::kafka(self.operation(), code, detail.unwrap_or_default())
    }

    /// The operation in words, for errors.
    pub fn operation(&self) -> String {
        format!("produce to {}", self.destination.topic)
    }
}
